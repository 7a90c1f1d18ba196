// SPDX-License-Identifier: MIT
// Golden tables: comma-separated, first line names the columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/testing/catch.h"
#include "tools/testing/golden_tables.h"

namespace host_test {

inline std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(',', at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

// Rows of the table `name` without the header line: one that follows from a closed form, or a file
// here or of the emulator's tests. A missing or short file fails the test.
inline std::vector<std::vector<std::string>> golden(const std::string& name, size_t rows_expected) {
  std::stringstream text(golden_tables::table(name));
  for (const char* folder : {"test/golden/", "tools/emulator/test/golden/"})
    if (const std::ifstream file(folder + name); file) text << file.rdbuf();
  INFO("golden table " << name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) rows.push_back(split(line));
  REQUIRE(rows.size() == rows_expected);
  return rows;
}

inline uint32_t hex(const std::string& text) {
  return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
}

}  // namespace host_test
