// SPDX-License-Identifier: MIT
// The pairs of small programs in tools/emulator/test/pairs: one racy, the other repaired.
//
// A file is a kernel's body. Lines that begin with - stand in the racy program only, lines that
// begin with + in the repaired one only. Its second line says what it is about, its third how it is
// launched and what the emulator calls the racy program: error, formal, or silent, if it is none.
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
