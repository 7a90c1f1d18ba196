// SPDX-License-Identifier: MIT
// TMA loads and stores against index arithmetic written out here.
#include "tools/emulator/hardware/tma.h"

#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

namespace {

constexpr uint32_t shared_bytes = 96 * 1024;

// A tensor of bytes: `dims` bytes by rows by planes, with padding after each row.
struct Tensor {
  GlobalMemory memory{1 << 24};
  SharedMemory shared{shared_bytes};
  uint64_t address, pitch, plane;
  uint64_t dims[3];
  uint32_t box[3];
  alignas(64) TensorMap map;

  Tensor(uint64_t inner, uint64_t rows, uint64_t planes, uint32_t box0, uint32_t box1,
         uint32_t box2, uint32_t swizzle, uint32_t type = 0)
      : dims{inner, rows, planes}, box{box0, box1, box2} {
    const uint64_t bytes = type == 13 ? inner / 2 : inner;
    pitch = (bytes + 15) / 16 * 16 + 32;
    plane = pitch * rows;
    address = memory.allocate(plane * planes + 64, "tensor");
    for (uint64_t i = 0; i < plane * planes; ++i) *byte(i) = value(i);
    const uint64_t strides[2] = {pitch, plane};
    const uint32_t steps[3] = {1, 1, 1};
    TensorMapArguments a;
    a.map = &map;
    a.type = type;
    a.rank = 3;
    a.address = address;
    a.dims = dims;
    a.strides = strides;
    a.box = box;
    a.element_strides = steps;
    a.swizzle = swizzle;
    REQUIRE(emu::encode_tiled(a, 100, &map) == "");
  }
  uint8_t* byte(uint64_t i) { return memory.at(address + i, 1, 1, "test"); }
  static uint8_t value(uint64_t i) { return uint8_t(i * 131 + (i >> 8) * 17 + 1); }

  void load(TmaCoordinates c, uint32_t to) {
    emu::check_tma_load(map, 3, c, to);
    emu::tma_load(map, c, to, shared, memory);
  }
  void store(TmaCoordinates c, uint32_t from) {
    emu::check_tma_store(map, 3, c, from);
    emu::tma_store(map, c, from, shared, memory);
  }
};

// Reads back byte x of row y, plane z of the box through the XOR of the manual.
uint8_t stored(const Tensor& t, uint32_t base, uint32_t row_bytes, uint32_t swizzle, uint32_t x,
               uint32_t y, uint32_t z) {
  uint32_t a = base + (z * t.box[1] + y) * row_bytes + x;
  if (swizzle == 1) a ^= (a >> 7 & 1) << 4;
  if (swizzle == 2) a ^= (a >> 7 & 3) << 4;
  if (swizzle == 3) a ^= (a >> 7 & 7) << 4;
  if (swizzle == 4 || swizzle == 5) a ^= (a >> 7 & 3) << 5;
  if (swizzle == 5) a ^= (a >> 7 & 1) << 3;
  if (swizzle == 6) a ^= (a >> 7 & 1) << 6;
  return *t.shared.view(a, 1, "test");
}

// Every byte of the box: the tensor's inside, zero outside.
size_t wrong_bytes(Tensor& t, uint32_t base, uint32_t row_bytes, uint32_t swizzle, int64_t x0,
                   int64_t y0, int64_t z0) {
  const int64_t inner = int64_t(t.map.inner_bytes(t.dims[0]));
  size_t wrong = 0;
  for (uint32_t z = 0; z < t.box[2]; ++z)
    for (uint32_t y = 0; y < t.box[1]; ++y)
      for (uint32_t x = 0; x < row_bytes; ++x) {
        const int64_t gx = x0 + x, gy = y0 + y, gz = z0 + z;
        const bool in = gx >= 0 && gx < inner && gy >= 0 && gy < int64_t(t.dims[1]) && gz >= 0 &&
                        gz < int64_t(t.dims[2]);
        const uint8_t want =
            in ? Tensor::value(uint64_t(gx) + uint64_t(gy) * t.pitch + uint64_t(gz) * t.plane) : 0;
        wrong += stored(t, base, row_bytes, swizzle, x, y, z) != want;
      }
  return wrong;
}

}  // namespace

TEST_CASE("a load places every byte where the swizzle of absolute addresses says") {
  const uint32_t swizzle = GENERATE(0u, 1u, 2u, 3u, 4u, 5u, 6u);
  const uint32_t row = swizzle == 0 ? 48 : swizzle > 3 ? 128 : 16u << swizzle;
  Tensor t(400, 40, 3, row, 16, 2, swizzle);
  // 128-byte alignment is enough: the pattern then starts in another phase.
  for (uint32_t base : {0x400u, 0x480u, 0x400u + 5 * 128}) {
    CAPTURE(swizzle, base);
    t.load({{16, 3, 1}}, base);
    CHECK(wrong_bytes(t, base, row, swizzle, 16, 3, 1) == 0);
  }
}

TEST_CASE("elements outside the tensor become zero to the exact element on every side") {
  Tensor t(200, 30, 2, 128, 32, 2, 3);  // 200 is no multiple of 16
  for (const auto& at :
       {TmaCoordinates{{96, 0, 0}}, TmaCoordinates{{128, 10, 1}}, TmaCoordinates{{-64, -5, -1}},
        TmaCoordinates{{208, 0, 0}}, TmaCoordinates{{-128, 0, 0}}, TmaCoordinates{{0, 30, 0}},
        TmaCoordinates{{0, 0, 2}}}) {
    CAPTURE(at.at[0], at.at[1], at.at[2]);
    t.load(at, 0x400);
    CHECK(wrong_bytes(t, 0x400, 128, 3, at.at[0], at.at[1], at.at[2]) == 0);
  }
}

TEST_CASE("element strides skip rows of the tensor and the bytes they skip are not delivered") {
  Tensor t(256, 40, 3, 128, 9, 2, 3);
  t.map.element_strides[1] = 4;  // rows 0, 4 and 8 of each 9
  CHECK(t.map.box_bytes() == 128 * 3 * 2);
  t.load({{128, 33, 1}}, 0x400);
  size_t wrong = 0;
  for (uint32_t r = 0; r < 6; ++r)
    for (uint32_t x = 0; x < 128; ++x) {
      const uint64_t y = 33 + r % 3 * 4, z = 1 + r / 3;
      const uint32_t a = 0x400 + r * 128 + x;
      const uint8_t want = y < 40 ? Tensor::value(128 + x + y * t.pitch + z * t.plane) : 0;
      wrong += *t.shared.view(a ^ (a >> 7 & 7) << 4, 1, "test") != want;
    }
  CHECK(wrong == 0);
  t.store({{0, 0, 0}}, 0x400);
  CHECK(*t.byte(4 * t.pitch) == Tensor::value(128 + 37 * t.pitch + t.plane));
  CHECK(*t.byte(t.pitch) == Tensor::value(t.pitch));
}

TEST_CASE("NaN fill puts a NaN of 16 bits outside a floating-point tensor") {
  Tensor t(96, 4, 1, 32, 4, 1, 0, 6);  // 48 halves in rows of 32
  t.map.oob_fill = 1;
  t.map.dims_minus_1[0] = 47;
  t.load({{32, 0, 0}}, 0x400);
  CHECK(*t.shared.view(0x400, 1, "test") == Tensor::value(64));
  for (uint32_t x = 32; x < 64; x += 2) {
    const uint8_t* half = t.shared.view(0x400 + x, 2, "test");
    CHECK((half[0] | half[1] << 8) == 0x7FF7);
  }
}

TEST_CASE("the swizzle that flips 8 bytes is for loads and 64-byte atoms store what they loaded") {
  Tensor flip(256, 8, 1, 128, 8, 1, 5), atoms(256, 8, 1, 128, 8, 1, 6);
  flip.load({{0, 0, 0}}, 0x400);
  CHECK_FAULT(illegal_instruction, "for loads only", flip.store({{128, 0, 0}}, 0x400));
  atoms.load({{0, 0, 0}}, 0x400);
  atoms.store({{128, 0, 0}}, 0x400);
  for (uint64_t x = 0; x < 128; ++x)
    CHECK(*atoms.byte(128 + x + 3 * atoms.pitch) == *atoms.byte(x + 3 * atoms.pitch));
}

TEST_CASE("a box delivers all its bytes to the mbarrier also when it is out of bounds") {
  Tensor t(200, 30, 2, 128, 32, 2, 3);
  CHECK(t.map.box_bytes() == 128 * 32 * 2);
}

TEST_CASE("packed 4-bit maps move the same bytes as byte maps") {
  Tensor nibbles(2 * 400, 40, 2, 256, 16, 1, 3, 13);
  nibbles.load({{64, 3, 1}}, 0x400);  // in elements: 32 bytes
  CHECK(wrong_bytes(nibbles, 0x400, 128, 3, 32, 3, 1) == 0);
  nibbles.load({{704, 30, 0}}, 0x400);  // runs out at byte 400
  CHECK(wrong_bytes(nibbles, 0x400, 128, 3, 352, 30, 0) == 0);
  CHECK_FAULT(illegal_instruction, "16 bytes", nibbles.load({{16, 0, 0}}, 0x400));
}

TEST_CASE("the shared address is 128-byte aligned and the inner coordinate 16-byte aligned") {
  Tensor t(400, 40, 2, 128, 16, 1, 3);
  CHECK_FAULT(misaligned_address, "128-byte", t.load({{0, 0, 0}}, 0x440));
  for (int32_t x : {1, 5, 8, 17, -8}) {
    CAPTURE(x);
    CHECK_FAULT(illegal_instruction, "16 bytes", t.load({{x, 0, 0}}, 0x400));
  }
  t.load({{-16, 0, 0}}, 0x400);
  CHECK_FAULT(illegal_instruction, "rank 3", emu::check_tma_load(t.map, 2, {}, 0x400));
}

TEST_CASE("a store writes the box back and drops rows outside the tensor") {
  Tensor t(256, 20, 2, 128, 16, 1, 3);
  t.load({{128, 0, 0}}, 0x400);
  for (uint64_t i = 0; i < t.plane * 2; ++i) *t.byte(i) = 0xEE;
  t.store({{128, 10, 1}}, 0x400);  // rows 10 to 25 of 20
  size_t wrong = 0;
  for (uint64_t i = 0; i < t.plane * 2; ++i) {
    const uint64_t z = i / t.plane, y = i % t.plane / t.pitch, x = i % t.pitch;
    const bool inside = z == 1 && y >= 10 && x >= 128 && x < 256;
    wrong += *t.byte(i) != (inside ? Tensor::value(x + (y - 10) * t.pitch) : 0xEE);
  }
  CHECK(wrong == 0);
  t.store({{0, 20, 0}}, 0x400);  // wholly outside: nothing
  CHECK(*t.byte(0) == 0xEE);
}

TEST_CASE("a store cuts the row's end at 16 bytes over what follows dimension 0") {
  for (uint64_t inner : {65, 72, 80}) {
    Tensor t(inner, 4, 1, 128, 4, 1, 3);
    std::vector<uint8_t> ones(128 * 4, 0x11);
    t.shared.write(0x400, ones.data(), uint32_t(ones.size()), 0, "test");
    for (uint64_t i = 0; i < t.plane; ++i) *t.byte(i) = 0xEE;
    t.store({{0, 0, 0}}, 0x400);
    CAPTURE(inner);
    for (uint64_t x : {0u, 64u, 79u, 80u}) CHECK(*t.byte(x) == (x < 80 ? 0x11 : 0xEE));
  }
}

TEST_CASE("a store wants non-negative aligned coordinates") {
  Tensor t(256, 20, 1, 128, 16, 1, 3);
  CHECK_FAULT(illegal_instruction, "not negative", t.store({{-16, 0, 0}}, 0x400));
  CHECK_FAULT(illegal_instruction, "not negative", t.store({{0, -1, 0}}, 0x400));
  CHECK_FAULT(illegal_instruction, "16 bytes", t.store({{8, 0, 0}}, 0x400));
}

TEST_CASE("a store takes bytes without a value along and others over them") {
  Tensor t(256, 20, 1, 128, 16, 1, 3);
  const uint8_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  t.shared.write(0x400 + 128 + 16, ones, 16, 0, "test");  // row 1, where the swizzle has piece 0
  const auto needs = [&](uint32_t x, uint32_t y, uint32_t bytes) {
    t.memory.require_values(t.address + y * t.pitch + x, bytes, "a copy");
  };
  t.store({{0, 0, 0}}, 0x400);
  needs(0, 1, 16);
  CHECK(*t.byte(t.pitch) == 1);
  needs(128, 0, 128);
  CHECK_FAULT(uninitialised, "TMA store of the byte", needs(0, 0, 1));
  CHECK_FAULT(uninitialised, "nobody has written", needs(0, 1, 17));
  t.load({{0, 1, 0}}, 0x800);
  t.shared.view(0x800, 16, "test");
  CHECK_FAULT(uninitialised, "TMA load", t.shared.view(0x810, 1, "test"));
  for (uint32_t i = 0; i < 128; ++i) t.shared.write(0x400 + 16 * i, ones, 16, 0, "test");
  t.store({{0, 0, 0}}, 0x400);
  for (uint32_t y = 0; y < 16; ++y) needs(0, y, 128);
}

TEST_CASE("of elements of 6 bits a store takes pieces of 12 bytes without a value along") {
  Tensor t(256, 8, 1, 128, 4, 1, 0, 15);
  const uint8_t codes[16] = {1, 2, 3};
  t.shared.write(0x410, codes, 16, 0, "test");
  t.shared.write(0x420, codes, 15, 0, "test");
  const auto needs = [&](uint32_t x, uint32_t bytes) {
    t.memory.require_values(t.address + x, bytes, "a copy");
  };
  t.store({{0, 0, 0}}, 0x400);
  needs(12, 12);
  CHECK(*t.byte(12) == (1 | (2 & 3) << 6));
  CHECK_FAULT(uninitialised, "TMA store", needs(11, 1));
  CHECK_FAULT(uninitialised, "TMA store", needs(24, 1));
  t.shared.write(0x42F, codes, 1, 0, "test");
  t.store({{0, 0, 0}}, 0x400);
  needs(12, 24);
}

TEST_CASE("a load outside every allocation or into an mbarrier is a fault") {
  Tensor t(256, 20, 1, 128, 16, 1, 3);
  t.shared.mark_mbarrier(0x408, true);
  CHECK_FAULT(barrier_misuse, "mbarrier", t.load({{0, 0, 0}}, 0x400));
  t.load({{0, 0, 0}}, 0x1400);
  CHECK_FAULT(illegal_address, "TMA load", t.load({{0, 0, 0}}, 0x400 + shared_bytes - 128));
  t.memory.free(t.address);
  CHECK_FAULT(illegal_address, "TMA load", t.load({{0, 0, 0}}, 0x1400));
}

TEST_CASE("a bulk copy is aligned to 16 bytes at both ends and in size") {
  emu::check_bulk_copy(0x400, 0x7f1000000010, 48);
  emu::check_bulk_copy(0x400, 0x7f1000000010, 0);
  CHECK_FAULT(misaligned_address, "16-byte", emu::check_bulk_copy(0x408, 0x7f1000000010, 48));
  CHECK_FAULT(misaligned_address, "16-byte", emu::check_bulk_copy(0x400, 0x7f1000000018, 48));
  CHECK_FAULT(illegal_instruction, "never completes",
              emu::check_bulk_copy(0x400, 0x7f1000000010, 24));
}
