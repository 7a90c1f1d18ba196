// SPDX-License-Identifier: MIT
// What `nvfp4 tune` makes of times, injected here, and that the library takes the table it writes.
#include "tools/nvfp4/chooser.h"

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

using nvfp4_tool::choose_variant;
using nvfp4_tool::finalists;
using nvfp4_tool::Measured;
using nvfp4_tool::statistic_of;
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

TEST_CASE("Times that come in any order are sorted, and one sample is a statistic") {
  CHECK(statistic_of({3, 1, 2}).median == 2);
  CHECK(statistic_of({3, 1, 2}).p10 == 1);
  CHECK(statistic_of({3, 1, 2}).p90 == 3);
  CHECK(statistic_of({7}).spread() == 0);
}

TEST_CASE("The fastest few are measured again, as many as there are") {
  const std::vector<Measured> all = {measured("a", 3, 0), measured("b", 1, 0), measured("c", 2, 0)};
  CHECK(finalists(all, 2) == std::vector<size_t>{1, 2});
  CHECK(finalists(all, 9) == std::vector<size_t>{1, 2, 0});
  CHECK(finalists({}, 2).empty());
}

TEST_CASE("The library takes the table that nvfp4 tune writes") {
  const std::vector<TunedRow> rows = {
      {{64, 5120, 5120, 1}, NVFP4_TYPE_NONE, "sm90_64x64x256/2", "sm90_64x32x256, split 1", 9, 8},
      {{16, 5120, 5120, 1}, NVFP4_TYPE_BF16, "sm90_bf16_64x16x256", "another", 9, 8}};
  for (const bool any : {false, true}) {
    const std::string text = write_table("NVIDIA H200", 90, 132, any, rows);
    CHECK((text.find("\nbits=any\n") != std::string::npos) == any);
    nvfp4_tuning* tuning = nullptr;
    const nvfp4_status status =
        nvfp4_tuning_create(text.data(), text.size(), "NVIDIA H200", 90, 132, &tuning);
    CAPTURE(text, nvfp4_last_error());
    REQUIRE(status == NVFP4_SUCCESS);
    nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
    g.m = 64, g.n = g.k = g.a_ld = g.b_ld = g.d_ld = 5120, g.l = 1;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    g.d_type = NVFP4_TYPE_F16;
    const char* variant = nullptr;
    CHECK(nvfp4_tuning_variant(tuning, &g, &variant) == NVFP4_SUCCESS);
    CHECK(std::string(variant) == "sm90_64x64x256/2");
    g.m = 16, g.a_type = NVFP4_TYPE_BF16;
    CHECK(nvfp4_tuning_variant(tuning, &g, &variant) == NVFP4_SUCCESS);
    CHECK(std::string(variant) == "sm90_bf16_64x16x256");
    nvfp4_tuning_destroy(tuning);
  }
}
