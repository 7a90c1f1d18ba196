// SPDX-License-Identifier: MIT
// PTX fundamental types and state spaces (PTX ISA 5.1, 5.2).
#pragma once

#include <cstdint>

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

enum class Space : uint8_t { generic, param, shared_cta, shared_cluster, global, local, constant };

}  // namespace emu::ptx
