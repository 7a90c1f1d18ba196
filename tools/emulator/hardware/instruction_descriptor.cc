// SPDX-License-Identifier: MIT
// See instruction_descriptor.h. ptxas validates none of these bits; the hardware traps or computes
// something else, so every one is checked here.
#include "tools/emulator/hardware/instruction_descriptor.h"

#include <string>

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

struct Fields {
  uint32_t bits;
  std::string errors;

  uint32_t get(uint32_t low, uint32_t width) const { return bits >> low & ((1u << width) - 1); }
  void must_be(const char* name, uint32_t low, uint32_t width, uint32_t value) {
    if (get(low, width) != value)
      errors += format("\n  %s is %u, must be %u", name, get(low, width), value);
  }
  void add(std::string text) { errors += "\n  " + std::move(text); }
};

struct TypeCode {
  MmaKind kind;
  uint32_t code;
  ElementType type;
};
constexpr TypeCode type_codes[] = {
    {MmaKind::f16, 0, ElementType::f16},       {MmaKind::f16, 1, ElementType::bf16},
    {MmaKind::tf32, 2, ElementType::tf32},     {MmaKind::f8f6f4, 0, ElementType::e4m3},
    {MmaKind::f8f6f4, 1, ElementType::e5m2},   {MmaKind::f8f6f4, 3, ElementType::e2m3},
    {MmaKind::f8f6f4, 4, ElementType::e3m2},   {MmaKind::f8f6f4, 5, ElementType::e2m1},
    {MmaKind::i8, 0, ElementType::u8},         {MmaKind::i8, 1, ElementType::s8},
    {MmaKind::mxf8f6f4, 0, ElementType::e4m3}, {MmaKind::mxf8f6f4, 1, ElementType::e5m2},
    {MmaKind::mxf8f6f4, 3, ElementType::e2m3}, {MmaKind::mxf8f6f4, 4, ElementType::e3m2},
    {MmaKind::mxf8f6f4, 5, ElementType::e2m1}, {MmaKind::mxf4, 1, ElementType::e2m1},
    {MmaKind::mxf4nvf4, 1, ElementType::e2m1},
};

ElementType element_type(Fields& f, MmaKind kind, const char* name, uint32_t code) {
  for (const TypeCode& t : type_codes)
    if (t.kind == kind && t.code == code) return t.type;
  f.add(format("%s is %u, which is no element type of this kind%s", name, code,
               is_packed_fp4(kind) ? " (1 = e2m1; 5 belongs to mxf8f6f4)" : ""));
  return ElementType::e2m1;
}

// Table 54: what is smaller than a byte is K-major only.
bool transposable(ElementType t) { return t <= ElementType::e5m2 || t >= ElementType::u8; }
bool is_byte(ElementType t) {
  return t == ElementType::e4m3 || t == ElementType::e5m2 || t >= ElementType::u8;
}

void check_operands(Fields& f, MmaShape& s, MmaKind kind) {
  f.must_be("bits 1:0 (sparsity selector, reserved without .sp)", 0, 2, 0);
  f.must_be("bit 2 (sparsity; .sp is not given)", 2, 1, 0);
  f.must_be("bit 6 (reserved)", 6, 1, 0);
  s.a = element_type(f, kind, "bits 9:7 (A type)", f.get(7, 3));
  const bool narrow = is_packed_fp4(kind);
  s.b = element_type(f, kind, narrow ? "bits 11:10 (B type)" : "bits 12:10 (B type)",
                     f.get(10, narrow ? 2 : 3));
  if (narrow) f.must_be("bit 12 (reserved for 4-bit kinds)", 12, 1, 0);
  s.negate_a = f.get(13, 1);
  s.negate_b = f.get(14, 1);
  if (kind == MmaKind::i8) f.must_be("bits 14:13 (negate, not of kind::i8)", 13, 2, 0);
  s.transpose_a = f.get(15, 1);
  s.transpose_b = f.get(16, 1);
  if (!transposable(s.a)) f.must_be("bit 15 (A of less than 8 bits is K-major)", 15, 1, 0);
  if (!transposable(s.b)) f.must_be("bit 16 (B of less than 8 bits is K-major)", 16, 1, 0);
}

// What bits 5:3, 23 and 31:29 are without block scaling.
void check_plain(Fields& f, MmaShape& s, MmaKind kind) {
  s.saturate = f.get(3, 1);
  if (kind != MmaKind::i8) f.must_be("bit 3 (saturation, of kind::i8 only)", 3, 1, 0);
  const uint32_t d = f.get(4, 2);
  if (kind == MmaKind::i8)
    f.must_be("bits 5:4 (D type; 2 = s32)", 4, 2, 2);
  else if (kind == MmaKind::tf32)
    f.must_be("bits 5:4 (D type; 1 = f32)", 4, 2, 1);
  else if (d > 1)
    f.add(format("bits 5:4 (D type) are %u, must be 0 = f16 or 1 = f32", d));
  s.d = kind == MmaKind::i8 ? AccumulatorType::s32
        : d                 ? AccumulatorType::f32
                            : AccumulatorType::f16;
  if (s.d == AccumulatorType::f16 && (s.a == ElementType::bf16 || s.b == ElementType::bf16))
    f.add("bits 5:4 (D type) are 0 = f16, which does not go with bf16 operands");
  f.must_be("bit 23 (reserved)", 23, 1, 0);
  f.must_be("bit 29 (reserved)", 29, 1, 0);
  // The .ws form uses this for a B that is kept and shifted; neither is emulated (see
  // tensor_core.h).
  f.must_be("bits 31:30 (maximum shift, which a zero-column mask asks for)", 30, 2, 0);
}

void check_scales(Fields& f, MmaShape& s, MmaKind kind) {
  f.must_be("bit 3 (reserved)", 3, 1, 0);
  f.must_be("bits 26:24 (reserved)", 24, 3, 0);
  f.must_be(is_packed_fp4(kind) ? "bit 31 (K = 96, sm_103a only)" : "bit 31 (reserved)", 31, 1, 0);
  s.scale = f.get(23, 1) ? ScaleType::ue8m0 : ScaleType::ue4m3;
  const bool ue4m3 = s.scale == ScaleType::ue4m3;
  if (ue4m3 && kind != MmaKind::mxf4nvf4)
    f.add(format("bit 23 (scale type) is 0 = ue4m3, but kind::%s has ue8m0 scales only",
                 kind == MmaKind::mxf4 ? "mxf4" : "mxf8f6f4"));
  else if (ue4m3 && s.block == 32)
    f.add("bit 23 (scale type) is 0 = ue4m3, which needs 16-element blocks (.scale_vec::4X)");
  const auto id = [&](const char* name, uint32_t value) {
    if (kind == MmaKind::mxf8f6f4) return;  // the id may name any of the four bytes
    if (s.block == 16 ? value != 0 : value % 2 != 0)
      f.add(format("%s is %u, must be 0%s", name, value, s.block == 16 ? "" : " or 2"));
  };
  s.sfa_id = f.get(29, 2);
  s.sfb_id = f.get(4, 2);
  id("bits 30:29 (SFA id)", s.sfa_id);
  id("bits 5:4 (SFB id)", s.sfb_id);
}

// Table 39, .ws.
void check_weights(Fields& f, const MmaShape& s) {
  if (s.m != 32 && s.m != 64 && s.m != 128)
    f.add(format("bits 28:24 (M / 16) mean M = %u, must be 32, 64 or 128 with .ws", s.m));
  if (s.n != 64 && s.n != 128 && s.n != 256)
    f.add(format("bits 22:17 (N / 8) mean N = %u, must be 64, 128 or 256 with .ws", s.n));
}

// Table 39.
void check_m(Fields& f, const MmaShape& s, MmaKind kind, bool pair) {
  const uint32_t small = pair || is_block_scaled(kind) ? 128 : 64, large = pair ? 256 : 128;
  if (s.m == small || s.m == large) return;
  f.add(format("%s mean M = %u, must be %u%s with .cta_group::%d",
               is_block_scaled(kind) ? "bits 28:27 (M / 128)" : "bits 28:24 (M / 16)", s.m, small,
               small == large ? "" : format(" or %u", large).c_str(), pair ? 2 : 1));
}

// Table 39; table 52 for a transposed B of bytes.
void check_n(Fields& f, const MmaShape& s, MmaKind kind, bool pair) {
  uint32_t step = pair ? 16 : 8;
  if (kind == MmaKind::i8 && (pair || s.n > 32)) step *= 2;
  if (s.transpose_b && is_byte(s.b)) step = pair ? 32 : 16;
  if (s.n < step || s.n > 256 || s.n % step)
    f.add(format("bits 22:17 (N / 8) mean N = %u, must be %u to 256 in steps of %u", s.n, step,
                 step));
}

}  // namespace

MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t block, bool pair,
                                       bool weights) {
  Fields f{bits, {}};
  MmaShape s;
  const bool scaled = is_block_scaled(kind);
  s.m = scaled ? f.get(27, 2) * 128 : f.get(24, 5) * 16;
  s.n = f.get(17, 6) * 8;
  s.block = block;
  check_operands(f, s, kind);
  if (scaled)
    check_scales(f, s, kind);
  else
    check_plain(f, s, kind);
  if (weights) {
    check_weights(f, s);
  } else {
    check_m(f, s, kind, pair);
    check_n(f, s, kind, pair);
  }
  if (!f.errors.empty())
    throw Fault(
        FaultKind::illegal_instruction,
        format("tcgen05.mma%s: instruction descriptor 0x%08x:", weights ? ".ws" : "", bits) +
            f.errors);
  return s;
}

}  // namespace emu
