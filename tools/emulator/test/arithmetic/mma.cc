// SPDX-License-Identifier: MIT
// The block-scaled MMA: values worked out by hand, and the fast path against the plain model.
#include "tools/emulator/test/arithmetic/mma_cases.h"

using namespace mma_cases;

namespace {

constexpr uint32_t one = 0x3F800000, largest = 0x7F7FFFFF;
constexpr uint32_t half_code = 1, one_code = 2, six_code = 7, minus = 8;

}  // namespace

TEST_CASE("every element and scale code has the value of the format's table") {
  for (const auto& row : unit::golden("numeric_decode")) {
    const uint32_t code = uint32_t(unit::number(row[1])), bits = uint32_t(unit::number(row[2]));
    const bool is_nan = (bits & 0x7FFFFFFF) > infinity, is_zero = (bits & 0x7FFFFFFF) == 0;
    const uint32_t want = is_nan ? canonical_nan : is_zero ? 0 : bits;
    CAPTURE(row[0], row[1]);
    if (row[0] == "e2m1") {
      CHECK(Dot().term(37, code, one_code).plus(0) == want);
      CHECK(Dot().term(12, one_code, code).plus(0) == want);
    } else if (row[0] == "ue4m3") {
      CHECK(Dot().term(16, one_code, one_code).scales(1, code, unit_scale).plus(0) == want);
      CHECK(Dot().term(63, one_code, one_code).scales(3, unit_scale, code).plus(0) == want);
    } else if (row[0] == "ue8m0") {
      Dot d;
      d.type = ScaleType::ue8m0;
      for (int g = 1; g < 4; ++g) d.scales(g, 0, 0);  // far below, or they raise the exponent
      CHECK(d.term(5, one_code, one_code).scales(0, code, 127).plus(0) == want);
    }
  }
}

TEST_CASE("the sum is rounded toward zero and not to nearest") {
  const uint32_t sixteen = 0x41800000;                        // its ulp is 2^-19
  Dot d = Dot().term(0, half_code, 3).scales(0, 0x01, 0x01);  // 1/2 * 3/2 * 2^-18 = 1.5 ulp
  CHECK(d.plus(sixteen) == sixteen + 1);
  CHECK(d.term(0, half_code | minus, 3).plus(sixteen | 1u << 31) == (sixteen | 1u << 31) + 1);
  // Below 16 the ulp is half as large: 16 - 3 * 2^-20 is exact.
  CHECK(d.plus(sixteen) == sixteen - 3);
}

TEST_CASE("terms lose what lies below 35 fractional bits of the largest exponent") {
  // One group gives (9/8 * 2^-6)^2 / 4 = 81 * 2^-20, with exponent -12. Another group and C cancel
  // each other.
  Dot d = Dot().term(0, half_code, half_code).scales(0, 0x09, 0x09);
  d.term(16, 7, 6).term(17, 6, 4);                           // 6 * 4 + 4 * 2 = 32
  const uint32_t exact = 0x38A20000, cut = 0x38A00000;       // 81 * 2^-20, 80 * 2^-20
  CHECK(d.scales(1, 0x60, 0x60).plus(0xC7000000) == exact);  // -2^15: 35 bits reach 2^-20
  CHECK(d.scales(1, 0x68, 0x60).plus(0xC7800000) == cut);    // -2^16: they reach 2^-19
  Dot n = Dot().term(0, half_code | minus, half_code).scales(0, 0x09, 0x09);
  n.term(16, 7 | minus, 6).term(17, 6 | minus, 4).scales(1, 0x68, 0x60);
  CHECK(n.plus(0x47800000) == (cut | 1u << 31));  // toward zero on both sides
}

TEST_CASE("a zero group raises the exponent in one reading of the model and not in the other") {
  Dot d = Dot().term(0, half_code, half_code).scales(0, 0x01, 0x01).scales(1, 0x7E, 0x7E);
  CHECK(d.plus(0) == 0);  // 2^-20 lies below 2^(16 - 35)
  d.model = ScaledSum::blocks_zero_rests;
  CHECK(d.plus(0) == 0x35800000);  // 2^-20
  d.model = ScaledSum::blocks_zero_raises;
  d.scales(1, 0, 0);  // a zero scale has the smallest exponent
  CHECK(d.plus(0) == 0x35800000);
}

TEST_CASE("a NaN scale or accumulator gives the canonical NaN") {
  for (uint32_t code : {0x7Fu, 0xFFu}) {
    CHECK(Dot().scales(2, code, unit_scale).plus(one) == canonical_nan);
    CHECK(Dot().scales(2, unit_scale, code).plus(one) == canonical_nan);
  }
  CHECK(Dot().plus(0x7F800001) == canonical_nan);
  CHECK(Dot().plus(0xFFC12345) == canonical_nan);
  CHECK(Dot().scales(0, 0x7F, unit_scale).plus(infinity) == canonical_nan);
}

TEST_CASE("an infinite accumulator stays and a sum beyond fp32 becomes infinite") {
  CHECK(Dot().term(0, six_code, six_code).plus(infinity) == infinity);
  CHECK(Dot().term(0, six_code, six_code).plus(0xFF800000) == 0xFF800000);
  CHECK(Dot().term(0, six_code, six_code).plus(largest) == largest);  // toward zero
  Dot d = Dot().term(0, six_code | minus, six_code);
  d.type = ScaleType::ue8m0;
  for (int g = 0; g < 4; ++g) d.scales(g, 127, 127);
  CHECK(d.scales(0, 200, 200).plus(0) == 0xFF800000);
  CHECK(Dot().plus(0xFF7FFFFF) == 0xFF7FFFFF);
}

TEST_CASE("zero has no sign and subnormal results are kept") {
  CHECK(Dot().plus(0x80000000) == 0);
  CHECK(Dot().term(0, minus, six_code).plus(0) == 0);
  CHECK(Dot().term(0, one_code, one_code).plus(0xBF800000) == 0);
  // Zero groups with scale 1 raise the exponent so far that a subnormal accumulator is cut away.
  Dot zeros;
  CHECK(zeros.plus(0x80000001) == 0);
  zeros.model = ScaledSum::blocks_zero_rests;
  CHECK(zeros.plus(0x80000001) == 0x80000001);
  Dot d = Dot().term(0, one_code | minus, one_code);
  d.type = ScaleType::ue8m0;
  for (int g = 0; g < 4; ++g) d.scales(g, 0, 0);
  CHECK(d.scales(0, 0, 127 - 20).plus(0) == 0x80000004);  // -2^-147
  CHECK(d.scales(0, 0, 127 - 24).plus(0) == 0x80000000);  // -2^-151 is cut, its sign is not
  CHECK(d.plus(0x00000005) == 0x00000004);                // 5 - 1/4 units
}

TEST_CASE("the 64 products reach their own groups") {
  for (int k = 0; k < 64; ++k) {
    Dot d = Dot().term(k, one_code, six_code);
    for (int g = 0; g < 4; ++g)
      d.scales(g, unit_scale + 8 * uint32_t(g), unit_scale);  // 1, 2, 4, 8
    CAPTURE(k);
    CHECK(d.plus(0) == 0x40C00000 + (uint32_t(k / 16) << 23));  // 6 * 2^group
  }
}

TEST_CASE("negating an operand negates the products and not the accumulator") {
  Random r{7};
  const Case x(r, 8, 2);
  const auto run = [&](bool na, bool nb, uint32_t c) {
    std::vector<uint32_t> d(128 * 8, c);
    emu::mma_block_scaled(
        {x.a.data(), x.b.data(), x.sfa.data(), x.sfb.data(), 128, 8, x.type, na, nb}, d.data(), 8,
        true, ScaledSum::groups);
    return d;
  };
  const auto plain = run(false, false, 0), negated = run(true, false, 0);
  CHECK(run(true, true, one) == run(false, false, one));
  CHECK(run(false, true, one) == run(true, false, one));
  size_t wrong = 0, nonzero = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    nonzero += plain[i] != 0;
    wrong += plain[i] ? negated[i] != (plain[i] ^ 0x80000000) : negated[i] != 0;
  }
  CHECK(wrong == 0);
  CHECK(nonzero > 500);
}
