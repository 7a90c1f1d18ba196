// SPDX-License-Identifier: MIT
// Scale layouts: sizes, conversion, and agreement with offsets that other code computed.
#include <algorithm>
#include <cstring>
#include <sstream>
#include <vector>

#include "nvfp4_gemm.h"
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

TEST_CASE("nvfp4_scale_bytes counts whole tiles of 128 rows and 4 scales or exactly the scales") {
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

TEST_CASE("nvfp4_grouped_scale_bytes holds every division of rows among groups and no more") {
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

TEST_CASE("Conversion to 128x4 puts every scale where the nested arrays say and zeros elsewhere") {
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

// CuTe's table of the layout (Sm1xxBlockScaledConfig<16>, test/golden/README.md): each row of
// `grids` is a matrix and the steps at which its program asked for offsets.
namespace {

struct Grid {
  const char* which;
  int64_t rows, k, batches, row_step, k_step;
};
constexpr Grid grids[] = {
    {"SFA", 128, 64, 1, 1, 16},       {"SFB", 128, 64, 1, 1, 16},
    {"SFA", 128, 256, 1, 5, 16},      {"SFB", 192, 256, 1, 5, 16},
    {"SFA", 256, 512, 2, 13, 48},     {"SFB", 256, 512, 2, 13, 48},
    {"SFA", 300, 208, 2, 7, 16},      {"SFB", 130, 208, 2, 7, 16},
    {"SFA", 100, 80, 1, 3, 16},       {"SFB", 64, 80, 1, 3, 16},
    {"SFA", 64, 32, 3, 1, 16},        {"SFB", 40, 32, 3, 1, 16},
    {"SFA", 1024, 2048, 1, 509, 112}, {"SFB", 7168, 2048, 1, 509, 112},
    {"SFA", 384, 1040, 2, 47, 16},    {"SFB", 320, 1040, 2, 47, 16},
};
constexpr Grid grid_of_elements = {"SFA", 256, 256, 1, 51, 1};

// Number of the scale at each byte of the library's 128x4 form. Two conversions find it, one of the
// numbers' low bytes and one of their high bytes.
std::vector<uint16_t> numbers_in_128x4(int64_t rows, int64_t k) {
  const int64_t bytes = nvfp4_scale_bytes(rows, k, k128x4);
  std::vector<uint8_t> low(rows * (k / 16)), high(low.size()), low_tiles(bytes), high_tiles(bytes);
  for (size_t i = 0; i < low.size(); ++i) {
    low[i] = static_cast<uint8_t>(i), high[i] = static_cast<uint8_t>(i >> 8);
  }
  nvfp4_scale_convert_host(low.data(), kLinear, low_tiles.data(), k128x4, rows, k);
  nvfp4_scale_convert_host(high.data(), kLinear, high_tiles.data(), k128x4, rows, k);
  std::vector<uint16_t> numbers(bytes);
  for (int64_t i = 0; i < bytes; ++i)
    numbers[i] = static_cast<uint16_t>(low_tiles[i] | high_tiles[i] << 8);
  return numbers;
}

// The grid's rows of CuTe's table by nested_offset. `differ` counts where the library disagrees.
std::string table_of(const Grid& grid, int64_t& differ) {
  const std::vector<uint16_t> library = numbers_in_128x4(grid.rows, grid.k);
  const int64_t bytes = library.size();
  std::ostringstream out;
  for (int64_t batch = 0; batch < grid.batches; ++batch)
    for (int64_t row = 0; row < grid.rows; row += grid.row_step)
      for (int64_t k = 0; k < grid.k; k += grid.k_step) {
        const int64_t in_batch = nested_offset(row, k / 16, grid.k / 16);
        out << grid.which << ',' << grid.rows << ',' << grid.k << ',' << grid.batches << ',' << row
            << ',' << k << ',' << batch << ',' << batch * bytes + in_batch << ','
            << bytes * grid.batches << '\n';
        differ += library.at(in_batch) != static_cast<uint16_t>(row * (grid.k / 16) + k / 16);
      }
  return out.str();
}

uint64_t fnv1a(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

TEST_CASE("The 128x4 layout is the one of the golden table") {
  const std::string header = "which,mn,k_dim,l_dim,row,k,l,byte_offset,cosize\n";
  std::string table = header;
  int64_t differ = 0;
  for (const Grid& grid : grids) table += table_of(grid, differ);
  CHECK(fnv1a(table) == 0x2a8ba3d9e65d5b1d);
  CHECK(fnv1a(header + table_of(grid_of_elements, differ)) == 0x9edfe7e5801684dc);
  CHECK(differ == 0);
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
