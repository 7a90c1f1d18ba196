// SPDX-License-Identifier: MIT
// Two classes of findings and what the settings make of them.
#include "tools/emulator/base/findings.h"
#include "tools/emulator/base/causes.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

TEST_CASE("an error stops the launch and a formal finding is counted unless settings differ") {
  exec_test::SettingsGuard guard;
  Findings findings;
  CHECK_FAULT(ordering, "this order", findings.add(Severity::error, 1, "proxy", "this order"));
  findings.add(Severity::formal, 1, "scope", "that order");
  findings.add(Severity::formal, 1, "scope", "that order, again");
  CHECK(findings.count(Severity::error) == 1);
  CHECK(findings.again(Severity::formal, 1));
  CHECK(findings.count(Severity::formal) == 3);
  CHECK(findings.text() == "this order\nthat order\n");
  CHECK(findings.by_rule() == std::map<std::string, uint64_t>{{"proxy", 1}, {"scope", 3}});
}

TEST_CASE("either class can stop or be reported or be ignored") {
  exec_test::SettingsGuard guard;
  settings().hazards = Reaction::report;
  settings().formal = Reaction::stop;
  Findings findings;
  findings.add(Severity::error, 1, "proxy", "one");
  CHECK_FAULT(ordering, "two", findings.add(Severity::formal, 2, "scope", "two"));
  settings().formal = Reaction::ignore;
  findings.add(Severity::formal, 3, "scope", "three");
  CHECK_FALSE(Findings::wanted(Severity::formal));
  CHECK(findings.count(Severity::formal) == 1);
  CHECK(findings.text() == "one\ntwo\n");
}

namespace {

std::vector<std::string> heard;

// What is told of findings with these keys, all of one launch of kernel `kernel`.
std::vector<std::string> told_of(const std::string& kernel, std::initializer_list<uint64_t> keys) {
  heard.clear();
  set_listener([](const std::string& report) { heard.push_back(report); });
  Findings findings;
  for (const uint64_t key : keys)
    findings.add(Severity::formal, key, "scope",
                 "missing order in kernel " + kernel + ", block (0,0,0)\n  PTX line 7:1: st");
  tell_the_rest();
  set_listener(nullptr);
  return heard;
}

constexpr uint64_t pair_of(uint64_t earlier, uint64_t later, uint64_t rule) {
  return earlier << 32 | later << 8 | rule;
}

}  // namespace

TEST_CASE("one cause is one report with the number of the others") {
  exec_test::SettingsGuard guard;
  settings().formal = Reaction::report;
  // A missing fence between unrolled stores and one reader, and between one and unrolled readers.
  const auto unrolled = told_of("grouped", {pair_of(1, 9, 4), pair_of(2, 9, 4), pair_of(3, 9, 4),
                                            pair_of(3, 10, 4), pair_of(3, 11, 4)});
  REQUIRE(unrolled.size() == 2);
  CHECK(unrolled[0].find("formal: missing order in kernel grouped, block") == 0);
  CHECK(unrolled[1] == "formal: missing order in kernel grouped: and 4 more like it");
  // The next launch finds the same.
  const auto again = told_of("grouped", {pair_of(1, 9, 4), pair_of(2, 9, 4)});
  REQUIRE(again.size() == 1);
  CHECK(again[0] == "formal: missing order in kernel grouped: and 2 more like it");
  // Another rule, another pair of lines, another kernel.
  CHECK(told_of("grouped", {pair_of(1, 9, 5), pair_of(20, 21, 4)}).size() == 2);
  CHECK(told_of("other", {pair_of(1, 9, 4)}).size() == 1);
}
