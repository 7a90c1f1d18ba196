// SPDX-License-Identifier: MIT
// What a matrix instruction multiplies, scales with and adds up in.
#pragma once

#include <cstdint>

namespace emu {

enum class ScaleType : uint8_t { ue4m3, ue8m0 };
enum class ElementType : uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, u8, s8 };
enum class AccumulatorType : uint8_t { f16, f32, s32 };

}  // namespace emu
