// SPDX-License-Identifier: MIT
// What the benchmark makes of its samples: statistics, rooflines, rotation, shapes, rows of the
// table.
#include "bench/csv.h"
#include "bench/figures.h"
#include "tools/testing/catch.h"

using bench::cold_copies;
using bench::CublasTime;
using bench::Rates;
using support::Shape;

namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells{""};
  for (const char c : line) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

std::string cell(const std::string& row, const std::string& column) {
  const auto columns = split(bench::csv_columns()), cells = split(row);
  REQUIRE(cells.size() == columns.size());
  const auto at = std::find(columns.begin(), columns.end(), column);
  INFO(column);
  REQUIRE(at != columns.end());
  return cells[size_t(at - columns.begin())];
}

}  // namespace

TEST_CASE("quantiles are samples whatever their order", "[bench]") {
  const std::vector<double> samples = {5, 1, 4, 2, 3};
  CHECK(bench::median(samples) == 3);
  CHECK(bench::quantile(samples, 0) == 1);
  CHECK(bench::quantile(samples, 1) == 5);
  CHECK(bench::quantile(samples, 0.1) == 1);
  CHECK(bench::quantile(samples, 0.9) == 5);
  CHECK(bench::median({7}) == 7);
  CHECK(bench::median({1, 2}) == 2);
  CHECK_THROWS(bench::median({}));
}

TEST_CASE("the compulsory bytes are those of the GPU MODE task", "[bench]") {
  // 69.075, 18.080 and 10.240 MB, of which the task's 8.994, 2.354 and 1.333 us at 7.68 TB/s
  // follow.
  CHECK(bench::compulsory_bytes({128, 7168, 16384}) == 69074944);
  CHECK(bench::compulsory_bytes({128, 4096, 7168}) == 18079744);
  CHECK(bench::compulsory_bytes({128, 7168, 2048}) == 10240000);
  CHECK(bench::compulsory_bytes({128, 7168, 2048, 3}) == 3 * 10240000.0);
  CHECK(bench::operations({128, 7168, 2048}) == 2.0 * 128 * 7168 * 2048);
}

TEST_CASE("a roofline is the slower of memory and tensor cores", "[bench]") {
  const Rates rates{4.8e6, 790e6};  // an H200's, per microsecond
  CHECK(std::abs(bench::roofline_us({1, 7168, 16384}, rates) - 13.77) < 0.01);
  CHECK(std::abs(bench::roofline_us({128, 7168, 16384}, rates) - 38.06) < 0.01);
  CHECK(bench::roofline_us({128, 7168, 16384}, {4.8e6, 0}) == 0);
  CHECK(bench::roofline_us({128, 7168, 16384}, {0, 790e6}) == 0);
}

TEST_CASE("a working set comes back after more than three times the L2", "[bench]") {
  const double l2 = 60.0 * 1048576;
  for (const double bytes : {1e5, 1e6, 8.3e6, 1.7e7, 6.3e7, 6.6e7, 2e8, 1e9}) {
    CAPTURE(bytes);
    const int copies = cold_copies(bytes, l2);
    CHECK((copies - 1) * bytes + (bytes > l2 ? bytes : 0) > 3 * l2);
    CHECK((copies - 2) * bytes <= 3 * l2);  // and no more than it takes
  }
}

TEST_CASE("shapes are MxNxK or refused with an example", "[bench]") {
  const Shape s = bench::parse_shape("128x7168x2048");
  CHECK((s.m == 128 && s.n == 7168 && s.k == 2048 && s.l == 1));
  for (const char* wrong : {"", "128", "128x7168", "128x7168x2048x1", "0x1x64", "1x-1x64", "axbxc",
                            "1x2x64 ", "1 x 2 x"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(bench::parse_shape(wrong), std::invalid_argument);
  }
}

TEST_CASE("a row of the table has a cell for each column that is empty without a figure",
          "[bench]") {
  const Shape s{128, 7168, 2048};
  bench::Row r;
  r.shape = s;
  bench::Ours& ours = r.ours;
  ours.variant = "sm90_128x128x256";
  ours.us = 10, ours.p10 = 9.5, ours.p90 = 11, ours.plain_us = 12, ours.host_us = 4;
  ours.pdl_us = 8;
  r.others.f16 = {20, 15};
  r.others.bf16 = {22, 18};
  r.others.e4m3 = {8, 5};
  r.bf16_tokens = {12, 11};
  r.sm_mhz = 1755, r.slowed_by = "power";
  const std::string row = bench::csv_row(r, {{4.8e6, 790e6}, 0.5});
  CHECK(cell(row, "m") == "128");
  CHECK(cell(row, "n") == "7168");
  CHECK(cell(row, "k") == "2048");
  CHECK(cell(row, "variant") == "sm90_128x128x256");
  CHECK(cell(row, "us") == "10.000");
  CHECK(cell(row, "us_p90") == "11.000");
  CHECK(cell(row, "tflops") == "375.8");   // 3.758 GFLOP in 10 us
  CHECK(cell(row, "gb_per_s") == "1024");  // 10.24 MB
  CHECK(cell(row, "roofline_us") == "4.757");
  CHECK(cell(row, "roofline_percent") == "47.6");
  CHECK(cell(row, "roofline_node_us") == "5.257");
  CHECK(cell(row, "x_fp16") == "2.000");
  CHECK(cell(row, "x_fp16_best") == "1.500");
  CHECK(cell(row, "pdl_us") == "8.000");
  CHECK(cell(row, "x_fp16_pdl") == "2.500");
  CHECK(cell(row, "x_fp8") == "0.800");
  CHECK(cell(row, "x_fp8_best") == "0.500");
  CHECK(cell(row, "bf16_best_us") == "18.000");
  CHECK(cell(row, "w4a16_bf16_us") == "12.000");
  CHECK(cell(row, "w4a16_bf16_pdl_us") == "11.000");
  CHECK(cell(row, "w4a16_bf16_x_best") == "1.500");
  CHECK(cell(row, "sm_mhz") == "1755");
  CHECK(cell(row, "slowed_by") == "power");
  for (const char* none : {"nvfp4_us", "nvfp4_best_us", "gpumode_us", "w4a16_fp16_us"}) {
    CAPTURE(none);
    CHECK(cell(row, none) == "");
  }
  r = {};
  r.shape = s;
  const std::string bare = bench::csv_row(r, {});
  CHECK(cell(bare, "roofline_us") == "");
  CHECK(cell(bare, "tflops") == "");
  CHECK(cell(bare, "x_fp16") == "");
}
