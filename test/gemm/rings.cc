// SPDX-License-Identifier: MIT
// Every ring of weights wraps twice while its bytes arrive as late as they may: a consumer group
// that runs a round ahead takes the phase before for its own and reads what has not arrived.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

namespace {

// Two rounds through the ring and two stages more, all by one CTA.
Shape two_rounds(const std::string& variant, const std::string& tile) {
  return {std::min<int64_t>(gemm_test::tile_tokens(tile), 5), gemm_test::tile_weights(tile),
          (2 * gemm_test::ring_stages(variant) + 2) * 256};
}

// The test case draws the order and the layout of B's scales. Without NVFP4_LONG only the late
// order runs: linear scales by tiles of 64 weights and one of 128, the other layout by those of
// 128.
void require_bits(const gemm_test::Gpu& gpu, const gemm_test::Emulator& emulator,
                  const std::string& variant, Problem p) {
  const char* when = GENERATE("latest", "random");
  p.b.layout = GENERATE(int32_t{NVFP4_SCALE_LAYOUT_LINEAR}, int32_t{NVFP4_SCALE_LAYOUT_128X4});
  const bool linear = p.b.layout == NVFP4_SCALE_LAYOUT_LINEAR;
  const bool wide = gemm_test::tile_weights(variant) != 64;
  const bool both = variant == "sm90_128x64x256";
  const bool taken = *when == 'l' && (both || linear != wide);
  if (!gemm_test::everything() && !taken) return;
  CAPTURE(when, p.b.layout);
  const gemm_test::Setting order(emulator, "EMU_ORDER", when, "random");
  const std::string unsplit = variant + "/1";
  gemm_test::require_reference_bits(gpu, forced(unsplit.c_str(), p));
}

}  // namespace

TEST_CASE("each ring wraps twice while its bytes arrive late", "[rings]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const std::string variant = EACH_VARIANT;
  require_bits(gpu, emulator, variant, make_problem(two_rounds(variant, variant), Data::exact, 90));
}

TEST_CASE("each ring of 16-bit tokens' weights wraps twice while its bytes arrive late",
          "[rings][a16]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  const auto tile = GENERATE(from_range(gemm_test::some_half_variants(0)));
  require_bits(
      gpu, emulator, tile.name,
      support::make_a16_problem(two_rounds(tile.name, tile.name), tile.type, Data::exact, 91));
}
