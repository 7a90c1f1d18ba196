// SPDX-License-Identifier: MIT
// PTX fundamental types (PTX ISA 5.2), and state spaces under the name that they have here.
#pragma once

#include <cstdint>

#include "tools/emulator/base/space.h"

namespace emu::ptx {

enum class Type : uint8_t {
  none,
#define EMU_TYPE(name, bits, cls) name,
#include "tools/emulator/ptx/types.def"
#undef EMU_TYPE
};

constexpr uint32_t bits_of(Type t) {
  switch (t) {
#define EMU_TYPE(name, bits, cls) \
  case Type::name:                \
    return bits;
#include "tools/emulator/ptx/types.def"
#undef EMU_TYPE
    default: return 0;
  }
}

constexpr char class_of(Type t) {
  switch (t) {
#define EMU_TYPE(name, bits, cls) \
  case Type::name:                \
    return cls;
#include "tools/emulator/ptx/types.def"
#undef EMU_TYPE
    default: return '-';
  }
}

using emu::Space;

}  // namespace emu::ptx
