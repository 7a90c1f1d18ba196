// SPDX-License-Identifier: MIT
// build/test/host/probe as a child process, with a driver of the test's choice.
#pragma once

#include <string>
#include <vector>

namespace host_test {

// A file of the build under test: NVFP4_TEST_BUILD, else build/.
std::string built(const std::string& file);

// Not where NVIDIA's cuda.h is missing, as in a distribution's build.
bool emulator_is_built();

// Where libcuda.so.1 comes from.
enum class DriverChoice { none, ancient, stub, fake, idle, emulator };

// Runs `probe actions` with `environment` ("NAME=value NAME=value") and returns the lines of its
// stdout and stderr. NVFP4_TEST_LAUNCHER, if set, is what starts it: an emulator of its processor.
std::vector<std::string> probe(DriverChoice driver, const std::string& actions,
                               const std::string& environment = "");

// The CUDA that compiled the library's images, such as "13.0".
std::string compiler();

// The lines that begin with `prefix`.
std::vector<std::string> starting_with(const std::vector<std::string>& lines,
                                       const std::string& prefix);
bool contains(const std::string& text, const std::string& part);

}  // namespace host_test
