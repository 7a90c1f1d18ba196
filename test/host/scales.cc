// SPDX-License-Identifier: MIT
// Scale layouts: sizes, conversion, and agreement with offsets that other code computed.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"
#include "test/host/csv.h"
#include "tools/testing/catch.h"

namespace {

constexpr int32_t k128x4 = NVFP4_SCALE_LAYOUT_128X4, kLinear = NVFP4_SCALE_LAYOUT_LINEAR;
constexpr uint8_t kUntouched = 0xEE;

// The layout as nested arrays, written from PTX's picture of one tile and not from the formula:
// [row block][K tile][row in 32][quarter of the block][scale].
int64_t nested_offset(int64_t row, int64_t ks, int64_t scales_per_row) {
  const int64_t k_tiles = (scales_per_row + 3) / 4;
  const int64_t index[5] = {row >> 7, ks >> 2, row & 31, row >> 5 & 3, ks & 3};
  const int64_t extent[5] = {0, k_tiles, 32, 4, 4};
  int64_t offset = 0;
  for (int i = 0; i < 5; ++i) offset = offset * extent[i] + index[i];
  return offset;
}

std::vector<uint8_t> numbered_scales(int64_t rows, int64_t scales_per_row) {
  std::vector<uint8_t> linear(rows * scales_per_row);
  for (size_t i = 0; i < linear.size(); ++i) linear[i] = static_cast<uint8_t>(i * 37 % 126 + 1);
  return linear;
}

}  // namespace

TEST_CASE("nvfp4_scale_bytes counts whole tiles of 128 rows and 4 scales, or exactly the scales") {
  CHECK(nvfp4_scale_bytes(1, 16, k128x4) == 512);
  CHECK(nvfp4_scale_bytes(128, 64, k128x4) == 512);
  CHECK(nvfp4_scale_bytes(129, 64, k128x4) == 1024);
  CHECK(nvfp4_scale_bytes(128, 80, k128x4) == 1024);
  CHECK(nvfp4_scale_bytes(7168, 16384, k128x4) == 7168 * 1024);
  CHECK(nvfp4_scale_bytes(7, 48, kLinear) == 21);
  CHECK(nvfp4_scale_bytes(0, 64, k128x4) == 0);
  CHECK(nvfp4_scale_bytes(64, 0, kLinear) == 0);
}

TEST_CASE("nvfp4_scale_bytes_for counts the scales of each format") {
  // The sizes of gpt-oss' two products and of a layer of 4096 x 7168.
  CHECK(nvfp4_scale_bytes_for(5760, 2880, kLinear, NVFP4_OPERAND_FORMAT_MXFP4) == 518400);
  CHECK(nvfp4_scale_bytes_for(5760, 2880, k128x4, NVFP4_OPERAND_FORMAT_MXFP4) == 529920);
  CHECK(nvfp4_scale_bytes_for(2880, 2880, kLinear, NVFP4_OPERAND_FORMAT_MXFP4) == 259200);
  CHECK(nvfp4_scale_bytes_for(2880, 2880, k128x4, NVFP4_OPERAND_FORMAT_MXFP4) == 270848);
  CHECK(nvfp4_scale_bytes_for(4096, 7168, k128x4, NVFP4_OPERAND_FORMAT_MXFP4) == 917504);
  CHECK(nvfp4_scale_bytes_for(4096, 7168, k128x4, NVFP4_OPERAND_FORMAT_NVFP4) == 1835008);
  CHECK(nvfp4_scale_bytes_for(129, 48, k128x4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0) ==
        nvfp4_scale_bytes(129, 48, k128x4));
  CHECK(nvfp4_scale_bytes_for(4, 48, kLinear, NVFP4_OPERAND_FORMAT_MXFP4) == 0);
  CHECK(nvfp4_scale_bytes_for(4, -32, kLinear, NVFP4_OPERAND_FORMAT_MXFP4) == 0);
  CHECK(nvfp4_scale_bytes_for(4, 33, kLinear, NVFP4_OPERAND_FORMAT_MXFP4) == 0);
  CHECK(nvfp4_scale_bytes_for(4, 32, kLinear, 3) == 0);
  CHECK(nvfp4_scale_bytes_for(4, 32, kLinear, -1) == 0);
}

TEST_CASE("nvfp4_grouped_scale_bytes holds every division of rows among groups, and no more") {
  // K is one tile long, so bytes count tiles; each division of up to 600 rows into 3 groups.
  const int32_t nvfp4 = NVFP4_OPERAND_FORMAT_NVFP4;
  const auto tiles = [](int64_t rows) { return (rows + 127) / 128; };
  for (int64_t rows = 0; rows <= 600; rows += rows < 4 ? 1 : 7) {
    int64_t most = 0;
    for (int64_t a = 0; a <= rows; ++a)
      for (int64_t b = 0; a + b <= rows; ++b)
        most = std::max(most, tiles(a) + tiles(b) + tiles(rows - a - b));
    CAPTURE(rows);
    CHECK(nvfp4_grouped_scale_bytes(rows, 3, 64, k128x4, nvfp4) == size_t(most) * 512);
  }
  CHECK(nvfp4_grouped_scale_bytes(600, 3, 64, kLinear, nvfp4) == 2400);
  CHECK(nvfp4_grouped_scale_bytes(600, 3, 128, k128x4, NVFP4_OPERAND_FORMAT_MXFP4) == 7 * 512);
  CHECK(nvfp4_grouped_scale_bytes(0, 0, 64, k128x4, nvfp4) == 0);
  CHECK(nvfp4_grouped_scale_bytes(1, 0, 64, kLinear, nvfp4) == 0);
  CHECK(nvfp4_grouped_scale_bytes(1, -1, 64, k128x4, nvfp4) == 0);
  CHECK(nvfp4_grouped_scale_bytes(-1, 4, 64, k128x4, nvfp4) == 0);
  CHECK(nvfp4_grouped_scale_bytes(INT64_MAX, INT64_MAX, 64, k128x4, nvfp4) == 0);
}

TEST_CASE("nvfp4_scale_bytes is 0 for what has no size") {
  CHECK(nvfp4_scale_bytes(-1, 64, k128x4) == 0);
  CHECK(nvfp4_scale_bytes(64, -16, kLinear) == 0);
  CHECK(nvfp4_scale_bytes(64, 24, kLinear) == 0);
  CHECK(nvfp4_scale_bytes(64, 64, 0) == 0);
  CHECK(nvfp4_scale_bytes(64, 64, 3) == 0);
  CHECK(nvfp4_scale_bytes(INT64_MAX, 16, kLinear) == INT64_MAX);
  CHECK(nvfp4_scale_bytes(INT64_MAX, 32, kLinear) == 0);
  CHECK(nvfp4_scale_bytes(INT64_MAX, 16, k128x4) == 0);
  CHECK(nvfp4_scale_bytes(INT64_MAX, INT64_MAX - 15, k128x4) == 0);
  const int64_t largest = (INT64_MAX / 512) * 128;  // rows of one K tile
  CHECK(nvfp4_scale_bytes(largest, 64, k128x4) == size_t(INT64_MAX / 512 * 512));
  CHECK(nvfp4_scale_bytes(largest + 1, 64, k128x4) == 0);
}

TEST_CASE("Conversion to 128x4 puts every scale where the nested arrays say, and zeros elsewhere") {
  const int64_t rows = GENERATE(1, 31, 32, 33, 128, 129, 300);
  const int64_t k = GENERATE(16, 48, 64, 80, 128, 208);
  CAPTURE(rows, k);
  const int64_t per_row = k / 16;
  const std::vector<uint8_t> linear = numbered_scales(rows, per_row);
  std::vector<uint8_t> expected(nvfp4_scale_bytes(rows, k, k128x4));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t ks = 0; ks < per_row; ++ks) {
      expected.at(nested_offset(row, ks, per_row)) = linear[row * per_row + ks];
    }
  }
  std::vector<uint8_t> tiles(expected.size() + 16, kUntouched);
  REQUIRE(nvfp4_scale_convert_host(linear.data(), kLinear, tiles.data(), k128x4, rows, k) == 0);
  CHECK(std::vector<uint8_t>(tiles.begin(), tiles.end() - 16) == expected);
  CHECK(std::vector<uint8_t>(tiles.end() - 16, tiles.end()) ==
        std::vector<uint8_t>(16, kUntouched));

  SECTION("and back, whatever the padding holds") {
    for (size_t i = 0; i < expected.size(); ++i) tiles[i] = expected[i] == 0 ? 0xFF : expected[i];
    std::vector<uint8_t> back(linear.size() + 16, kUntouched);
    REQUIRE(nvfp4_scale_convert_host(tiles.data(), k128x4, back.data(), kLinear, rows, k) == 0);
    CHECK(std::vector<uint8_t>(back.begin(), back.end() - 16) == linear);
    CHECK(back[linear.size()] == kUntouched);
  }
  SECTION("and from 128x4 to 128x4, cleaning the padding") {
    for (size_t i = 0; i < expected.size(); ++i) tiles[i] = expected[i] == 0 ? 0xFF : expected[i];
    std::vector<uint8_t> copy(expected.size(), kUntouched);
    REQUIRE(nvfp4_scale_convert_host(tiles.data(), k128x4, copy.data(), k128x4, rows, k) == 0);
    CHECK(copy == expected);
  }
}

// Offsets computed by CuTe (Sm1xxBlockScaledConfig<16>), see test/golden/README.md.
TEST_CASE("The 128x4 layout is the one of the golden table") {
  const std::string table = GENERATE("sf_layout.csv", "sf_layout_within_block.csv");
  const auto rows = host_test::golden(table, table == "sf_layout.csv" ? 7882 : 1536);
  int64_t checked = 0, last_mn = -1, last_k = -1;
  std::vector<uint8_t> low, high;  // the position of a scale, in two bytes
  for (const auto& cells : rows) {
    const int64_t mn = std::stoll(cells[1]), k = std::stoll(cells[2]), l = std::stoll(cells[3]);
    const int64_t row = std::stoll(cells[4]), at = std::stoll(cells[5]),
                  batch = std::stoll(cells[6]);
    const int64_t offset = std::stoll(cells[7]), all = std::stoll(cells[8]);
    const int64_t bytes = nvfp4_scale_bytes(mn, k, k128x4);
    REQUIRE(bytes * l == all);
    if (mn != last_mn || k != last_k) {
      last_mn = mn, last_k = k;
      std::vector<uint8_t> low_linear(mn * (k / 16)), high_linear(mn * (k / 16));
      for (size_t i = 0; i < low_linear.size(); ++i) {
        low_linear[i] = static_cast<uint8_t>(i), high_linear[i] = static_cast<uint8_t>(i >> 8);
      }
      low.assign(bytes, 0), high.assign(bytes, 0);
      nvfp4_scale_convert_host(low_linear.data(), kLinear, low.data(), k128x4, mn, k);
      nvfp4_scale_convert_host(high_linear.data(), kLinear, high.data(), k128x4, mn, k);
    }
    const int64_t in_batch = offset - batch * bytes;  // a batch starts a new tile
    const int64_t index = row * (k / 16) + at / 16;
    const int64_t found = low.at(in_batch) | high.at(in_batch) << 8;
    if (found != (index & 0xFFFF)) FAIL("row " << row << " k " << at << " at byte " << offset);
    ++checked;
  }
  CHECK(checked == static_cast<int64_t>(rows.size()));
}

TEST_CASE("nvfp4_scale_convert_host refuses bad arguments and touches nothing") {
  std::vector<uint8_t> src(1024, 1), dst(1024, kUntouched);
  const auto convert = [&](const void* from, int32_t from_layout, void* to, int32_t to_layout,
                           int64_t rows, int64_t k) {
    const nvfp4_status status = nvfp4_scale_convert_host(from, from_layout, to, to_layout, rows, k);
    CHECK(dst == std::vector<uint8_t>(1024, kUntouched));
    return status;
  };
  uint8_t* const s = src.data();
  uint8_t* const d = dst.data();
  CHECK(convert(s, 0, d, k128x4, 4, 16) == NVFP4_STATUS_INVALID_ENUM);
  CHECK(convert(s, kLinear, d, 3, 4, 16) == NVFP4_STATUS_INVALID_ENUM);
  CHECK(convert(s, kLinear, d, k128x4, -1, 16) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(convert(s, kLinear, d, k128x4, 4, -16) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(convert(s, kLinear, d, k128x4, 4, 20) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(convert(s, kLinear, d, k128x4, INT64_MAX, 16) == NVFP4_STATUS_LIMIT);
  CHECK(convert(nullptr, kLinear, d, k128x4, 4, 16) == NVFP4_STATUS_NULL_POINTER);
  CHECK(convert(s, kLinear, nullptr, k128x4, 4, 16) == NVFP4_STATUS_NULL_POINTER);
  CHECK(convert(s, kLinear, s, k128x4, 4, 16) == NVFP4_STATUS_OVERLAP);
  CHECK(convert(d + 511, kLinear, d, k128x4, 4, 16) == NVFP4_STATUS_OVERLAP);
  CHECK(convert(nullptr, kLinear, nullptr, k128x4, 0, 16) == NVFP4_SUCCESS);
  CHECK(convert(nullptr, kLinear, nullptr, k128x4, 4, 0) == NVFP4_SUCCESS);
  // Neighbours may touch.
  CHECK(nvfp4_scale_convert_host(d + 512, kLinear, d, k128x4, 4, 16) == NVFP4_SUCCESS);
}
