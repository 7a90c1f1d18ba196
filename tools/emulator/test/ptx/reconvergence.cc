// SPDX-License-Identifier: MIT
// Where diverged lanes meet again: Instr::reconverge of each branch.
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace ptx_test;

uint32_t meeting(const std::string& body, size_t branch) {
  const auto c = code(body);
  REQUIRE(std::string(c.at(branch).opcode) == "bra");
  return c[branch].reconverge;
}

}  // namespace

TEST_CASE("an if without else meets after it") {
  CHECK(meeting("@p1 bra L; mov.b32 r1, 1; L: mov.b32 r2, 2; ret;", 0) == 2);
}

TEST_CASE("an if with else meets after both") {
  const std::string body =
      "@p1 bra ELSE; mov.b32 r1, 1; bra END; ELSE: mov.b32 r1, 2; END: mov.b32 r2, r1; ret;";
  CHECK(meeting(body, 0) == 4);
  CHECK(meeting(body, 2) == 4);
}

TEST_CASE("a loop meets at its end even with an inner if") {
  CHECK(meeting("L: mov.b32 r1, 1; @p1 bra L; mov.b32 r2, 2; ret;", 1) == 2);
  const std::string body =
      "L: @p1 bra SKIP; mov.b32 r1, 1; SKIP: mov.b32 r2, 2; @p2 bra L; mov.b32 r3, 3; ret;";
  CHECK(meeting(body, 0) == 2);
  CHECK(meeting(body, 3) == 4);
}

TEST_CASE("the wait loop of inline assembly meets at its DONE label") {
  const std::string body =
      "{ W: mbarrier.try_wait.parity.shared.b64 p1, [r1], r2; @p1 bra.uni DONE; "
      "bra.uni W; DONE: } mov.b32 r3, 3; ret;";
  CHECK(meeting(body, 1) == 3);
  CHECK(meeting(body, 2) == 0);  // no other lane comes from there
}

TEST_CASE("a break out of two loops meets after the outer one") {
  const std::string body =
      "O: mov.b32 r0, 0; I: @p1 bra OUT; @p2 bra I; @p3 bra O; OUT: mov.b32 r1, 1; ret;";
  CHECK(meeting(body, 1) == 4);
  CHECK(meeting(body, 2) ==
        4);  // not at the outer loop's branch: some lanes may have left through OUT
  CHECK(meeting(body, 3) == 4);
}

TEST_CASE("lanes that end early are not waited for") {
  // A guarded ret, and nvcc's way to write it.
  CHECK(meeting("@p1 bra L; @p2 ret; mov.b32 r1, 1; L: mov.b32 r2, 2; ret;", 0) == 3);
  const std::string body = "@p1 bra L; @p2 bra END; mov.b32 r1, 1; L: mov.b32 r2, 2; END: ret;";
  CHECK(meeting(body, 0) == 3);
  CHECK(meeting(body, 1) == 2);
}

TEST_CASE("an if in a loop that is left by ends alone meets behind it") {
  // A persistent kernel: each exit of its loop is a branch to the ret, or a guarded ret.
  const std::string body =
      "L: @p1 bra END; @p2 bra SKIP; mov.b32 r1, 1; SKIP: mov.b32 r2, 2; @p3 bra END; bra L;"
      "END: ret;";
  CHECK(meeting(body, 1) == 3);
  CHECK(meeting("L: @p1 ret; @p2 bra SKIP; mov.b32 r1, 1; SKIP: mov.b32 r2, 2; bra L;", 1) == 3);
}

TEST_CASE("lanes that trap are not waited for") {
  // DeepGEMM: an elected lane loads, the others go by, and an assertion lies on their way.
  const std::string body =
      "@p1 bra OTHERS; mov.b32 r1, 1; bra END; OTHERS: @p2 bra GOOD; trap; GOOD: mov.b32 r2, 2;"
      "END: bar.sync 0; ret;";
  CHECK(meeting(body, 0) == 6);
  CHECK(meeting(body, 3) == 5);
  CHECK(meeting("@p1 bra BAD; mov.b32 r1, 1; ret; BAD: trap;", 0) == 1);
}

TEST_CASE("branches of which both ways end meet nowhere") {
  CHECK(meeting("@p1 bra L; mov.b32 r1, 1; ret; L: mov.b32 r2, 2; exit;", 0) ==
        emu::ptx::no_target);
}

TEST_CASE("a loop without end meets nowhere and does not hang the loader") {
  CHECK(meeting("L: mov.b32 r1, 1; bra L;", 1) == emu::ptx::no_target);
  CHECK(meeting("@p1 bra L; L: mov.b32 r1, 1; bra L;", 0) == emu::ptx::no_target);
}
