// SPDX-License-Identifier: MIT
// Operands of one block-scaled MMA step, by hand and at random, and the plain models as judges.
#pragma once

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/test/support/scaled_model.h"
#include "tools/emulator/test/support/unit_support.h"

namespace mma_cases {

using emu::ScaledSum;
using emu::ScaleType;
using unit::Random;

constexpr uint32_t canonical_nan = 0x7FFFFFFF, infinity = 0x7F800000;
constexpr uint8_t unit_scale = 0x38;  // ue4m3 1.0
constexpr ScaledSum every_model[] = {ScaledSum::groups, ScaledSum::blocks_zero_raises,
                                     ScaledSum::blocks_zero_rests};

// One dot product of 64: everything is +0 with scale 1 until a test sets it.
struct Dot {
  uint8_t a[32] = {}, b[32] = {};
  uint8_t sfa[4] = {unit_scale, unit_scale, unit_scale, unit_scale};
  uint8_t sfb[4] = {unit_scale, unit_scale, unit_scale, unit_scale};
  ScaleType type = ScaleType::ue4m3;
  ScaledSum model = ScaledSum::blocks_zero_raises;

  static void set(uint8_t* packed, int k, uint32_t code) {
    packed[k / 2] =
        uint8_t(k % 2 ? (packed[k / 2] & 15) | code << 4 : (packed[k / 2] & 0xF0) | code);
  }
  Dot& term(int k, uint32_t x, uint32_t y) {
    set(a, k, x);
    set(b, k, y);
    return *this;
  }
  Dot& of(ScaledSum m) {
    model = m;
    return *this;
  }
  Dot& scales(int group, uint32_t x, uint32_t y) {
    sfa[group] = uint8_t(x);
    sfb[group] = uint8_t(y);
    return *this;
  }
  // All implementations, which have to agree.
  uint32_t plus(uint32_t c) const {
    uint32_t d = c, cutting = c;
    emu::mma_block_scaled({a, b, sfa, sfb, 1, 1, type, false, false}, &d, 1, true, model);
    emu::mma_block_scaled_cutting({a, b, sfa, sfb, 1, 1, type, false, false}, &cutting, 1, true,
                                  model);
    CHECK(d == cutting);
    CHECK(d == unit::scaled_model(model, a, b, sfa, sfb, type, c));
    return d;
  }
};

// One kind of random data: what makes the alignment, cutting and special paths busy.
struct Case {
  std::vector<uint8_t> a, b, sfa, sfb;
  std::vector<uint32_t> c;
  ScaleType type;

  Case(Random& r, uint32_t n, int kind) : a(128 * 32), b(n * 32), sfa(512), sfb(n * 4), c(128 * n) {
    type = kind >= 4 ? ScaleType::ue8m0 : ScaleType::ue4m3;
    for (auto* v : {&a, &b})
      for (uint8_t& x : *v) x = kind == 2 && r.below(3) ? uint8_t(r.below(2) * 0x88) : uint8_t(r());
    for (auto* v : {&sfa, &sfb})
      for (uint8_t& x : *v) x = scale(r, kind);
    for (uint32_t& x : c) x = accumulator(r);
  }
  static uint8_t scale(Random& r, int kind) {
    switch (kind) {
      case 0: return uint8_t(r());          // everything, NaN and bit 7 included
      case 1: return uint8_t(r.below(12));  // mostly subnormal
      case 2: return uint8_t(r.below(0x7F));
      case 3: return r.below(2) ? 0x7E : uint8_t(r.below(2));  // the widest gaps
      case 4: return uint8_t(r());
      default: return uint8_t(r.below(30));  // results around the subnormals
    }
  }
  static uint32_t accumulator(Random& r) {
    const uint32_t bits = uint32_t(r());
    switch (r.below(6)) {
      case 0: return bits;               // NaN and infinity included
      case 1: return bits & 0x80000000;  // zeros
      case 2: return bits & 0x807FFFFF;  // subnormal
      default: return (bits & 0x807FFFFF) | uint32_t(100 + r.below(60)) << 23;
    }
  }
};

}  // namespace mma_cases
