// SPDX-License-Identifier: MIT
// The argument rules of cuTensorMapEncodeTiled, each just inside and just outside.
#include <cstring>
#include <utility>

#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

namespace {

constexpr uint32_t u8 = 0, f32 = 7, u4_align8 = 13, u4_align16 = 14;

// A valid rank-3 byte map; tests change one argument at a time.
struct Arguments {
  alignas(64) TensorMap map;
  uint64_t dims[5] = {4096, 300, 4, 1, 1};
  uint64_t strides[4] = {4096, 4096 * 300, 0, 0};
  uint32_t box[5] = {128, 128, 1, 1, 1};
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  TensorMapArguments a;

  Arguments() {
    a.map = &map;
    a.type = u8;
    a.rank = 3;
    a.address = 0x7f1000000000;
    a.dims = dims;
    a.strides = strides;
    a.box = box;
    a.element_strides = steps;
    a.swizzle = 3;
  }
  std::string encode(int capability = 100) { return emu::encode_tiled(a, capability, &map); }
  bool good(int capability = 100) { return encode(capability).empty(); }
};

TensorMap decoded(const emu::EncodedMap& map) {
  return emu::decode_tensor_map(map.words.data(), "load");
}

}  // namespace

TEST_CASE("a tensor map keeps its arguments in fields of 128 bytes") {
  Arguments x;
  REQUIRE(x.encode() == "");
  const TensorMap m = decoded(x.map);
  CHECK(m.rank == 3);
  CHECK(m.address == 0x7f1000000000);
  CHECK(m.dim(1) == 300);
  CHECK(m.stride(2) == 4096 * 300);
  CHECK(m.row_bytes() == 128);
  CHECK(m.box_bytes() == 16384);
  CHECK(m.swizzle == 3);
  CHECK(m.atomicity == 0);
}

TEST_CASE("ranks and types and modes outside the enumerations are refused") {
  Arguments x;
  for (uint32_t rank = 0; rank <= 6; ++rank) {
    x.a.rank = rank;
    CHECK(x.good() == (rank >= 1 && rank <= 5));
  }
  Arguments y;
  y.a.type = 16;
  CHECK_FALSE(y.good());
  Arguments z;
  z.a.interleave = 3;
  CHECK_FALSE(z.good());
  Arguments s;
  s.a.swizzle = 7;
  CHECK_FALSE(s.good());
  Arguments l;
  l.a.l2_promotion = 3;
  CHECK(l.good());
  l.a.l2_promotion = 4;
  CHECK_FALSE(l.good());
}

TEST_CASE("the global address is 16-byte aligned and the map itself 64-byte aligned") {
  Arguments x;
  x.a.address += 16;
  CHECK(x.good());
  x.a.address += 8;
  CHECK_FALSE(x.good());
  Arguments y;
  y.a.map = reinterpret_cast<const char*>(&y.map) + 32;
  CHECK_FALSE(y.good());
  Arguments z;
  z.a.address = 0;
  CHECK(z.good());  // templates are encoded before the address is known
}

TEST_CASE("dimensions are 1 to 2^32") {
  Arguments x;
  x.dims[1] = 1ull << 32;
  CHECK(x.good());
  CHECK(x.map.dim(1) == 1ull << 32);
  x.dims[1] += 1;
  CHECK_FALSE(x.good());
  x.dims[1] = 0;
  CHECK_FALSE(x.good());
  x.dims[1] = 1;
  CHECK(x.good());
}

TEST_CASE("strides are zero or multiples of 16 below 2^40") {
  Arguments x;
  x.strides[0] = 0;
  CHECK(x.good());
  x.strides[0] = 2048 + 16;
  CHECK(x.good());
  x.strides[0] = 2048 + 8;
  CHECK_FALSE(x.good());
  x.strides[0] = (1ull << 40) - 16;
  CHECK(x.good());
  x.strides[0] = 1ull << 40;
  CHECK_FALSE(x.good());
}

TEST_CASE("boxes are 1 to 256 in rows of 16 bytes up to the swizzle span") {
  Arguments x;
  x.box[1] = 256;
  CHECK(x.good());
  x.box[1] = 257;
  CHECK_FALSE(x.good());
  x.box[1] = 0;
  CHECK_FALSE(x.good());
  Arguments y;
  y.box[0] = 144;
  CHECK_FALSE(y.good());
  y.a.swizzle = 0;
  CHECK(y.good());
  y.box[0] = 24;
  CHECK_FALSE(y.good());
  y.a.swizzle = 1;
  y.box[0] = 32;
  CHECK(y.good());
  y.box[0] = 48;
  CHECK_FALSE(y.good());
  y.a.swizzle = 2;
  y.box[0] = 64;
  CHECK(y.good());
  y.box[0] = 80;
  CHECK_FALSE(y.good());
}

TEST_CASE("element strides are 1 to 8 and the first is ignored without interleave") {
  Arguments x;
  x.steps[1] = 8;
  CHECK(x.good());
  x.steps[1] = 9;
  CHECK_FALSE(x.good());
  x.steps[1] = 0;
  CHECK_FALSE(x.good());
  Arguments y;
  y.steps[0] = 9;
  CHECK(y.good());
}

TEST_CASE("NaN fill is for floating-point types") {
  Arguments x;
  x.a.oob_fill = 1;
  CHECK_FALSE(x.good());
  x.a.type = f32;
  x.box[0] = 32;
  CHECK(x.good());
  x.a.oob_fill = 2;
  CHECK_FALSE(x.good());
}

TEST_CASE(
    "interleaved maps have rank 3 and more and 32-byte ones their own alignment and swizzle") {
  Arguments x;
  x.a.interleave = 1;
  CHECK(x.good());
  x.a.rank = 2;
  CHECK_FALSE(x.good());
  Arguments y;
  y.a.interleave = 2;
  CHECK_FALSE(y.good());
  y.a.swizzle = 1;
  CHECK(y.good());
  y.a.address += 16;
  CHECK_FALSE(y.good());
}

TEST_CASE("packed types and atom swizzles need compute capability 10.0") {
  Arguments x;
  x.a.type = u4_align8, x.box[0] = 256, x.dims[0] = 8192;
  CHECK(x.good(100));
  CHECK_FALSE(x.good(90));
  CHECK(x.map.row_bytes() == 128);
  x.dims[0] = 8191;
  CHECK_FALSE(x.good());
  Arguments y;
  y.a.swizzle = 4;
  CHECK(y.good(103));
  CHECK_FALSE(y.good(90));
  Arguments z;
  CHECK(z.good(90));
}

TEST_CASE("16-byte aligned packed maps have one box width and wider alignment") {
  Arguments x;
  x.a.type = u4_align16, x.box[0] = 128;
  CHECK(x.good());
  x.box[0] = 256;
  CHECK_FALSE(x.good());
  x.box[0] = 128;
  x.dims[0] = 4096 + 64;
  CHECK_FALSE(x.good());
  x.dims[0] = 4096;
  x.a.address += 16;
  CHECK_FALSE(x.good());
  x.a.address += 16;
  x.a.swizzle = 1;
  CHECK_FALSE(x.good());
}

TEST_CASE("null arrays are refused and strides are not needed for rank 1") {
  Arguments x;
  x.a.strides = nullptr;
  CHECK_FALSE(x.good());
  x.a.rank = 1;
  CHECK(x.good());
  x.a.box = nullptr;
  CHECK_FALSE(x.good());
}

TEST_CASE(
    "bytes that are no tensor map of ours are faults and so are maps that TMA does not do here") {
  Arguments x;
  REQUIRE(x.good());
  const emu::EncodedMap good = x.map;
  for (const auto& [word, bit] : {std::pair(15, 0),
                                  {1, 0},
                                  {1, 3},
                                  {1, 19},
                                  {1, 31},
                                  {3, 48},
                                  {6, 47},
                                  {7, 32},
                                  {8, 5},
                                  {9, 63},
                                  {10, 1},
                                  {11, 1},
                                  {12, 8}}) {
    CAPTURE(word, bit);
    emu::EncodedMap changed = good;
    changed.words[size_t(word)] ^= 1ull << bit;
    CHECK_FAULT(illegal_instruction, "cuTensorMapEncodeTiled", decoded(changed));
  }
  for (uint64_t type : {11, 15}) {
    emu::EncodedMap changed = good;
    changed.words[1] |= type << 7;
    CHECK_FAULT(illegal_instruction, "cuTensorMapEncodeTiled", decoded(changed));
  }
  const auto refused = [](Arguments& y) {
    REQUIRE(y.encode() == "");
    return unit::fault(emu::FaultKind::illegal_instruction, [&] { decoded(y.map); });
  };
  Arguments interleaved;
  interleaved.a.interleave = 1;
  CHECK(unit::says(refused(interleaved), "interleaved"));
}

TEST_CASE("the 128 bytes of a tensor map are a driver's where one was seen") {
  Arguments x;
  const uint64_t dims[5] = {0x1000, 0x23, 0x45, 0x67, 1ull << 32};
  const uint64_t strides[4] = {0x1230, 0x456780, 0x89ABCDEF00, 0xFFFFFFFFF0};
  const uint32_t box[5] = {64, 3, 5, 2, 1}, steps[5] = {1, 2, 3, 4, 8};
  x.a.rank = 5;
  x.a.type = 9;  // bf16, whose code is 10
  x.a.dims = dims, x.a.strides = strides, x.a.box = box, x.a.element_strides = steps;
  x.a.l2_promotion = 2;
  x.a.oob_fill = 1;
  REQUIRE(x.encode() == "");
  emu::EncodedMap map = x.map;
  const uint64_t expected[10] = {
      0x7f1000000000,
      0x123ull << 32 | 1 << 21 | 2 << 17 | 1 << 15 | 3 << 13 | 10 << 7 | 4 << 4,
      0x9ABCDEF0ull << 32 | 0x45678,
      0xF800ull << 32 | 0xFFFFFFFF,
      0x22ull << 32 | 0xFFF,
      0x66ull << 32 | 0x44,
      63ull << 56 | 073210ull << 32 | 0xFFFFFFFF,
      1 << 16 | 4 << 8 | 2,
      0,
      0};
  for (size_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    CHECK(map.words[i] == expected[i]);
  }
  // What CUTLASS and hosts of grouped kernels do to one.
  map.words[1] &= ~(1ull << 21);
  map.words[0] = 0x7f2000000000;
  uint32_t halves[32];
  memcpy(halves, map.words.data(), sizeof halves);
  halves[8] = 511;
  halves[9] = 9;
  memcpy(map.words.data(), halves, sizeof halves);
  const TensorMap m = decoded(map);
  CHECK(m.address == 0x7f2000000000);
  CHECK(m.dim(0) == 512);
  CHECK(m.dim(1) == 10);
  CHECK(m.dim(4) == 1ull << 32);
  CHECK(m.stride(3) == 0x89ABCDEF00);
  CHECK(m.stride(4) == 0xFFFFFFFFF0);
  CHECK(m.element_strides[4] == 8);
  CHECK(m.type == 9);
}

TEST_CASE("every type and swizzle and corner of a tensor map comes back from its 128 bytes") {
  for (uint32_t type = 0; type < 16; ++type) {
    Arguments x;
    x.a.type = type;
    x.box[0] = type >= u4_align16 ? 128 : type == u4_align8 ? 64 : 16;
    REQUIRE(x.encode() == "");
    CHECK(decoded(x.map).type == type);
  }
  for (uint32_t swizzle = 0; swizzle < 7; ++swizzle) {
    Arguments x;
    x.box[0] = 32;
    x.a.swizzle = swizzle;
    REQUIRE(x.encode() == "");
    const TensorMap m = decoded(x.map);
    CHECK((m.atomicity ? 3u + m.atomicity : m.swizzle) == swizzle);
  }
  Arguments x;
  const int32_t lower[] = {-3}, upper[] = {2};
  REQUIRE(emu::encode_im2col(x.a, {lower, upper, 64, 500}, 100, &x.map) == "");
  const TensorMap m = decoded(x.map);
  CHECK(m.im2col == 1);
  CHECK(m.pixels == 500);
  CHECK(m.box[0] == 64);
  CHECK(m.lower[0] == -3);
  CHECK(m.upper[0] == 2);
}

TEST_CASE("every field of a tensor map can be replaced and the rules hold when it is used") {
  Arguments x;
  REQUIRE(x.good());
  using emu::MapField;
  emu::replace_field(x.map, MapField::global_address, 0, 0x7f2000000000);
  emu::replace_field(x.map, MapField::global_dim, 2, 7);
  emu::replace_field(x.map, MapField::global_stride, 1, 1 << 20);
  emu::replace_field(x.map, MapField::box_dim, 1, 5);
  emu::replace_field(x.map, MapField::element_stride, 2, 3);
  emu::replace_field(x.map, MapField::swizzle_atomicity, 0, 3);
  TensorMap m = decoded(x.map);
  CHECK(m.address == 0x7f2000000000);
  CHECK(m.dim(2) == 7);
  CHECK(m.stride(2) == 1 << 20);
  CHECK(m.box[1] == 5);
  CHECK(m.element_strides[2] == 3);
  CHECK(m.atomicity == 3);
  emu::replace_field(x.map, MapField::swizzle_mode, 0, 2);
  CHECK_FAULT(illegal_instruction, "atomicity", decoded(x.map));
  emu::replace_field(x.map, MapField::swizzle_atomicity, 0, 0);
  emu::replace_field(x.map, MapField::swizzle_mode, 0, 3);
  emu::replace_field(x.map, MapField::rank, 0, 1);
  CHECK(decoded(x.map).rank == 2);
  emu::replace_field(x.map, MapField::elemtype, 0, 10);
  emu::replace_field(x.map, MapField::box_dim, 0, 64);
  emu::replace_field(x.map, MapField::fill_mode, 0, 1);
  CHECK(decoded(x.map).element_bits() == 16);
  emu::replace_field(x.map, MapField::interleave_layout, 0, 2);
  CHECK_FAULT(illegal_instruction, "rank 2", decoded(x.map));
  emu::replace_field(x.map, MapField::interleave_layout, 0, 0);
  emu::replace_field(x.map, MapField::global_address, 0, 8);
  CHECK_FAULT(illegal_instruction, "16-byte aligned", decoded(x.map));
  CHECK_FAULT(illegal_instruction, "no tensor map has",
              emu::replace_field(x.map, MapField::global_stride, 4, 16));
  for (const auto& [field, value] : {std::pair(MapField::rank, 5ull),
                                     {MapField::global_stride, 24},
                                     {MapField::box_dim, 0},
                                     {MapField::global_stride, 1ull << 40},
                                     {MapField::box_dim, 257},
                                     {MapField::element_stride, 0},
                                     {MapField::global_dim, 0}})
    CHECK_FAULT(illegal_instruction, "no tensor map has",
                emu::replace_field(x.map, field, 0, value));
}

TEST_CASE(
    "a tensor map whose box somebody has overwritten is a fault and not an overrun of the host") {
  Arguments x;
  REQUIRE(x.good());
  emu::EncodedMap map = x.map;
  map.words[6] |= 0xFFull << 56;
  CHECK_FAULT(illegal_instruction, "boxDim[0]", decoded(map));
}
