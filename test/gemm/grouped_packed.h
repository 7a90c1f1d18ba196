// SPDX-License-Identifier: MIT
// Grouped products with packed weights, for tests that compare them with the same product whose
// weights are not packed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "test/gemm/emulator.h"
#include "test/gemm/grouped.h"

namespace gemm_test {

struct PackedTile {
  const char* variant;
  int32_t a_type;
  bool gated;
  operator std::string() const { return variant; }
};

// In the order that kernels read beside such tokens.
inline GroupedProblem packed(GroupedProblem problem) {
  const bool quantized = problem.sizes.a_type == NVFP4_TYPE_NONE;
  problem.fields.b_packing = quantized ? NVFP4_PACKING_SM100_1 : NVFP4_PACKING_SM90_1;
  return problem;
}

// What else a test asks of a grouped product, packed or not.
using Ask = std::function<void(nvfp4_grouped_desc&, nvfp4_gemm_desc&)>;

inline std::vector<uint8_t> d_of(const Gpu& gpu, const PackedTile& tile,
                                 const GroupedProblem& problem, const Ask& ask = nullptr) {
  DeviceGrouped device(gpu, problem);
  if (ask) ask(device.grouped, device.gemm);
  device.take(gpu, tile.variant);
  std::vector<uint8_t> d = run_grouped(device);
  CHECK(device.guards_intact());
  return d;
}

inline void require_bits_of_unpacked(const Gpu& gpu, const PackedTile& tile,
                                     const GroupedProblem& problem) {
  CAPTURE(tile.variant, tile.gated);
  CHECK(d_of(gpu, tile, packed(problem)) == d_of(gpu, tile, problem));
}

// The same in an emulator of few SMs, whichever of these warps are late.
inline void require_bits_whoever_is_late(const Gpu& gpu, const PackedTile& tile,
                                         const GroupedProblem& problem, int most_sms,
                                         const std::vector<std::string>& late_warps) {
  const std::vector<uint8_t> d = d_of(gpu, tile, problem);
  CHECK(d_of(gpu, tile, packed(problem)) == d);
  if (!gpu.info.emulated() || gpu.info.sms > most_sms) return;
  const Emulator emulator(gpu.driver);
  for (const std::string& warps : late_warps) {
    CAPTURE(tile.variant, tile.gated, warps);
    const Setting late(emulator, "EMU_LATE", warps, "");
    CHECK(d_of(gpu, tile, packed(problem)) == d);
  }
}

}  // namespace gemm_test
