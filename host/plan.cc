// SPDX-License-Identifier: MIT
#include "host/plan.h"

#include <cinttypes>
#include <cstdio>

#include "host/size.h"
#include "host/status.h"
#include "kernel/gemm_sm100.h"

namespace nvfp4 {

namespace {

#define VARIANT(name, entry, tile) \
  {#name, #entry, tile::kWeights, tile::kTokens, tile::kThreads, tile::kSharedBytes},
constexpr Variant kVariants[] = {
#include "host/variants.def"
};
#undef VARIANT

// The checks bound the number of 128 x 128 tiles, so no variant may have more of them.
#define VARIANT(name, entry, tile) \
  static_assert(tile::kWeights >= 128 && tile::kTokens >= 128, "grid.x stays below 2^31");
#include "host/variants.def"
#undef VARIANT
static_assert(kCapabilities[0] == 100 && kServes100 == 1u << 0);
static_assert(kCapabilities[1] == 103 && kServes103 == 1u << 1);

nvfp4_status refuse_capability(int32_t capability) {
  char served[64] = "";
  size_t length = 0;
  for (const int32_t c : kCapabilities) {
    length += static_cast<size_t>(
        snprintf(served + length, sizeof served - length, " %d.%d", c / 10, c % 10));
  }
  return fail(NVFP4_STATUS_UNSUPPORTED_ARCH,
              "compute capability %" PRId32 ".%" PRId32 " has no kernel here; served are:%s",
              capability / 10, capability % 10, served);
}

// One variant so far: it takes every shape.
uint32_t choose_variant() { return kVariant_sm100_128x128x256; }

}  // namespace

nvfp4_status make_plan(const nvfp4_gemm_desc& desc, int32_t capability, Plan* plan) {
  uint32_t index = 0;
  while (index < kCapabilityCount && kCapabilities[index] != capability) ++index;
  if (index == kCapabilityCount) return refuse_capability(capability);
  plan->capability_index = index;
  plan->variant_index = choose_variant();
  plan->variant = &kVariants[plan->variant_index];
  plan->tiles_m = static_cast<uint32_t>(ceil_div(desc.m, plan->variant->tile_tokens));
  plan->tiles_n = static_cast<uint32_t>(ceil_div(desc.n, plan->variant->tile_weights));
  // Below 2^31: the checks count the same tiles.
  plan->grid = static_cast<uint32_t>(plan->tiles_m * static_cast<int64_t>(plan->tiles_n) * desc.l);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
