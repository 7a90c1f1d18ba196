// SPDX-License-Identifier: MIT
// What main of every Catch2 binary does.
#pragma once

namespace support {

// Runs the session, which ends with "N passed, N failed, N skipped", counted in test cases. Where
// NVFP4_TALLY names a file, the numbers are appended to it instead, and test/run.py adds them up. A
// run whose filter fits no test fails.
int run_tests(int argc, char** argv);

}  // namespace support
