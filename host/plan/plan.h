// SPDX-License-Identifier: MIT
// Problem and compute capability in, launch geometry out. Pure: no driver, no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/params.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Compute capabilities with kernels. A bit each in images.def.
constexpr int32_t kCapabilities[] = {100, 103, 90};
constexpr size_t kCapabilityCount = sizeof kCapabilities / sizeof kCapabilities[0];
constexpr uint32_t kServes100 = 1u << 0;
constexpr uint32_t kServes103 = 1u << 1;
constexpr uint32_t kServes90 = 1u << 2;

struct Variant {
  const char* name;
  const char* entry;
  uint32_t tile_weights, tile_tokens, tile_k;
  uint32_t stages, stage_bytes;
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t tmem_columns;
  uint32_t ctas_per_sm;
  bool workspace_tokens;  // decoded by a kernel of their own, into the workspace
  bool several_tiles;     // a CTA that does not share K computes one tile after the other
  uint32_t capabilities;  // as bits
  uint32_t stage_clocks;
};

enum VariantIndex : uint32_t {
#define VARIANT(name, entry, tile, capabilities, clocks) kVariant_##name,
#include "host/plan/variants.def"
#undef VARIANT
  kVariantCount
};

struct Plan {
  const Variant* variant;
  uint32_t variant_index;
  uint32_t capability_index;
  uint32_t tiles_m, tiles_n;
  uint32_t split;  // CTAs that share a tile along K: a cluster
  uint32_t grid;   // CTAs, flattened into grid.x, if each computes a tile
  uint64_t workspace_bytes;
};

// CTAs that are launched on a device of so many SMs.
uint32_t count_ctas(const Plan& plan, int32_t sm_count);

constexpr int64_t kMaxTiles = INT32_MAX;  // grid.x
constexpr int64_t kMaxTokenBytes = kMaxTiles * kTokenKernelThreads * kTokenBytesPerThread;

// CTAs that run at once on a B200, the GPU that plans are made for: 148 SMs, one CTA each.
constexpr int64_t kWave = 148;

const Variant& variant_at(uint32_t index);
inline bool serves(const Variant& variant, uint32_t capability_index) {
  return (variant.capabilities >> capability_index & 1) != 0;
}

// What the planner keeps small; plan.cc has the rule.
int64_t rows_fetched(const Variant& variant, int64_t tiles);

// "10.3" for 103; a number below 0, which no GPU has, as it is.
struct CapabilityText {
  char text[16];
};
CapabilityText capability_text(int32_t capability);

// Where a compute capability stands in kCapabilities; refuses one that has no kernel.
nvfp4_status find_capability(int32_t capability, uint32_t* index);

// Refuses a name that no variant has, with the list of those that are there.
nvfp4_status find_variant(const char* name, uint32_t* index);

// Compute capability 9.0, plan/sm90.cc: variant and split of a problem, and what a choice costs in
// clocks of the longest running SM.
struct ChoiceSm90 {
  uint32_t variant_index, split;
  int64_t clocks;
};
ChoiceSm90 choose_sm90(const nvfp4_gemm_desc& desc);
// The best split of one variant. False if its tiles are too many.
bool choose_split_sm90(const nvfp4_gemm_desc& desc, uint32_t variant_index, ChoiceSm90* choice);

// The variant that needs the fewest tiles for a problem: the forced one, else the widest. `desc`
// has a known variant name or none.
const Variant& variant_of_fewest_tiles(const nvfp4_gemm_desc& desc);

// Tiles of one matrix and of all batches. False if they are more than kMaxTiles.
bool count_tiles(const nvfp4_gemm_desc& desc, const Variant& variant, int64_t* of_matrix,
                 int64_t* of_all);

// `desc` has been checked and is not empty. Capability: 10 * major + minor. The variant depends on
// the sizes (and on desc.variant) alone, the split on the sizes alone, so D has the same bits on
// every device of a capability. Looks at no workspace.
nvfp4_status make_plan(const nvfp4_gemm_desc& desc, int32_t capability, Plan* plan);

}  // namespace nvfp4
