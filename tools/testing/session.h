// SPDX-License-Identifier: MIT
// What main of every Catch2 binary does.
#pragma once

namespace support {

// The status of a run by name or tag that executed no test, because all of them are left out on
// this device (left_out.h). It is automake's status for a test that was skipped.
constexpr int kExecutedNone = 77;

// Runs the session, which ends with "N passed, N failed, N skipped", counted in test cases. Where
// NVFP4_TALLY names a file, the numbers are appended to it instead, and test/run.py adds them up.
// How many tests were left out is printed on a line before. Returns 0 if every test that was
// executed passed, and kExecutedNone if a filter chose only tests that are left out. A run whose
// filter fits no test fails, with 1 like any other failure.
int run_tests(int argc, char** argv);

}  // namespace support
