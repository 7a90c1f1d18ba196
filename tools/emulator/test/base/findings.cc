// SPDX-License-Identifier: MIT
// Two classes of findings and what the settings make of them.
#include "tools/emulator/base/findings.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;

TEST_CASE("an error stops the launch and a formal finding is counted, unless settings differ") {
  exec_test::SettingsGuard guard;
  Findings findings;
  CHECK_FAULT(ordering, "this order", findings.add(Severity::error, 1, "this order"));
  findings.add(Severity::formal, 1, "that order");
  findings.add(Severity::formal, 1, "that order, again");
  CHECK(findings.count(Severity::error) == 1);
  CHECK(findings.count(Severity::formal) == 2);
  CHECK(findings.text() == "this order\nthat order\n");
}

TEST_CASE("either class can stop, be reported or be ignored") {
  exec_test::SettingsGuard guard;
  settings().hazards = Reaction::report;
  settings().formal = Reaction::stop;
  Findings findings;
  findings.add(Severity::error, 1, "one");
  CHECK_FAULT(ordering, "two", findings.add(Severity::formal, 2, "two"));
  settings().formal = Reaction::ignore;
  findings.add(Severity::formal, 3, "three");
  CHECK_FALSE(Findings::wanted(Severity::formal));
  CHECK(findings.count(Severity::formal) == 1);
  CHECK(findings.text() == "one\ntwo\n");
}
