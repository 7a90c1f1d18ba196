// SPDX-License-Identifier: MIT
// A table on standard output whose rows appear one by one, columns two spaces apart.
#pragma once

#include <string>
#include <vector>

namespace nvfp4_tool {

class Table {
 public:
  struct Column {
    const char* heading;
    bool right = false;  // numbers end at the same place
    size_t width = 0;    // of the heading and of every value that is expected or printed
  };
  // Without headings the table has none.
  explicit Table(std::vector<Column> columns);

  // Widens the columns for a row that comes later, so that the rows before it stand below one
  // another with it.
  void expect(const std::vector<std::string>& row);
  // The headings before the first row.
  void print(const std::vector<std::string>& row);

  // The row as a line, without spaces at its end.
  std::string line(const std::vector<std::string>& row);

 private:
  std::vector<Column> columns_;
  bool headings_due_;
};

}  // namespace nvfp4_tool
