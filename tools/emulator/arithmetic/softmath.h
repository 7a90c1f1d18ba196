// SPDX-License-Identifier: MIT
// Roots and elementary functions in integers. What the manual calls .approx is computed to some 40
// bits or more and then rounded once, so the bits are those of the nearest number: inside every
// bound of the manual, and not the hardware's own.
#pragma once

#include "tools/emulator/arithmetic/softfloat.h"

namespace emu::soft {

uint64_t sqrt(uint64_t a, const Format& f, const Rules& rules = {});
uint64_t rsqrt(uint64_t a, const Format& f, const Rules& rules = {});
uint64_t exp2(uint64_t a, const Format& f, const Rules& rules = {});
uint64_t log2(uint64_t a, const Format& f, const Rules& rules = {});
// For f32 and narrower formats.
uint64_t sin(uint64_t a, const Format& f, const Rules& rules = {});
uint64_t cos(uint64_t a, const Format& f, const Rules& rules = {});
uint64_t tanh(uint64_t a, const Format& f, const Rules& rules = {});

}  // namespace emu::soft
