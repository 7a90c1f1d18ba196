// SPDX-License-Identifier: MIT
// Shared-memory and instruction descriptors against CUTLASS's values, and every bit that must not
// be set.
#include "tools/emulator/hardware/instruction_descriptor.h"
#include "tools/emulator/hardware/smem_descriptor.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;
using unit::golden;
using unit::number;

namespace {

constexpr uint64_t sw128 = 0x4000404000000040, plain = 0x0000400800800040;

Swizzle mode(const std::string& name) {
  return name == "SW128"  ? Swizzle::b128
         : name == "SW64" ? Swizzle::b64
         : name == "SW32" ? Swizzle::b32
                          : Swizzle::none;
}

SmemDescriptor decode(uint64_t bits) { return emu::decode_smem_descriptor(bits, 128, 2, "test"); }
MmaShape shape(uint32_t bits) {
  return emu::decode_instruction_descriptor(bits, MmaKind::mxf4nvf4, 16, false);
}

}  // namespace

TEST_CASE("CUTLASS's shared-memory descriptors decode to their base and k block and swizzle") {
  for (const auto& row : golden("smem_desc_kmajor_fp4")) {
    const uint32_t rows = uint32_t(number(row[2])), base = uint32_t(number(row[4]));
    const uint32_t k = 32 * uint32_t(number(row[5]));  // bytes of K before this block
    // Atoms of `span` bytes of K lie one after the other, all rows of one first.
    const uint32_t span = emu::swizzle_span(mode(row[0]));
    const uint32_t address = base + k / span * span * rows + k % span;
    if (address >= 1 << 18)
      continue;  // past the address field: such a tile exists in the table only
    const SmemDescriptor d = emu::decode_smem_descriptor(number(row[6]), rows, 2, "golden");
    CAPTURE(row[0], row[2], row[3], row[4], row[5], row[6]);
    CHECK(d.swizzle == mode(row[0]));
    CHECK(d.address == address);
    CHECK(d.stride == 8 * span);
    if (d.swizzle == Swizzle::none) CHECK(d.lead == 16 * rows);
  }
}

TEST_CASE(
    "cluster rank bits of a base address do not reach the descriptors of the CUTLASS mainloop") {
  for (const auto& row : golden("smem_desc_ab_cutlass")) {
    if (row[2] != "0") continue;
    const uint32_t base = uint32_t(number(row[1])) & 0x3FFFF, k = 32 * uint32_t(number(row[3]));
    CAPTURE(row[0], row[1], row[3]);
    CHECK(decode(number(row[4])).address == base + k);
    CHECK(decode(number(row[5])).address == base + k);
  }
}

TEST_CASE("a descriptor finds every element where CuTe stores it") {
  const char* const descriptors[] = {"0x4000404000000040", "0x8000402000000040",
                                     "0xC000401000000040", "0x0000400800800040"};
  for (const auto& row : golden("smem_swizzle_128x256_fp4")) {
    const uint32_t r = uint32_t(number(row[1])), byte = uint32_t(number(row[2])) / 2;
    uint64_t bits = 0;
    for (const char* text : descriptors)
      if (decode(number(text)).swizzle == mode(row[0])) bits = number(text);
    const uint32_t span = emu::swizzle_span(mode(row[0]));
    // Swizzled atoms follow each other after 128 rows; unswizzled columns are what LBO steps over.
    const uint32_t atom = mode(row[0]) == Swizzle::none ? 0 : byte / span;
    const uint32_t at = decode(bits + atom * span * 128 / 16).chunk(r, (byte - atom * span) / 16);
    if (at + byte % 16 - 0x400 == number(row[3])) continue;
    CAPTURE(row[0], row[1], row[2]);
    CHECK(at + byte % 16 - 0x400 == number(row[3]));
  }
}

TEST_CASE("an advance of 32 bytes along K stays inside the swizzled row") {
  const SmemDescriptor first = decode(sw128), third = decode(sw128 + 4);
  for (uint32_t r = 0; r < 128; ++r) CHECK(third.chunk(r, 1) == first.chunk(r, 5));
  // Row 9, chunk 2 of a tile at 0x400: second group of rows, line 1, chunk 2 ^ 1.
  CHECK(first.chunk(9, 2) == 0x400 + 1024 + 128 + 3 * 16);
}

TEST_CASE("every reserved or unusable descriptor field is named in the fault") {
  CHECK_FAULT(illegal_instruction, "bits 15:14", decode(sw128 | 1ull << 14));
  CHECK_FAULT(illegal_instruction, "bits 31:30", decode(sw128 | 1ull << 31));
  CHECK_FAULT(illegal_instruction, "bits 48:46", decode(sw128 & ~(1ull << 46)));
  CHECK_FAULT(illegal_instruction, "bits 48:46", decode(sw128 | 1ull << 48));
  CHECK_FAULT(illegal_instruction, "bits 51:49 (base offset) are 5", decode(sw128 | 5ull << 49));
  CHECK_FAULT(illegal_instruction, "bit 52", decode(sw128 | 1ull << 52));
  for (int bit = 53; bit <= 60; ++bit)
    CHECK_FAULT(illegal_instruction, "bits 60:53", decode(sw128 | 1ull << bit));
  CHECK_FAULT(illegal_instruction, "32-byte atoms", decode((sw128 & ~(7ull << 61)) | 1ull << 61));
  for (uint64_t code : {3, 5, 7})
    CHECK_FAULT(illegal_instruction, "which no layout has",
                decode((sw128 & ~(7ull << 61)) | code << 61));
}

TEST_CASE("strides and start addresses that no layout has are refused") {
  const auto with_stride = [](uint64_t bits, uint64_t bytes) {
    return (bits & ~(0x3FFFull << 32)) | (bytes / 16) << 32;
  };
  const auto with_lead = [](uint64_t bits, uint64_t bytes) {
    return (bits & ~(0x3FFFull << 16)) | (bytes / 16) << 16;
  };
  CHECK_FAULT(illegal_instruction, "stride offset", decode(with_stride(sw128, 512)));
  CHECK_FAULT(illegal_instruction, "stride offset", decode(with_stride(sw128, 0)));
  CHECK(decode(with_stride(sw128, 2048)).stride == 2048);
  CHECK_FAULT(illegal_instruction, "stride offset", decode(with_stride(plain, 64)));
  CHECK_FAULT(illegal_instruction, "leading offset", decode(with_lead(plain, 0)));
  CHECK(decode(with_lead(sw128, 16)).address == 0x400);                    // ignored when swizzled
  CHECK_FAULT(illegal_instruction, "swizzle pattern", decode(sw128 + 8));  // + 128 bytes
  CHECK_FAULT(illegal_instruction, "leaves 16 bytes", decode(sw128 + 7));  // + 112 bytes
}

TEST_CASE("CUTLASS's instruction descriptors decode to their shape or are refused for their ids") {
  for (const auto& row : golden("idesc_nvfp4")) {
    const uint32_t m = uint32_t(number(row[0])), n = uint32_t(number(row[1]));
    const bool pair = m == 256, zero = row[2] == "0" && row[3] == "0";
    CAPTURE(row[0], row[1], row[2], row[3]);
    for (const ScaleType type : {ScaleType::ue4m3, ScaleType::ue8m0}) {
      const uint32_t bits = uint32_t(number(row[type == ScaleType::ue4m3 ? 4 : 5]));
      const auto block16 = [&] {
        return emu::decode_instruction_descriptor(bits, MmaKind::mxf4nvf4, 16, pair);
      };
      if (!zero) {
        CHECK_FAULT(illegal_instruction, "id", block16());
        continue;
      }
      const MmaShape s = block16();
      CHECK(s.m == m);
      CHECK(s.n == n);
      CHECK(s.scale == type);
      if (pair) CHECK_FAULT(illegal_instruction, "bits 28:27", shape(bits));
    }
    const bool even = (number(row[2]) | number(row[3])) % 2 == 0;
    const auto block32 = [&] {
      return emu::decode_instruction_descriptor(uint32_t(number(row[5])), MmaKind::mxf4, 32, pair);
    };
    if (even)
      CHECK(block32().sfa_id == number(row[2]));
    else
      CHECK_FAULT(illegal_instruction, "or 2", block32());
  }
}

TEST_CASE(
    "CUTLASS's instruction descriptors of the kinds without scales decode to types and shape") {
  const struct {
    const char* name;
    MmaKind kind;
    ElementType type;
    AccumulatorType d;
  } kinds[] = {
      {"f16_f32acc", MmaKind::f16, ElementType::f16, AccumulatorType::f32},
      {"f16_f16acc", MmaKind::f16, ElementType::f16, AccumulatorType::f16},
      {"bf16_f32acc", MmaKind::f16, ElementType::bf16, AccumulatorType::f32},
      {"tf32_f32acc", MmaKind::tf32, ElementType::tf32, AccumulatorType::f32},
      {"e4m3_f32acc", MmaKind::f8f6f4, ElementType::e4m3, AccumulatorType::f32},
      {"e5m2_f32acc", MmaKind::f8f6f4, ElementType::e5m2, AccumulatorType::f32},
      {"s8_s32acc", MmaKind::i8, ElementType::s8, AccumulatorType::s32},
  };
  size_t seen = 0;
  for (const auto& row : golden("idesc_other"))
    for (const auto& k : kinds) {
      if (row[0] != k.name) continue;
      const uint32_t m = uint32_t(number(row[1]));
      const MmaShape s =
          emu::decode_instruction_descriptor(uint32_t(number(row[3])), k.kind, 0, m == 256);
      CAPTURE(row[0], row[1], row[2]);
      CHECK(s.m == m);
      CHECK(s.n == number(row[2]));
      CHECK((s.a == k.type && s.b == k.type));
      CHECK(s.d == k.d);
      ++seen;
    }
  CHECK(seen == 56);
}

TEST_CASE("what a kind without scales does not have is named in the fault") {
  constexpr uint32_t f16 = 0x08200010, i8 = 0x082004A0, f8 = 0x08200010;
  const auto decode = [](MmaKind kind, uint32_t bits, bool pair = false) {
    return emu::decode_instruction_descriptor(bits, kind, 0, pair);
  };
  const struct {
    MmaKind kind;
    uint32_t bits;
    const char* says;
  } wrong[] = {
      {MmaKind::f16, f16 | 1, "bits 1:0"},
      {MmaKind::f16, f16 | 1 << 2, "bit 2"},
      {MmaKind::f16, f16 | 1 << 3, "bit 3"},
      {MmaKind::f16, f16 ^ 0x30, "bits 5:4 (D type) are 2"},
      {MmaKind::f16, f16 | 1 << 6, "bit 6"},
      {MmaKind::f16, f16 | 2 << 7, "bits 9:7"},
      {MmaKind::f16, f16 | 4 << 10, "bits 12:10"},
      {MmaKind::f16, (f16 & ~0x30u) | 1 << 7, "does not go with bf16"},
      {MmaKind::f16, f16 | 1 << 23, "bit 23"},
      {MmaKind::f16, f16 | 1 << 29, "bit 29"},
      {MmaKind::f16, f16 | 1u << 30, "bits 31:30"},
      {MmaKind::f16, f16 | 4 << 24, "bits 28:24 (M / 16) mean M = 192"},
      {MmaKind::tf32, f16, "bits 9:7"},
      {MmaKind::tf32, 0x08200900, "bits 5:4 (D type; 1 = f32)"},
      {MmaKind::f8f6f4, f8 | 2 << 7, "bits 9:7"},
      {MmaKind::f8f6f4, f8 | 5 << 7 | 1 << 15, "bit 15"},
      {MmaKind::f8f6f4, f8 | 3 << 10 | 1 << 16, "bit 16"},
      {MmaKind::i8, i8 | 1 << 13, "negate"},
      {MmaKind::i8, i8 & ~0x20u, "bits 5:4"},
      {MmaKind::mxf8f6f4, 0x08200000, "ue8m0 scales only"},
      {MmaKind::mxf8f6f4, 0x88A00000, "bit 31"},
      {MmaKind::mxf8f6f4, 0x08A00000 | 2 << 7, "bits 9:7"},
  };
  for (const auto& w : wrong) CHECK_FAULT(illegal_instruction, w.says, decode(w.kind, w.bits));
  CHECK(decode(MmaKind::i8, i8 | 1 << 3).saturate);
  CHECK(decode(MmaKind::f16, f16 | 3 << 15).transpose_a);
  CHECK(decode(MmaKind::mxf8f6f4, 0x08A00000 | 3 << 4 | 1 << 29).sfb_id == 3);
  CHECK_FAULT(illegal_instruction, "must be 128 or 256", decode(MmaKind::f16, 0x04100010, true));
}

// Tables 39 and 52.
TEST_CASE("N of integers and of transposed bytes goes in larger steps") {
  const auto steps = [](MmaKind kind, uint32_t bits, bool pair) {
    std::vector<uint32_t> legal;
    for (uint32_t n = 8; n <= 256; n += 8) try {
        emu::decode_instruction_descriptor(bits | n / 8 << 17, kind, 0, pair);
        legal.push_back(n);
      } catch (const emu::Fault&) {
      }
    return legal;
  };
  const auto multiples = [](uint32_t step) {
    std::vector<uint32_t> all;
    for (uint32_t n = step; n <= 256; n += step) all.push_back(n);
    return all;
  };
  std::vector<uint32_t> i8 = {8, 16, 24, 32};
  for (uint32_t n = 48; n <= 256; n += 16) i8.push_back(n);
  CHECK(steps(MmaKind::i8, 0x080004A0, false) == i8);
  CHECK(steps(MmaKind::i8, 0x080004A0, true) == multiples(32));
  CHECK(steps(MmaKind::f8f6f4, 0x08000010, false) == multiples(8));
  CHECK(steps(MmaKind::f8f6f4, 0x08010010, false) == multiples(16));
  CHECK(steps(MmaKind::f8f6f4, 0x08010010, true) == multiples(32));
  CHECK(steps(MmaKind::f16, 0x08010010, true) == multiples(16));
}

TEST_CASE("every reserved or wrong bit of an instruction descriptor is named in the fault") {
  constexpr uint32_t good = 0x08200480;
  CHECK(shape(good).n == 128);
  CHECK(shape(good | 1 << 13).negate_a);
  CHECK(shape(good | 1 << 14).negate_b);
  const struct {
    uint32_t flip;
    const char* says;
  } wrong[] = {
      {1u << 0, "bits 1:0"},    {1u << 1, "bits 1:0"},    {1u << 2, "bit 2"},
      {1u << 3, "bit 3"},       {1u << 4, "bits 5:4"},    {1u << 5, "bits 5:4"},
      {1u << 6, "bit 6"},       {1u << 9, "bits 9:7"},    {1u << 11, "bits 11:10"},
      {1u << 12, "bit 12"},     {1u << 15, "bit 15"},     {1u << 16, "bit 16"},
      {1u << 24, "bits 26:24"}, {1u << 26, "bits 26:24"}, {3u << 27, "bits 28:27"},
      {1u << 29, "bits 30:29"}, {1u << 31, "bit 31"},
  };
  for (const auto& w : wrong) CHECK_FAULT(illegal_instruction, w.says, shape(good ^ w.flip));
  CHECK_FAULT(illegal_instruction, "ue4m3",
              emu::decode_instruction_descriptor(good, MmaKind::mxf4, 32, false));
  CHECK_FAULT(illegal_instruction, "16-element blocks",
              emu::decode_instruction_descriptor(good, MmaKind::mxf4nvf4, 32, false));
}

TEST_CASE("N goes in steps of 8 for one CTA and of 16 for a pair") {
  for (uint32_t n = 0; n <= 504; n += 8) {
    const uint32_t one = 0x08000480 | (n / 8) << 17, two = 0x10000480 | (n / 8) << 17;
    CAPTURE(n);
    if (n >= 8 && n <= 256)
      CHECK(shape(one).n == n);
    else
      CHECK_FAULT(illegal_instruction, "bits 22:17", shape(one));
    const auto pair = [&] {
      return emu::decode_instruction_descriptor(two, MmaKind::mxf4nvf4, 16, true).n;
    };
    if (n >= 16 && n <= 256 && n % 16 == 0)
      CHECK(pair() == n);
    else
      CHECK_FAULT(illegal_instruction, "steps of 16", pair());
  }
}
