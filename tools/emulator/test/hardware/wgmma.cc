// SPDX-License-Identifier: MIT
// wgmma's arithmetic against the tests' own model, and its descriptors' rules.
#include "tools/emulator/arithmetic/mma_dot.h"
#include "tools/emulator/hardware/wgmma_descriptor.h"

#include "tools/emulator/test/models/wgmma.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;
using support::Wgmma;
using support::WgmmaData;

namespace {

// What differs between the emulator and the model, over all 64 x n elements.
size_t differences(const Wgmma& w, const WgmmaData& data) {
  constexpr ElementType types[] = {ElementType::f16,  ElementType::bf16, ElementType::tf32,
                                   ElementType::e4m3, ElementType::e5m2, ElementType::s8,
                                   ElementType::u8};
  constexpr AccumulatorType results[] = {AccumulatorType::f32, AccumulatorType::f16,
                                         AccumulatorType::s32};
  emu::DotOperands o{};
  o.a = data.a.data(), o.b = data.b.data();
  o.rows = 64, o.n = uint32_t(w.n);
  o.a_type = types[int(w.a)], o.b_type = types[int(w.b)], o.d_type = results[int(w.d)];
  o.negate_a = w.negate_a, o.negate_b = w.negate_b, o.saturate = w.satfinite;
  o.accumulate = w.accumulate, o.zero_raises = true, o.narrow = w.element_bytes() == 1;
  std::vector<uint32_t> got = data.c;
  emu::mma_dot(o, got.data(), size_t(w.n));
  const std::vector<uint32_t> want = support::wgmma_expected(w, data);
  size_t wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i]) continue;
    if (!wrong)
      WARN(w.name() << ", element " << i << ": " << std::hex << got[i] << ", not " << want[i]);
    ++wrong;
  }
  return wrong;
}

}  // namespace

TEST_CASE("wgmma's arithmetic equals the plain model on random data of every kind and type") {
  using T = support::NumberType;
  using R = support::SumType;
  const struct {
    T a, b;
    R d;
  } types[] = {{T::f16, T::f16, R::f32},   {T::f16, T::f16, R::f16},   {T::bf16, T::bf16, R::f32},
               {T::tf32, T::tf32, R::f32}, {T::e4m3, T::e4m3, R::f32}, {T::e5m2, T::e4m3, R::f32},
               {T::e4m3, T::e5m2, R::f16}, {T::s8, T::u8, R::s32},     {T::u8, T::s8, R::s32}};
  std::mt19937_64 random(511);
  for (const auto& t : types)
    for (int i = 0; i < 2 * support::kDataKinds; ++i) {
      Wgmma w;
      w.a = t.a, w.b = t.b, w.d = t.d;
      w.n = 8 * (1 + int(random() % 12));
      w.negate_a = w.d != R::s32 && random() % 2, w.negate_b = w.d != R::s32 && random() % 2;
      w.accumulate = random() % 4, w.satfinite = random() % 2;
      CHECK(differences(w, support::random_data(w, random, i % support::kDataKinds)) == 0);
    }
}

TEST_CASE("wgmma cuts sums toward zero and terms to 25 fractional bits of the largest") {
  // a[k] * b[k] in fp16: 1.0 = 0x3C00.
  Wgmma w;
  WgmmaData data{std::vector<uint8_t>(64 * 32), std::vector<uint8_t>(8 * 32),
                 std::vector<uint32_t>(64 * 8)};
  const auto put = [](std::vector<uint8_t>& rows, int k, uint16_t code) {
    rows[size_t(2 * k)] = uint8_t(code), rows[size_t(2 * k + 1)] = uint8_t(code >> 8);
  };
  const auto d = [&] {
    CHECK(differences(w, data) == 0);
    return support::wgmma_expected(w, data)[0];
  };
  put(data.a, 0, 0x3C00), put(data.b, 0, 0x3C00);  // 1
  put(data.a, 9, 0x0400), put(data.b, 9, 0x1400);  // 2^-14 * 2^-10 = 2^-24
  CHECK(d() == 0x3F800000);                        // an fp32 ulp of 1 is 2^-23: cut
  put(data.a, 5, 0x0400), put(data.b, 5, 0x1400);
  CHECK(d() == 0x3F800001);  // two halves of an ulp, kept by the aligner
  put(data.a, 5, 0x0400), put(data.b, 5, 0x0C00);
  data.c[0] = 0x33400000;  // 2^-24 + 2^-26 + (2^-25 + 2^-26) would be an ulp
  CHECK(d() == 0x3F800000);
  data.c[0] = 0xBF800000;    // -1
  CHECK(d() == 0x33800000);  // 2^-24; the 2^-26 is gone
}

TEST_CASE("a wgmma descriptor says which of its fields are wrong") {
  const auto decode = [](uint64_t bits, uint32_t rows, bool mn) {
    return emu::decode_wgmma_descriptor(bits, rows, mn, "B");
  };
  const uint64_t good = 0x4000004000010040;  // 128-byte swizzle, stride 1024, address 0x400
  decode(good, 256, false);
  decode(good + 2, 256, false);  // 32 bytes further along K
  CHECK_FAULT(illegal_instruction, "leaves 16 bytes", decode(good + 7, 8, false));
  CHECK_FALSE(decode(good, 8, false).starts_inside_pattern());
  CHECK_FALSE(decode(good + 2, 8, false).starts_inside_pattern());  // 32 bytes along K
  CHECK(decode(good + 8, 8, false).starts_inside_pattern());
  // Row 3 of a tile that starts at row 1 of the pattern has the chunks of the pattern's row 4.
  CHECK(decode(good + 8, 8, false).k_chunk(3, 0) == decode(good, 8, false).k_chunk(4, 0));
  CHECK_FAULT(illegal_instruction, "bits 48:46", decode(good | 1ull << 46, 8, false));
  CHECK_FAULT(illegal_instruction, "bits 51:49", decode(good | 1ull << 49, 8, false));
  CHECK_FAULT(illegal_instruction, "bits 61:52", decode(good | 1ull << 61, 8, false));
  CHECK_FAULT(illegal_instruction, "bits 45:32", decode(good - (1ull << 32), 16, false));
  decode(good - (1ull << 32), 8, false);  // one group of rows needs no stride
  CHECK_FAULT(illegal_instruction, "bits 29:16", decode(0x0000000800000040, 8, false));
  decode(0x0000000800080040, 8, false);
  // MN-major: 64 elements across, then lead; 8 of k, then stride.
  decode(0x4000004000800040, 256, true);
  CHECK_FAULT(illegal_instruction, "bits 29:16", decode(0x4000004000010040, 128, true));
  CHECK_FAULT(illegal_instruction, "bits 45:32", decode(0x4000000000800040, 8, true));
  CHECK_FAULT(illegal_instruction, "not at the start", decode(0x4000004000800042, 8, true));
}
