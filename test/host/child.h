// SPDX-License-Identifier: MIT
// build/test/host/probe as a child process, with a driver of the test's choice.
#pragma once

#include <string>
#include <vector>

namespace host_test {

// Where libcuda.so.1 comes from.
enum class DriverChoice { none, ancient, fake, emulator };

// Runs `probe actions` with `environment` ("NAME=value NAME=value") and returns the lines of its
// stdout and stderr.
std::vector<std::string> probe(DriverChoice driver, const std::string& actions,
                               const std::string& environment = "");

// The lines that begin with `prefix`.
std::vector<std::string> starting_with(const std::vector<std::string>& lines,
                                       const std::string& prefix);
bool contains(const std::string& text, const std::string& part);

}  // namespace host_test
