// SPDX-License-Identifier: MIT
// Products of 9.0 with a few tiles more or fewer than there are SMs.
#pragma once

#include <algorithm>
#include <string>

#include "test/gemm/gpu.h"
#include "tools/harness/device_gemm.h"

namespace gemm_test {

constexpr int64_t kFewSms = 16;

// 0 where all tiles are cut alike.
inline int64_t whole_tiles(const Gpu& gpu, const nvfp4_gemm_desc& desc) {
  return plan_of(gpu, desc).whole_tiles;
}

inline int32_t a_type_of(const std::string& variant) { return tile_of(variant).a_type; }

// So many tiles of a variant, the last one cut short, for some tokens of one tile.
inline Problem tiles_of(const std::string& variant, int64_t tiles, int64_t k, Data data) {
  const int64_t weights = tile_weights(variant);
  const int64_t tokens = tile_tokens(variant);
  const support::Shape shape{std::min<int64_t>(tokens, 3), tiles * weights - 36, k};
  const int32_t type = a_type_of(variant);
  if (type == NVFP4_TYPE_NONE)
    return forced(variant.c_str(), support::make_problem(shape, data, 960));
  return forced(variant.c_str(), support::make_a16_problem(shape, type, data, 960));
}

// The stages from which on a part of K is worth a cluster's exchange; the emulator gets no more.
// The last stage is cut short, and so is its last step of 64: the rank that has it clears scales.
inline int64_t k_of(const Gpu& gpu, const std::string& variant) {
  if (tile_weights(variant) != 128) return gpu.sized<int64_t>(4880, 2832);
  return gpu.sized<int64_t>(2832, 1552);
}

// SMs of the machine that plans are made for: 132, or as few as a library in the emulator has
// (build/few_sms).
inline int64_t nominal_sms(const Gpu& gpu) {
  const support::DeviceGemm few(gpu.driver,
                                tiles_of("sm90_64x1x256", kFewSms + 2, 2832, Data::exact));
  return whole_tiles(gpu, few.desc) == kFewSms ? kFewSms : 132;
}

}  // namespace gemm_test
