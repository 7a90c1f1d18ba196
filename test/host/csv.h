// SPDX-License-Identifier: MIT
// Golden tables: comma-separated, first line names the columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "tools/testing/catch.h"

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

// The roundings lie beside the emulator's tests, which read them too.
inline std::string folder_of(const std::string& name) {
  return name.rfind("numeric_", 0) == 0 ? "tools/emulator/test/golden/" : "test/golden/";
}

// Rows of the table `name` without the header line. A missing or short file fails the test.
inline std::vector<std::vector<std::string>> golden(const std::string& name, size_t rows_expected) {
  std::ifstream file(folder_of(name) + name);
  INFO(folder_of(name) << name);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) rows.push_back(split(line));
  REQUIRE(rows.size() == rows_expected);
  return rows;
}

inline uint32_t hex(const std::string& text) {
  return static_cast<uint32_t>(std::stoul(text, nullptr, 16));
}

}  // namespace host_test
