// SPDX-License-Identifier: MIT
// fp32 and fp64 of a whole warp by the host's own IEEE 754 operations, where it has them: rounded
// to nearest, subnormal numbers kept. softfloat.h defines each result, and
// test/arithmetic/host_float.cc checks that both agree.
#pragma once

#include <cstdint>

namespace emu::host {

// Does this thread compute by IEEE's rules now, with FMA? What the program around us does to its
// control register is its own affair: another rounding, flushing, traps.
bool is_ieee();

// a + b, a * b, a * b + c or the square root of a, for 32 lanes, as bit patterns in 64-bit
// registers. Returns the lanes whose result is a NaN. Hosts differ in the bits of a NaN, so the
// caller computes these lanes with softfloat.
using Unary = uint32_t (*)(const uint64_t* a, uint64_t* d);
using Binary = uint32_t (*)(const uint64_t* a, const uint64_t* b, uint64_t* d);
using Ternary = uint32_t (*)(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t* d);

uint32_t add_f32(const uint64_t* a, const uint64_t* b, uint64_t* d);
uint32_t mul_f32(const uint64_t* a, const uint64_t* b, uint64_t* d);
uint32_t fma_f32(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t* d);
uint32_t add_f64(const uint64_t* a, const uint64_t* b, uint64_t* d);
uint32_t mul_f64(const uint64_t* a, const uint64_t* b, uint64_t* d);
uint32_t fma_f64(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t* d);

uint32_t sqrt_f32(const uint64_t* a, uint64_t* d);
uint32_t sqrt_f64(const uint64_t* a, uint64_t* d);

}  // namespace emu::host
