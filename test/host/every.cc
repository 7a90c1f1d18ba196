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

TEST_CASE("A row of the CSV has the plan, the prediction and the times there are") {
  std::vector<EveryRow> rows = rows_of({10.25, 9});
  rows[0].us = {11, 13, 12};
  const std::string text = write_every("A GPU", 132, rows);
  CHECK(text.find("# device    A GPU, 132 SMs\n") != std::string::npos);
  CHECK(text.find("\n16,4096,7168,1,nvfp4,sm90_64x16x256,2,132,264,1,10.25,3,12.000,11.000,13.000\n"
                  "16,4096,7168,1,nvfp4,v1,1,0,8,0,9.00,0,,,\n") != std::string::npos);
}
