// SPDX-License-Identifier: MIT
// Random weights on the device, as a checkpoint has them and packed, with room for tokens and D.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/device.h"
#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace bench {

// The scales of a matrix of these sizes, the same each time: UE4M3 from 0.25 to 1.9, [n][k/16].
std::vector<uint8_t> random_scales(int64_t n, int64_t k);

struct Weights {
  static constexpr int32_t kPacking = NVFP4_PACKING_SM90_1;

  support::DeviceBuffer codes, scales, packed, tokens, d;

  // For up to s.m tokens of 16 bits, which are random as well.
  Weights(const support::Driver& driver, const support::Shape& s, int32_t a_type);
  Weights(const support::Driver& driver, const Weights& other);  // D's content is not copied

  nvfp4_gemm_desc desc(const support::Shape& s, int32_t a_type, bool is_packed,
                       const char* variant) const;
};

}  // namespace bench
