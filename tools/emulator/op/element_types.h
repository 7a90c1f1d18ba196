// SPDX-License-Identifier: MIT
// The types of PTX as those of the tensor core's operands.
#pragma once

#include "tools/emulator/arithmetic/mma_element.h"
#include "tools/emulator/ptx/module.h"

namespace emu::ops {

inline ElementType element_type(ptx::Type t) {
  switch (t) {
    case ptx::Type::f16: return ElementType::f16;
    case ptx::Type::bf16: return ElementType::bf16;
    case ptx::Type::tf32: return ElementType::tf32;
    case ptx::Type::e4m3: return ElementType::e4m3;
    case ptx::Type::e5m2: return ElementType::e5m2;
    case ptx::Type::e2m3: return ElementType::e2m3;
    case ptx::Type::e3m2: return ElementType::e3m2;
    case ptx::Type::e2m1: return ElementType::e2m1;
    case ptx::Type::s8: return ElementType::s8;
    default: return ElementType::u8;
  }
}

}  // namespace emu::ops
