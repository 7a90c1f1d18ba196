// SPDX-License-Identifier: MIT
// Two classes of findings and what the settings make of them.
#include "tools/emulator/base/findings.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

TEST_CASE("an error stops the launch and a formal finding is counted unless settings differ") {
  exec_test::SettingsGuard guard;
  Findings findings;
  CHECK_FAULT(ordering, "this order", findings.add(Severity::error, {1, 7}, "proxy", "this order"));
  findings.add(Severity::formal, {1, 7}, "scope", "that order");
  findings.add(Severity::formal, {1, 7}, "scope", "that order, again");
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
  findings.add(Severity::error, {1, 7}, "proxy", "one");
  CHECK_FAULT(ordering, "two", findings.add(Severity::formal, {2, 7}, "scope", "two"));
  settings().formal = Reaction::ignore;
  findings.add(Severity::formal, {3, 7}, "scope", "three");
  CHECK_FALSE(Findings::wanted(Severity::formal));
  CHECK(findings.count(Severity::formal) == 1);
  CHECK(findings.text() == "one\ntwo\n");
}

TEST_CASE("a formal finding that is excepted is counted by its rule alone") {
  exec_test::SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::stop;
  settings().except = "scope:wide";
  Findings wide("a_wide_kernel"), narrow("a_narrow_kernel");
  wide.add(Severity::formal, {1, 7}, "scope", "one");
  wide.add(Severity::formal, {1, 7}, "scope", "one");
  CHECK(wide.count(Severity::formal) == 0);
  CHECK(wide.text() == "");
  CHECK(wide.by_rule() == std::map<std::string, uint64_t>{{"scope", 2}});
  CHECK_FAULT(ordering, "two", wide.add(Severity::formal, {2, 7}, "scopes", "two"));
  CHECK_FAULT(ordering, "three", wide.add(Severity::error, {3, 7}, "scope", "three"));
  CHECK_FAULT(ordering, "four", narrow.add(Severity::formal, {4, 7}, "scope", "four"));
}

namespace {

std::vector<std::string> heard;

struct Met {
  Severity severity;
  const char* rule;
  uint32_t line;
  uint64_t times = 1;
};

// What is said of a launch of `kernel` in which these were met.
std::vector<std::string> told_of(const std::string& kernel, std::initializer_list<Met> all,
                                 const char* left_to = nullptr) {
  heard.clear();
  set_listener([](const std::string& report) { heard.push_back(report); });
  Findings findings(kernel);
  for (const Met& met : all)
    for (uint64_t i = 0; i < met.times; ++i)
      if (!findings.again(met.severity, met.line))
        findings.add(met.severity, {met.line, met.line}, met.rule, "missing order in " + kernel,
                     left_to);
  findings.tell_the_rest();
  set_listener(nullptr);
  return heard;
}

constexpr Severity error = Severity::error, formal = Severity::formal;

}  // namespace

TEST_CASE("of each rule and kernel a process tells one example and a launch how many more") {
  exec_test::SettingsGuard guard;
  settings().hazards = settings().formal = Reaction::report;
  using Told = std::vector<std::string>;
  CHECK(told_of("grouped", {{formal, "scope", 9}}) == Told{"formal: missing order in grouped"});
  CHECK(told_of("grouped", {{formal, "lanes", 9},
                            {formal, "lanes", 4, 3},
                            {formal, "scope", 5},
                            {error, "proxy", 20},
                            {error, "proxy", 21}}) ==
        Told{"formal: missing order in grouped", "error: missing order in grouped",
             "error: kernel grouped: 1 more proxy (PTX lines 21)",
             "formal: kernel grouped: 3 more lanes (PTX lines 4), 1 scope (PTX lines 5)"});
  // The same line again and again; of many lines the first.
  CHECK(told_of("other", {{formal, "scope", 3, 5}}).back() == "formal: kernel other: 4 more scope");
  CHECK(told_of("grouped", {{formal, "scope", 8},
                            {formal, "scope", 6},
                            {formal, "scope", 4},
                            {formal, "scope", 2},
                            {formal, "scope", 7}}) ==
        Told{"formal: kernel grouped: 5 scope (PTX lines 2, 4 ..)"});
}

TEST_CASE("what somebody else puts right has a line for the launch and no example") {
  exec_test::SettingsGuard guard;
  settings().formal = Reaction::report;
  CHECK(told_of("tuned", {{formal, "fence", 8, 40}, {formal, "fence", 6}}, "ptxas") ==
        std::vector<std::string>{"formal: kernel tuned: 41 fence (left to ptxas)"});
  settings().formal = Reaction::stop;
  Findings findings("tuned");
  CHECK_FAULT(ordering, "one", findings.add(formal, {1, 1}, "fence", "one", "ptxas"));
}
