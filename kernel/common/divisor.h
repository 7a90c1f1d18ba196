// SPDX-License-Identifier: MIT
// Division by a number that the host knows, as a multiplication and a shift, so that the code
// before a kernel's first load does not take two hundred clock cycles. Plain C++, no CUDA.
#pragma once

#include <cstdint>

#include "kernel/common/host_device.h"

namespace nvfp4 {

// n / d = n * factor >> shift for every n below 2^31: with 2^s the first power of two that is not
// below d, factor = ceil(2^(31+s) / d) is too large by less than 1, its product by less than
// n < 2^31 <= 2^(31+s) / d, so the quotient by less than the 1/d that the next one is away.
struct Divisor {
  uint32_t factor, shift;
};

NVFP4_HOST_DEVICE constexpr Divisor divisor_of(uint32_t d) {
  uint32_t s = 0;
  while ((uint64_t{1} << s) < d) ++s;
  return {static_cast<uint32_t>(((uint64_t{1} << (31 + s)) + d - 1) / d), 31 + s};
}

NVFP4_HOST_DEVICE constexpr uint32_t divide(uint32_t n, Divisor by) {
  return static_cast<uint32_t>(uint64_t{n} * by.factor >> by.shift);
}
static_assert(divisor_of(1).factor == 0x80000000 && divisor_of(1).shift == 31);
static_assert(divisor_of(3).factor == 0xAAAAAAAB && divisor_of(3).shift == 33);
static_assert(divide(0x7FFFFFFF, divisor_of(1)) == 0x7FFFFFFF);
static_assert(divide(0x7FFFFFFE, divisor_of(0x7FFFFFFF)) == 0);
static_assert(divide(0x7FFFFFFF, divisor_of(0x7FFFFFFF)) == 1);

}  // namespace nvfp4
