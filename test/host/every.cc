// SPDX-License-Identifier: MIT
// Which variants `nvfp4 tune --every` times, and the CSV it writes of times injected here.
#include "tools/nvfp4/every.h"

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

using nvfp4_tool::every_row;
using nvfp4_tool::EveryRow;
using nvfp4_tool::write_every;

namespace {

// The planner's choice, and others that it predicts to take so long.
std::vector<EveryRow> rows_of(const std::vector<double>& predicted) {
  nvfp4_tool::Candidates candidates;
  candidates.choice = {"sm90_64x16x256", 2, 132, 264, predicted.at(0)};
  for (size_t i = 1; i < predicted.size(); ++i) {
    candidates.others.push_back(
        {"v" + std::to_string(i), {"v" + std::to_string(i), 1, 0, 8, predicted[i]}});
  }
  return every_row({16, 4096, 7168, 1}, NVFP4_TYPE_NONE, candidates);
}

}  // namespace

TEST_CASE("What is predicted to take more than three times the choice's time is not timed") {
  const std::vector<EveryRow> rows = rows_of({10, 9, 31, 30, 500});
  CHECK(rows[0].chosen());
  CHECK(!rows[1].chosen());
  CHECK(worth_timing(rows) == std::vector<size_t>{0, 1, 3});
  CHECK(worth_timing(rows_of({0, 0, 0})) == std::vector<size_t>{0, 1, 2});  // no predictions
}

TEST_CASE("The choice and the fastest six are timed again") {
  std::vector<EveryRow> rows = rows_of({10, 10, 10, 10, 10, 10, 10, 10, 10, 10});
  for (size_t i = 0; i < rows.size(); ++i) rows[i].us = {double(20 - i)};  // the last is fastest
  rows[8].us.clear();
  CHECK(worth_timing_again(rows) == std::vector<size_t>{0, 9, 7, 6, 5, 4, 3});
  rows[0].us = {1};  // stands once, however fast
  CHECK(worth_timing_again(rows).size() == 7);
}

TEST_CASE("A row of the CSV has a shape's plans and the predictions and the times there are") {
  std::vector<EveryRow> rows = rows_of({10.25, 9, 8, 7, 6});
  rows[0].plan.whole = 132;
  rows[0].us = {11, 13, 12};
  rows[2].us = {1};  // less often
  rows[3].us = {5, 5, 5};
  rows[4].us = {4, 4, 4};
  rows.push_back(rows[0]);  // another shape
  rows.back().shape.m = 17;
  rows.back().us.clear();
  const std::string text = write_every("A GPU", 132, rows);
  CHECK(text.find("# device    A GPU, 132 SMs\n") != std::string::npos);
  CHECK(text.find("\n16,4096,7168,1,nvfp4,sm90_64x16x256/2+132 10.25 3 12.000 11.000 13.000,"
                  "v4/1 6.00 3 4.000 4.000 4.000,v3/1 7.00 3 5.000 5.000 5.000,"
                  "v2/1 8.00 1 1.000 1.000 1.000,v1/1 9.00\n"
                  "17,4096,7168,1,nvfp4,sm90_64x16x256/2+132 10.25\n") != std::string::npos);
}
