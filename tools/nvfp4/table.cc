// SPDX-License-Identifier: MIT
#include "tools/nvfp4/table.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace nvfp4_tool {

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)), headings_due_(false) {
  for (Column& column : columns_) {
    column.width = std::max(column.width, std::string(column.heading).size());
    headings_due_ |= *column.heading != '\0';
  }
}

void Table::expect(const std::vector<std::string>& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    columns_[i].width = std::max(columns_[i].width, row[i].size());
  }
}

std::string Table::line(const std::vector<std::string>& row) {
  expect(row);
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string fill(columns_[i].width - row[i].size(), ' ');
    text += (i ? "  " : "") + (columns_[i].right ? fill + row[i] : row[i] + fill);
  }
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

void Table::print(const std::vector<std::string>& row) {
  expect(row);
  if (headings_due_) {
    std::vector<std::string> headings;
    for (const Column& column : columns_) headings.emplace_back(column.heading);
    std::printf("%s\n", line(headings).c_str());
    headings_due_ = false;
  }
  std::printf("%s\n", line(row).c_str());
  std::fflush(stdout);
}

}  // namespace nvfp4_tool
