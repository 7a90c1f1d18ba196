// SPDX-License-Identifier: MIT
// The pairs of small programs in tools/emulator/test/pairs: one racy, the other repaired.
//
// A program begins with "//: NAME CLASS", how it is launched (block=64, and target, cluster or grid
// unless they are 90, 1 and 1), and a line that says what it is about. CLASS is what the emulator
// calls the racy program: error, formal, or silent, if it is none. The kernel's body follows. Lines
// that begin with - stand in the racy program only, lines that begin with + in the repaired one
// only. "= NAME..." stands for the lines under "//: part NAME" in any file of the folder; NAME(32)
// has 32 for the $1 in them.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace hazard_test {

struct Pair {
  std::string name, family, expected;
  unsigned target = 90, block = 32, cluster = 1, grid = 1;
  std::string racy, repaired;  // whole modules with one entry `k`
};

// k's parameters: what it writes, what it reads, a tensor map of the start of what it writes:
// 32-bit integers, `map_rows` of `map_columns` without gaps, in boxes of `map_box` whole rows.
constexpr unsigned buffer_bytes = 16384;
constexpr unsigned map_columns = 32, map_rows = 32, map_box = 2;

// All pairs of a folder, by name. Throws std::runtime_error on a file that is none.
std::vector<Pair> read_pairs(const std::string& folder);

}  // namespace hazard_test
