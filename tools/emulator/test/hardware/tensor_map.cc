// SPDX-License-Identifier: MIT
// The argument rules of cuTensorMapEncodeTiled, each just inside and just outside.
#include "tools/emulator/hardware/tensor_map.h"

#include "tools/emulator/test/support/unit_support.h"

using emu::TensorMap;
using emu::TensorMapArguments;

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

}  // namespace

TEST_CASE("a tensor map keeps its arguments in fields of 128 bytes") {
  Arguments x;
  REQUIRE(x.encode() == "");
  const TensorMap m = emu::decode_tensor_map(&x.map, "test");
  CHECK(m.rank == 3);
  CHECK(m.address == 0x7f1000000000);
  CHECK(m.dim(1) == 300);
  CHECK(m.stride(2) == 4096 * 300);
  CHECK(m.row_bytes() == 128);
  CHECK(m.box_bytes() == 16384);
  CHECK(m.swizzle == 3);
  CHECK(m.atomicity == 0);
}

TEST_CASE("ranks, types and modes outside the enumerations are refused") {
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

TEST_CASE("strides are multiples of 16 below 2^40, zero included") {
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

TEST_CASE("boxes are 1 to 256, in rows of 16 bytes up to the swizzle span") {
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

TEST_CASE("element strides are 1 to 8, and the first is ignored without interleave") {
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

TEST_CASE("interleaved maps have rank 3 and more, 32-byte ones their own alignment and swizzle") {
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

TEST_CASE("null arrays are refused, and strides are not needed for rank 1") {
  Arguments x;
  x.a.strides = nullptr;
  CHECK_FALSE(x.good());
  x.a.rank = 1;
  CHECK(x.good());
  x.a.box = nullptr;
  CHECK_FALSE(x.good());
}

TEST_CASE("bytes that are no tensor map of ours, and maps that TMA does not do here, are faults") {
  Arguments x;
  REQUIRE(x.good());
  x.map.magic ^= 1;
  CHECK_FAULT(illegal_instruction, "cuTensorMapEncodeTiled",
              emu::decode_tensor_map(&x.map, "load"));
  const auto refused = [](Arguments& y) {
    REQUIRE(y.encode() == "");
    return unit::fault(emu::FaultKind::illegal_instruction,
                       [&] { emu::decode_tensor_map(&y.map, "load"); });
  };
  Arguments interleaved;
  interleaved.a.interleave = 1;
  CHECK(unit::says(refused(interleaved), "interleaved"));
}

TEST_CASE("every field of a tensor map can be replaced, and the rules hold when it is used") {
  Arguments x;
  REQUIRE(x.good());
  using emu::MapField;
  emu::replace_field(x.map, MapField::global_address, 0, 0x7f2000000000);
  emu::replace_field(x.map, MapField::global_dim, 2, 7);
  emu::replace_field(x.map, MapField::global_stride, 1, 1 << 20);
  emu::replace_field(x.map, MapField::box_dim, 1, 5);
  emu::replace_field(x.map, MapField::element_stride, 2, 3);
  emu::replace_field(x.map, MapField::swizzle_atomicity, 0, 3);
  TensorMap m = emu::decode_tensor_map(&x.map, "load");
  CHECK(m.address == 0x7f2000000000);
  CHECK(m.dim(2) == 7);
  CHECK(m.stride(2) == 1 << 20);
  CHECK(m.box[1] == 5);
  CHECK(m.element_strides[2] == 3);
  CHECK(m.atomicity == 3);
  emu::replace_field(x.map, MapField::swizzle_mode, 0, 2);
  CHECK_FAULT(illegal_instruction, "atomicity", emu::decode_tensor_map(&x.map, "load"));
  emu::replace_field(x.map, MapField::swizzle_atomicity, 0, 0);
  emu::replace_field(x.map, MapField::swizzle_mode, 0, 3);
  emu::replace_field(x.map, MapField::rank, 0, 1);
  CHECK(emu::decode_tensor_map(&x.map, "load").rank == 2);
  emu::replace_field(x.map, MapField::elemtype, 0, 10);
  emu::replace_field(x.map, MapField::box_dim, 0, 64);
  emu::replace_field(x.map, MapField::fill_mode, 0, 1);
  CHECK(emu::decode_tensor_map(&x.map, "load").element_bits() == 16);
  emu::replace_field(x.map, MapField::interleave_layout, 0, 2);
  CHECK_FAULT(illegal_instruction, "rank 2", emu::decode_tensor_map(&x.map, "load"));
  emu::replace_field(x.map, MapField::interleave_layout, 0, 0);
  emu::replace_field(x.map, MapField::global_address, 0, 8);
  CHECK_FAULT(illegal_instruction, "16-byte aligned", emu::decode_tensor_map(&x.map, "load"));
  CHECK_FAULT(illegal_instruction, "no tensor map has",
              emu::replace_field(x.map, MapField::global_stride, 4, 16));
  CHECK_FAULT(illegal_instruction, "no tensor map has",
              emu::replace_field(x.map, MapField::rank, 0, 5));
}

TEST_CASE(
    "a tensor map whose box somebody has overwritten is a fault, not an overrun of the host") {
  Arguments x;
  REQUIRE(x.good());
  const uint32_t box = GENERATE(0u, 257u, 1u << 20);
  x.map.box[0] = box;
  CHECK_FAULT(illegal_instruction, "boxDim[0]", emu::decode_tensor_map(&x.map, "load"));
}
