// SPDX-License-Identifier: MIT
// One program of tools/emulator/test/pairs in a process of its own, for compute-sanitizer.
#pragma once

namespace h200 {

// emulator_hw_test --pair FOLDER                     the pairs that sm_90 can run, a name per line
// emulator_hw_test --pair FOLDER NAME racy|repaired  runs one program
// Returns what main returns.
int pair(int argc, char** argv);

}  // namespace h200
