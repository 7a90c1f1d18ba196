// SPDX-License-Identifier: MIT
// nvfp4 --emulate: the same command again with the emulator as the driver.
#pragma once

namespace nvfp4_tool {

// Becomes the program with the arguments after argv[1], and the emulator in front of every other
// driver. Returns the exit code where that fails, with a sentence on stderr.
int emulate(char** argv);

}  // namespace nvfp4_tool
