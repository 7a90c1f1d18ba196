// SPDX-License-Identifier: MIT
// See instruction_descriptor.h. ptxas validates none of these bits; the hardware traps or computes
// something else, so every one is checked here.
#include "instruction_descriptor.h"

#include <string>

#include "../fault.h"

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

void check_types(Fields& f) {
  f.must_be("bits 1:0 (reserved)", 0, 2, 0);
  f.must_be("bit 2 (sparsity; .sp is not given)", 2, 1, 0);
  f.must_be("bit 3 (reserved)", 3, 1, 0);
  f.must_be("bit 6 (reserved)", 6, 1, 0);
  f.must_be("bits 9:7 (A type; 1 = e2m1 for 4-bit kinds, 5 belongs to mxf8f6f4)", 7, 3, 1);
  f.must_be("bits 11:10 (B type; 1 = e2m1)", 10, 2, 1);
  f.must_be("bit 12 (reserved for 4-bit kinds)", 12, 1, 0);
  f.must_be("bit 15 (A is K-major, the only layout of 4-bit kinds)", 15, 1, 0);
  f.must_be("bit 16 (B is K-major, the only layout of 4-bit kinds)", 16, 1, 0);
  f.must_be("bits 26:24 (reserved)", 24, 3, 0);
  f.must_be("bit 31 (K = 96, sm_103a only)", 31, 1, 0);
}

void check_shape(Fields& f, const MmaShape& s, bool pair) {
  const uint32_t step = pair ? 16 : 8;
  if (s.m != 128 && !(pair && s.m == 256))
    f.add(format("bits 28:27 (M / 128) mean M = %u, must be 128%s", s.m,
                 pair ? " or 256" : " with .cta_group::1"));
  if (s.n < step || s.n > 256 || s.n % step)
    f.add(format("bits 22:17 (N / 8) mean N = %u, must be %u to 256 in steps of %u", s.n, step,
                 step));
}

void check_scales(Fields& f, const MmaShape& s, MmaKind kind) {
  const bool ue4m3 = s.scale == ScaleType::ue4m3;
  if (ue4m3 && kind == MmaKind::mxf4)
    f.add("bit 23 (scale type) is 0 = ue4m3, but kind::mxf4 has ue8m0 scales only");
  else if (ue4m3 && s.block == 32)
    f.add("bit 23 (scale type) is 0 = ue4m3, which needs 16-element blocks (.scale_vec::4X)");
  const auto id = [&](const char* name, uint32_t value) {
    if (s.block == 16 ? value != 0 : value % 2 != 0)
      f.add(format("%s is %u, must be 0%s", name, value, s.block == 16 ? "" : " or 2"));
  };
  id("bits 30:29 (SFA id)", s.sfa_id);
  id("bits 5:4 (SFB id)", s.sfb_id);
}

}  // namespace

MmaShape decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t block, bool pair) {
  Fields f{bits, {}};
  MmaShape s;
  s.m = f.get(27, 2) * 128;
  s.n = f.get(17, 6) * 8;
  s.scale = f.get(23, 1) ? ScaleType::ue8m0 : ScaleType::ue4m3;
  s.block = block;
  s.sfa_id = f.get(29, 2);
  s.sfb_id = f.get(4, 2);
  s.negate_a = f.get(13, 1);
  s.negate_b = f.get(14, 1);
  check_types(f);
  check_shape(f, s, pair);
  check_scales(f, s, kind);
  if (!f.errors.empty())
    throw Fault(FaultKind::illegal_instruction,
                format("tcgen05.mma: instruction descriptor 0x%08x:", bits) + f.errors);
  return s;
}

}  // namespace emu
