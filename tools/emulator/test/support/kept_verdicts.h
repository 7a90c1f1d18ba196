// SPDX-License-Identifier: MIT
// What ptxas said, kept from one run of the tests to the next, because half of their time is
// ptxas's. In the folder that PTXAS_VERDICTS names, by ptxas's version, the command and the text;
// without it nothing is kept.
#pragma once

#include <string>

namespace ptx_test {

struct Verdict {
  int status = -1;
  std::string output;
};

// False if there is none of that version for that question.
bool recall(const std::string& question, Verdict* verdict);
void keep(const std::string& question, const Verdict& verdict);

// Status and output of a shell command.
Verdict execute(const std::string& command);

}  // namespace ptx_test
