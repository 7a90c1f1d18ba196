// SPDX-License-Identifier: MIT
#include "tools/nvfp4/shapes.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

support::Shape shape_of(const std::string& text) {
  support::Shape s{0, 0, 0, 1};
  char rest = 0;
  const int read = std::sscanf(text.c_str(), "%" SCNd64 "x%" SCNd64 "x%" SCNd64 "x%" SCNd64 "%c",
                               &s.m, &s.n, &s.k, &s.l, &rest);
  const int64_t crosses = std::count(text.begin(), text.end(), 'x');
  // scanf would take blanks and signs.
  const bool digits = text.find_first_not_of("0123456789x") == std::string::npos;
  const bool sizes = digits && s.m > 0 && s.n > 0 && s.k > 0 && s.l > 0;
  if (!sizes || read < 3 || read > 4 || read != crosses + 1) {
    throw UsageError(text + " is no shape; MxNxK or MxNxKxL is, 128x7168x2048 for example");
  }
  if (s.k % 16 != 0) throw UsageError(text + ": K is not a multiple of 16");
  return s;
}

// One shape per line; empty lines and lines that begin with # are skipped.
void read_list(const std::string& path, std::vector<support::Shape>* shapes) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line[0] != '#') shapes->push_back(shape_of(line));
  }
  if (!file.eof()) throw UsageError(path + " cannot be read");
}

}  // namespace

std::vector<support::Shape> read_shapes(const std::vector<std::string>& texts,
                                        const std::string& list) {
  std::vector<support::Shape> shapes;
  for (const std::string& text : texts) shapes.push_back(shape_of(text));
  if (!list.empty()) read_list(list, &shapes);
  return shapes;
}

}  // namespace nvfp4_tool
