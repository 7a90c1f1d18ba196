// SPDX-License-Identifier: MIT
// PTX fundamental types and state spaces (PTX ISA 5.1, 5.2).
#pragma once

#include <cstdint>

namespace emu::ptx {

//        name, bits, class: p predicate, b untyped, u unsigned, s signed, f floating, x packed
#define EMU_PTX_TYPES(X)                                                                           \
  X(pred, 1, 'p')                                                                                  \
  X(b8, 8, 'b')                                                                                    \
  X(b16, 16, 'b') X(b32, 32, 'b') X(b64, 64, 'b') X(b128, 128, 'b') X(u8, 8, 'u') X(u16, 16, 'u')  \
      X(u32, 32, 'u') X(u64, 64, 'u') X(s8, 8, 's') X(s16, 16, 's') X(s32, 32, 's')                \
          X(s64, 64, 's') X(f16, 16, 'f') X(bf16, 16, 'f') X(f32, 32, 'f') X(f64, 64, 'f')         \
              X(tf32, 32, 'f') X(f16x2, 32, 'x') X(bf16x2, 32, 'x') X(f32x2, 64, 'x')              \
                  X(u16x2, 32, 'x') X(s16x2, 32, 'x') X(e2m1x2, 8, 'x') X(e4m3x2, 16, 'x')         \
                      X(e5m2x2, 16, 'x') X(e2m3x2, 16, 'x') X(e3m2x2, 16, 'x') X(ue8m0x2, 16, 'x') \
                          X(b1024, 1024, 'b')

enum class Type : uint8_t {
  none,
#define EMU_X(name, bits, cls) name,
  EMU_PTX_TYPES(EMU_X)
#undef EMU_X
};

constexpr uint32_t bits_of(Type t) {
  switch (t) {
#define EMU_X(name, bits, cls) \
  case Type::name: return bits;
    EMU_PTX_TYPES(EMU_X)
#undef EMU_X
    default: return 0;
  }
}

constexpr char class_of(Type t) {
  switch (t) {
#define EMU_X(name, bits, cls) \
  case Type::name: return cls;
    EMU_PTX_TYPES(EMU_X)
#undef EMU_X
    default: return '-';
  }
}

enum class Space : uint8_t { generic, param, shared_cta, shared_cluster, global, local, constant };

}  // namespace emu::ptx
