// SPDX-License-Identifier: MIT
// Instructions made from the rows of opcodes.def, for ptxas to judge.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tools/emulator/ptx/opcode_table.h"

namespace ptx_test {

// One instruction per alternative and option of the row: the first has the first of every
// alternative and no option, each further one differs in one place. They use
// ptx_test::declarations().
std::vector<std::string> samples(const emu::ptx::Opcode& opcode, const emu::ptx::Form& form);

// One with every choice drawn.
std::string random_sample(const emu::ptx::Opcode& opcode, const emu::ptx::Form& form,
                          std::mt19937& random);

// The instruction with one word or operand lost, doubled, moved or exchanged for another.
std::string mutant(const std::string& instruction, std::mt19937& random);

}  // namespace ptx_test
