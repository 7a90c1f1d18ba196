// SPDX-License-Identifier: MIT
// What `nvfp4 tune` makes of times, injected here, and the tables that it writes; and tables of the
// command line.
#include "tools/nvfp4/chooser.h"
#include "nvfp4_gemm.h"
#include "tools/nvfp4/table.h"
#include "tools/testing/catch.h"

using nvfp4_tool::choose_variant;
using nvfp4_tool::finalists;
using nvfp4_tool::Measured;
using nvfp4_tool::statistic_of;
using nvfp4_tool::Table;
using nvfp4_tool::TunedRow;
using nvfp4_tool::write_table;

namespace {

// 41 times around a median, ten percent of them below and above by `spread` / 2.
Measured measured(const char* variant, double median, double spread) {
  Measured m{variant, {}};
  for (int i = -20; i <= 20; ++i) m.us.push_back(median + spread * i / 32);
  return m;
}

}  // namespace

TEST_CASE("A variant is chosen over the planner's by more than the spread and one percent") {
  const Measured planned = measured("", 100, 1);
  const auto chosen = [&](const std::vector<Measured>& others) {
    const Measured* won = choose_variant(planned, others);
    return won == nullptr ? std::string() : won->variant;
  };
  CHECK(statistic_of(planned.us).median == 100);
  CHECK(statistic_of(planned.us).spread() == 1);
  CHECK(chosen({}) == "");
  CHECK(chosen({measured("a", 98, 1)}) == "a");
  CHECK(chosen({measured("a", 98, 1), measured("b", 97, 1), measured("c", 99, 1)}) == "b");
  CHECK(chosen({measured("a", 99.1, 0.5)}) == "");   // within a percent
  CHECK(chosen({measured("a", 98.9, 0.5)}) == "a");  // more than that, and than the spread
  CHECK(chosen({measured("a", 97, 4)}) == "");       // within its own spread
  CHECK(chosen({measured("a", 101, 0)}) == "");
  CHECK(choose_variant(measured("", 100, 4), {measured("a", 97, 0)}) == nullptr);
}

TEST_CASE("Times that come in any order are sorted and one sample is a statistic") {
  CHECK(statistic_of({3, 1, 2}).median == 2);
  CHECK(statistic_of({3, 1, 2}).p10 == 1);
  CHECK(statistic_of({3, 1, 2}).p90 == 3);
  CHECK(statistic_of({7}).spread() == 0);
}

TEST_CASE("The fastest few are measured again as many as there are") {
  const std::vector<Measured> all = {measured("a", 3, 0), measured("b", 1, 0), measured("c", 2, 0)};
  CHECK(finalists(all, 2) == std::vector<size_t>{1, 2});
  CHECK(finalists(all, 9) == std::vector<size_t>{1, 2, 0});
  CHECK(finalists({}, 2).empty());
}

TEST_CASE("A table says what it was measured on and each winner with its times") {
  const std::vector<TunedRow> rows = {
      {{64, 5120, 5120, 1}, NVFP4_TYPE_NONE, "sm90_64x64x256/2", 9, 8},
      {{16, 4096, 5120, 2}, NVFP4_TYPE_BF16, "sm90_bf16_64x16x256", 9.5, 8.25}};
  CHECK(write_table("NVIDIA H200", 90, 132, false, rows) ==
        std::string("# NVIDIA H200, compute capability 9.0, 132 SMs; the planner's bits\n# ") +
            nvfp4_build_info() +
            "\nm,n,k,l,a_type,variant,us,planned_us\n"
            "64,5120,5120,1,nvfp4,sm90_64x64x256/2,8.000,9.000\n"
            "16,4096,5120,2,bf16,sm90_bf16_64x16x256,8.250,9.500\n");
  CHECK(write_table("NVIDIA H200", 90, 132, true, {}).find("132 SMs; any bits\n") !=
        std::string::npos);
}

TEST_CASE("A column of a table is as wide as its widest value or heading or expected value") {
  Table table({{"shape"}, {"us", true}, {"variant"}});
  CHECK(table.line({"1 x 2", "1.00", "a"}) == "1 x 2  1.00  a");
  table.expect({"128 x 7168 x 16384", "12345.67"});
  CHECK(table.line({"1 x 2", "1.00", "a"}) == "1 x 2                   1.00  a");
  CHECK(table.line({"a longer one than expected", "", "b"}) ==
        "a longer one than expected            b");
  CHECK(table.line({"1 x 2", "1.00", ""}) == "1 x 2                           1.00");
}
