// SPDX-License-Identifier: MIT
// TMA beyond tiles: four rows, columns of pixels, elements with gaps, subnormals flushed; against
// index arithmetic written out here.
#include <cstring>
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/hardware/tma.h"

#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

namespace {

constexpr uint32_t base = 0x400;

struct Memories {
  GlobalMemory global{1 << 22};
  SharedMemory shared{64 * 1024};
  uint64_t address;
  alignas(64) TensorMap map;

  explicit Memories(uint64_t bytes) : address(global.allocate(bytes, "tensor")) {
    for (uint64_t i = 0; i < bytes; ++i) *byte(i) = value(i);
  }
  uint8_t* byte(uint64_t i) { return global.at(address + i, 1, 1, "test"); }
  static uint8_t value(uint64_t i) { return uint8_t(i * 37 + (i >> 8) * 11 + 3); }
  uint8_t got(uint32_t at) { return *shared.view(base + at, 1, "test"); }

  TensorMapArguments arguments(uint32_t type, uint32_t rank, const uint64_t* dims,
                               const uint64_t* strides, const uint32_t* steps, uint32_t swizzle) {
    TensorMapArguments a;
    a.map = &map;
    a.type = type;
    a.rank = rank;
    a.address = address;
    a.dims = dims;
    a.strides = strides;
    a.element_strides = steps;
    a.swizzle = swizzle;
    return a;
  }
  void load(TmaCoordinates c) {
    emu::check_tma_load(map, map.rank, c, base);
    emu::tma_load(map, c, base, shared, global);
  }
  void store(TmaCoordinates c) {
    emu::check_tma_store(map, map.rank, c, base);
    emu::tma_store(map, c, base, shared, global);
  }
};

// 64 bytes by 20 rows.
struct Rows : Memories {
  explicit Rows(uint32_t box_rows = 1) : Memories(64 * 20) {
    const uint64_t dims[] = {64, 20}, strides[] = {64};
    const uint32_t box[] = {32, box_rows}, steps[] = {1, 1};
    TensorMapArguments a = arguments(0, 2, dims, strides, steps, 1);
    a.box = box;
    REQUIRE(emu::encode_tiled(a, 100, &map) == "");
  }
};
TmaCoordinates four(int32_t c, int32_t r0, int32_t r1, int32_t r2, int32_t r3) {
  return {{c, r0, r1, r2, r3}, TmaMode::rows4, {}};
}

// Four 32-byte rows are one line of 128 bytes: no chunk moves in the first, bit 4 is flipped in the
// second.
size_t wrong_rows(Rows& t, const TmaCoordinates& c) {
  size_t wrong = 0;
  for (uint32_t r = 0; r < 4; ++r)
    for (uint32_t x = 0; x < 32; ++x) {
      const int64_t column = c.at[0] + int32_t(x), row = c.at[r + 1];
      const bool in = column >= 0 && column < 64 && row >= 0 && row < 20;
      wrong += t.got(r * 32 + x) != (in ? Memories::value(uint64_t(row * 64 + column)) : 0);
    }
  return wrong;
}

// NHWC: 32 channels of bytes by `width` by `height` by 3 images.
struct Images : Memories {
  uint32_t width, height;
  int32_t lower[2], upper[2];
  uint32_t step;

  Images(uint32_t w, uint32_t h, int32_t low, int32_t up, uint32_t traversal, uint32_t pixels)
      : Memories(32 * w * h * 3),
        width(w),
        height(h),
        lower{low, low},
        upper{up, up},
        step(traversal) {
    const uint64_t dims[] = {32, w, h, 3}, strides[] = {32, 32 * w, 32 * w * h};
    const uint32_t steps[] = {1, traversal, traversal, 1};
    REQUIRE(emu::encode_im2col(arguments(0, 4, dims, strides, steps, 0), {lower, upper, 16, pixels},
                               100, &map) == "");
  }
  // The pixels in the order of a loop over images, lines and columns of the box.
  size_t wrong(const TmaCoordinates& c) {
    size_t count = 0;
    int64_t n = c.at[3], h = c.at[2], w = c.at[1];
    for (uint32_t p = 0; p < map.pixels; ++p) {
      const int64_t x = w + c.offset[0], y = h + c.offset[1];
      const bool in = x >= 0 && x < width && y >= 0 && y < height && n < 3;
      for (uint32_t k = 0; k < 16; ++k) {
        const uint64_t at = 32 * uint64_t(x + width * (y + height * n)) + uint64_t(c.at[0]) + k;
        count += got(p * 16 + k) != (in ? value(at) : 0);
      }
      if ((w += step) <= width - 1 + upper[0]) continue;
      w = lower[0];
      if ((h += step) <= height - 1 + upper[1]) continue;
      h = lower[1];
      ++n;
    }
    return count;
  }
};
TmaCoordinates pixel(int32_t c, int32_t w, int32_t h, int32_t n, uint16_t dw = 0, uint16_t dh = 0) {
  return {{c, w, h, n}, TmaMode::im2col, {dw, dh}};
}

}  // namespace

TEST_CASE("gather4 brings four rows to one box and scatter4 takes them back") {
  Rows t;
  for (const auto& c : {four(0, 3, 17, 4, 4), four(32, 0, 19, 20, -1), four(-16, 1, 2, 3, 5)}) {
    t.load(c);
    CHECK(wrong_rows(t, c) == 0);
    CHECK(emu::tma_bytes(t.map, c) == 128);
    CHECK(emu::tma_rows(t.map, c, emu::TmaUse::load).size() >= 1);
  }
  const TmaCoordinates from = four(0, 3, 17, 4, 5), to = four(32, 8, 2, 11, 20);
  t.load(from);
  t.store(to);
  for (uint32_t r = 0; r < 3; ++r)
    for (uint32_t x = 0; x < 32; ++x)
      CHECK(*t.byte(uint64_t(to.at[r + 1]) * 64 + 32 + x) ==
            Memories::value(uint64_t(from.at[r + 1]) * 64 + x));
  CHECK(*t.byte(7 * 64 + 32) == Memories::value(7 * 64 + 32));
}

TEST_CASE("four rows want a map of rank 2 whose box is one row") {
  Rows t(2);
  CHECK_FAULT(illegal_instruction, "box of 2 rows", t.load(four(0, 1, 2, 3, 4)));
  Rows right;
  CHECK_FAULT(illegal_instruction, "not negative", right.store(four(0, 1, 2, 3, -4)));
  CHECK_FAULT(illegal_instruction, "go together", right.load(pixel(0, 0, 0, 0)));
}

TEST_CASE("im2col walks the box of pixels line by line and image by image and adds the offsets") {
  // The manual's examples 1 to 3 with smaller tensors: padding by one, a filter of 3 x 3, stride 2.
  Images padded(9, 7, -1, -1, 1, 64);
  for (const auto& c :
       {pixel(0, 7, 4, 0, 0, 0), pixel(16, -1, -1, 2, 2, 1), pixel(0, 3, 5, 1, 1, 2)}) {
    padded.load(c);
    CHECK(padded.wrong(c) == 0);
    CHECK(emu::tma_bytes(padded.map, c) == 64 * 16);
  }
  Images inside(9, 7, 0, -2, 1, 50);
  inside.load(pixel(0, 6, 4, 0, 2, 2));
  CHECK(inside.wrong(pixel(0, 6, 4, 0, 2, 2)) == 0);
  Images strided(9, 7, -1, -1, 2, 32);
  strided.load(pixel(16, 1, 3, 0, 1, 1));
  CHECK(strided.wrong(pixel(16, 1, 3, 0, 1, 1)) == 0);
}

TEST_CASE("im2col starts inside its box and offsets have the bits of their rank") {
  Images t(9, 7, -1, -1, 1, 8);
  CHECK_FAULT(illegal_instruction, "outside the pixel box in dimension 1",
              t.load(pixel(0, 8, 0, 0)));
  CHECK_FAULT(illegal_instruction, "outside the pixel box in dimension 2",
              t.load(pixel(0, 0, -2, 0)));
  CHECK_FAULT(illegal_instruction, "8 bits", t.load(pixel(0, 0, 0, 0, 256, 0)));
  CHECK_FAULT(illegal_instruction, "go together", t.load({{0, 0, 0, 0}, TmaMode::tile, {}}));
  CHECK_FAULT(illegal_instruction, "inside the tensor", t.store(pixel(0, 0, 0, 0)));
  CHECK_FAULT(illegal_instruction, "no tiled tensor map",
              emu::replace_field(t.map, emu::MapField::rank, 0, 2));
  t.map.pixels = 0;
  CHECK_FAULT(illegal_instruction, "pixelsPerColumn",
              emu::decode_tensor_map(emu::EncodedMap(t.map).words.data(), "load"));
}

TEST_CASE("im2col_no_offs stores a column of pixels where im2col would load it") {
  Images t(9, 7, 0, 0, 1, 80);
  std::vector<uint8_t> column(80 * 16);
  for (size_t i = 0; i < column.size(); ++i) column[i] = uint8_t(i * 7 + 1);
  t.shared.write(base, column.data(), uint32_t(column.size()), 0, "test");
  t.store(pixel(16, 4, 6, 1));
  // 5 pixels to the end of image 1, 63 of image 2, the rest is dropped.
  size_t wrong = 0;
  for (uint32_t p = 0; p < 68; ++p)
    for (uint32_t k = 0; k < 16; ++k)
      wrong += *t.byte(32 * (2 * 63 - 5 + p) + 16 + k) != column[p * 16 + k];
  CHECK(wrong == 0);
  CHECK(*t.byte(32 * (2 * 63 - 6) + 16) == Memories::value(32 * (2 * 63 - 6) + 16));
}

TEST_CASE("corners and channels and pixels of an im2col map have their limits") {
  Memories m(4096);
  const uint64_t dims[] = {64, 8, 8, 2, 2}, strides[] = {64, 512, 4096, 8192};
  const uint32_t steps[] = {1, 1, 1, 1, 1};
  const auto encode = [&](uint32_t rank, int32_t low, int32_t up, uint32_t channels,
                          uint32_t pixels, uint32_t swizzle = 0) {
    const int32_t lower[] = {low, low, low}, upper[] = {up, up, up};
    return emu::encode_im2col(m.arguments(0, rank, dims, strides, steps, swizzle),
                              {lower, upper, channels, pixels}, 90, &m.map);
  };
  CHECK(encode(4, -128, 127, 64, 1024) == "");
  CHECK(encode(4, -129, 0, 64, 8) != "");
  CHECK(encode(4, 0, 128, 64, 8) != "");
  CHECK(encode(5, -16, 15, 64, 8) == "");
  CHECK(encode(5, -17, 0, 64, 8) != "");
  CHECK(encode(3, -32768, 32767, 64, 8) == "");
  CHECK(encode(2, 0, 0, 64, 8) != "");
  CHECK(encode(4, 0, -8, 64, 8) == "the pixel box is empty in dimension 1");
  CHECK(encode(4, 0, 0, 257, 8) != "");
  CHECK(encode(4, 0, 0, 24, 8) != "");
  CHECK(encode(4, 0, 0, 64, 1025) != "");
  CHECK(encode(4, 0, 0, 64, 0) != "");
  CHECK(encode(4, 0, 0, 64, 8, 1) != "");
  CHECK(encode(4, 0, 0, 32, 8, 1) == "");
}

TEST_CASE("packed elements with gaps: 8 or 12 bytes of data to every 16 of shared memory") {
  for (const uint32_t type : {14u, 15u}) {
    const uint32_t bits = type == 14 ? 4 : 6, row = 128 * bits / 8, piece = 2 * bits;
    for (const uint32_t swizzle : {0u, 3u, 4u}) {
      CAPTURE(type, swizzle);
      Memories m(row * 2 * 10);
      const uint64_t dims[] = {256, 10}, strides[] = {row * 2};
      const uint32_t box[] = {128, 8}, steps[] = {1, 1};
      TensorMapArguments a = m.arguments(type, 2, dims, strides, steps, swizzle);
      a.box = box;
      REQUIRE(emu::encode_tiled(a, 100, &m.map) == "");
      const TmaCoordinates c{{128, 1}, TmaMode::tile, {}};
      m.load(c);
      CHECK(emu::tma_bytes(m.map, c) == row * 8);
      CHECK(emu::tma_shared_bytes(m.map, c) == 1024);
      size_t wrong = 0, filled = 0;
      for (uint32_t r = 0; r < 8; ++r)
        for (uint32_t g = 0; g < 8; ++g) {
          uint32_t at = base + r * 128 + g * 16;
          if (swizzle == 3) at ^= (at >> 7 & 7) << 4;
          if (swizzle == 4) at ^= (at >> 7 & 3) << 5;
          for (uint32_t i = 0; i < piece; ++i)
            wrong += *m.shared.view(at + i, 1, "test") !=
                     Memories::value((r + 1) * row * 2 + row + g * piece + i);
          filled += m.shared.has_value(at + piece, 1, "test");
        }
      CHECK(wrong == 0);
      CHECK(filled == 0);
      CHECK_FAULT(illegal_instruction, "multiples of 128", m.load({{64, 0}, TmaMode::tile, {}}));
    }
  }
}

TEST_CASE("6-bit elements are stored from one byte each and 4-bit ones with gaps are not stored") {
  Memories m(96 * 4);
  const uint64_t dims[] = {128, 4}, strides[] = {96};
  const uint32_t box[] = {128, 2}, steps[] = {1, 1};
  TensorMapArguments a = m.arguments(15, 2, dims, strides, steps, 6);
  a.box = box;
  REQUIRE(emu::encode_tiled(a, 100, &m.map) == "");
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t at = base + i;
    at ^= (at >> 7 & 1) << 6;
    const uint8_t element = uint8_t(i * 5 + 0xC0);  // the upper two bits count for nothing
    m.shared.write(at, &element, 1, 0, "test");
  }
  m.store({{0, 1}, TmaMode::tile, {}});
  size_t wrong = 0;
  for (uint32_t i = 0; i < 256; ++i) {
    const uint64_t bit = 96 * 8 + i * 6;
    const uint32_t two = *m.byte(bit / 8) | *m.byte(bit / 8 + (bit % 8 > 2)) << 8;
    wrong += (two >> bit % 8 & 63) != ((i * 5 + 0xC0) & 63);
  }
  CHECK(wrong == 0);
  CHECK_FAULT(illegal_instruction, "for stores only", m.load({{0, 0}, TmaMode::tile, {}}));
  a.type = 14, a.swizzle = 3;
  const uint64_t narrow[] = {64};
  a.strides = narrow;
  REQUIRE(emu::encode_tiled(a, 100, &m.map) == "");
  CHECK_FAULT(illegal_instruction, "loads only", m.store({{0, 0}, TmaMode::tile, {}}));
}

namespace {

// What a load makes of eight words of that data type.
std::array<uint32_t, 8> loaded_as(uint32_t type, const std::array<uint32_t, 8>& words) {
  Memories m(64);
  std::memcpy(m.byte(0), words.data(), 32);
  const uint64_t dims[] = {8};
  const uint32_t box[] = {8}, steps[] = {1};
  TensorMapArguments a = m.arguments(type, 1, dims, nullptr, steps, 0);
  a.box = box;
  REQUIRE(emu::encode_tiled(a, 100, &m.map) == "");
  m.load({{0}, TmaMode::tile, {}});
  std::array<uint32_t, 8> got;
  m.shared.read(base, got.data(), 32, 4, "test");
  CHECK_FAULT(illegal_instruction, "whether it converts", m.store({{0}, TmaMode::tile, {}}));
  return got;
}

}  // namespace

TEST_CASE("data type 10 loads subnormals as zeros of their sign") {
  const std::array<uint32_t, 8> words = {0x00000001, 0x807FFFFF, 0x00800000, 0x80800000,
                                         0x7F800001, 0xFF800000, 0x00000000, 0x80000000};
  const std::array<uint32_t, 8> flushed = {0,        0x80000000, words[2], words[3],
                                           words[4], words[5],   words[6], words[7]};
  CHECK(loaded_as(10, words) == flushed);
}

TEST_CASE("data types 11 and 12 load floats rounded to 10 bits of fraction") {
  // Ties to even, both ways; the carry into the exponent and into infinity; NaN and infinity stay.
  const std::array<uint32_t, 8> words = {0x3F801000, 0x3F803000, 0x3F801001, 0xBFFFFFFF,
                                         0x7F7FFFFF, 0x7F800001, 0xFF800000, 0x3F800FFF};
  const std::array<uint32_t, 8> rounded = {0x3F800000, 0x3F804000, 0x3F802000, 0xC0000000,
                                           0x7F800000, 0x7F800001, 0xFF800000, 0x3F800000};
  CHECK(loaded_as(11, words) == rounded);
  CHECK(loaded_as(12, words) == rounded);
  const std::array<uint32_t, 8> small = {0x00001001, 0x80003000, 0x007FFFFF, 0x00800FFF,
                                         0x00000001, 0x807FE000, 0x80000000, 0x00801000};
  CHECK(loaded_as(11, small) == std::array<uint32_t, 8>{0x00002000, 0x80004000, 0x00800000,
                                                        0x00800000, 0, 0x807FE000, 0x80000000,
                                                        0x00800000});
  CHECK(loaded_as(12, small) == std::array<uint32_t, 8>{0, 0x80000000, 0, 0x00800000, 0, 0x80000000,
                                                        0x80000000, 0x00800000});
}
