// SPDX-License-Identifier: MIT
// Random problems of every field: a few hundred in the suite, as many as wanted by `make
// check-random`.
#include "test/gemm/gpu.h"
#include "tools/harness/random_gemm.h"

using support::RandomGemm;

TEST_CASE("random problems of every field are right", "[random_gemm]") {
  USE_GPU_FOR_HALVES(gpu);
  support::GemmArena arena(gpu.driver);
  const bool halves_alone = gpu.info.emulated() && !gpu.reason_to_skip().empty();
  const uint64_t count = halves_alone ? 60 : gpu.sized(200, 30);
  for (uint64_t i = 0; i < count; ++i) {
    const RandomGemm problem = support::draw_gemm(2026, i, gpu.info.compute_capability());
    const std::string wrong = arena.complaint(problem);
    INFO("check_random --problem " << to_line(problem));
    REQUIRE(wrong == "");
  }
}

TEST_CASE("a random problem is its line and its line the problem", "[random_gemm]") {
  for (uint64_t i = 0; i < 50; ++i) {
    const std::string line = to_line(support::draw_gemm(7, i, 90));
    CAPTURE(line);
    CHECK(to_line(support::from_line(line)) == line);
  }
  CHECK(to_line(RandomGemm()) == "");
  CHECK_THROWS(support::from_line("m=3,none=4"));
  CHECK_THROWS(support::from_line("m"));
}

// A scale that the device does not see: 1 in place of what the problem says.
TEST_CASE("a wrong problem is found and shrunk to what is wrong", "[random_gemm]") {
  USE_GPU(gpu);
  support::GemmArena arena(gpu.driver);
  RandomGemm problem = support::draw_gemm(3, 5, gpu.info.compute_capability());
  problem.fields.d_type = NVFP4_TYPE_F16,
  problem.fields.cd_order = 7;  // none of the enumeration: the library refuses it
  const std::string wrong = arena.complaint(problem);
  CHECK(wrong.find("cd_order = 7") == 0);
  const RandomGemm simple = support::shrink(arena, problem, 400);
  CHECK(to_line(simple).find("cd_order=") != std::string::npos);
  CHECK(to_line(simple).size() < 40);
  CHECK(arena.complaint(simple) != "");
}
