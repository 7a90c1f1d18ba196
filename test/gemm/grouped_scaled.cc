// SPDX-License-Identifier: MIT
// Grouped products whose D has scales, and those with K = 0: bits of the reference, between guards.
#include "test/gemm/grouped.h"
#include "tools/harness/random_gemm.h"

using namespace gemm_test;

namespace {

std::string complaint(const Gpu& gpu, const std::string& line) {
  support::GemmArena arena(gpu.driver);
  return arena.complaint(support::from_line(line));
}

// Tokens as the device has kernels for, and a layout of D's scales.
std::string of_device(const Gpu& gpu, bool tiles) {
  std::string more = gpu.info.major == 8 || gpu.info.major == 12 ? ",a_type=2" : "";
  if (gpu.info.major == 9) more += ",a_scale_layout=2";
  return more + (tiles ? ",d_scale_layout=1" : ",d_scale_layout=2");
}

}  // namespace

TEST_CASE("grouped: D has scales of each group in every format and layout", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  for (const char* const type : {"4", "5", "6"}) {
    for (const bool tiles : {false, true}) {
      if (tiles && gpu.info.major == 9) continue;
      const std::string line = "m=150,n=96,k16=8,groups=5,group_alpha=1,turned=1,d_type=";
      CAPTURE(type, tiles);
      CHECK(complaint(gpu, line + type + of_device(gpu, tiles)) == "");
      CHECK(complaint(gpu, line + type + ",counts=1,plan=1" + of_device(gpu, tiles)) == "");
    }
  }
}

TEST_CASE("grouped gated: D has scales of each group", "[grouped][gated]") {
  USE_GPU_FOR_HALVES(gpu);
  for (const bool tiles : {false, true}) {
    if (tiles && gpu.info.major == 9) continue;
    const std::string line =
        "m=140,n=96,k16=8,groups=4,group_alpha=1,turned=1,d_type=4,b2=1,activation=3";
    CAPTURE(tiles);
    CHECK(complaint(gpu, line + of_device(gpu, tiles)) == "");
    CHECK(complaint(gpu, line + ",bad_rows=1,plan=1" + of_device(gpu, tiles)) == "");
  }
}

TEST_CASE("grouped: with K = 0 rows of groups are their epilogue and no others are written",
          "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const std::string line = "m=50,n=80,k16=0,groups=6,group_alpha=1,group_bias=1,bias_type=3";
  CHECK(complaint(gpu, line + of_device(gpu, false)) == "");
  CHECK(complaint(gpu, line + ",counts=1,bad_rows=1,c_type=3,beta=75,plan=1" +
                           of_device(gpu, false)) == "");
  CHECK(complaint(gpu, line + ",d_type=4,turned=1" + of_device(gpu, gpu.info.major != 9)) == "");
}
