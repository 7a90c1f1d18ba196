// SPDX-License-Identifier: MIT
// nvfp4 --emulate: runs the same command again with the emulator as the driver.
#pragma once

namespace nvfp4_tool {

// Replaces this process with the program, the arguments after argv[1], and the emulator ahead of
// every other driver. If that fails it prints a message and returns the exit code.
int emulate(char** argv);

}  // namespace nvfp4_tool
