// SPDX-License-Identifier: MIT
#include "tools/nvfp4/npy.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/harness/formats.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

constexpr size_t kLongestHeader = 4096;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw UsageError(name + ": expected fp32 or fp16 values in NumPy's format: " + why);
}

// The text between the magic and the values, as numpy.lib.format describes it.
std::string header_of(std::istream& file, const std::string& name) {
  unsigned char start[12] = {};
  file.read(reinterpret_cast<char*>(start), 8);
  if (!file || std::memcmp(start, "\x93NUMPY", 6) != 0) refuse(name, "no such file");
  const int length_bytes = start[6] == 1 ? 2 : 4;
  file.read(reinterpret_cast<char*>(start + 8), length_bytes);
  size_t length = 0;
  for (int i = length_bytes; i-- > 0;) length = length << 8 | start[8 + i];
  if (!file || length > kLongestHeader) refuse(name, "no header of at most 4096 bytes");
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  if (!file || header.find('\0') != std::string::npos) refuse(name, "the header is cut");
  return header;
}

// The sizes in "2, 3), }".
std::vector<uint64_t> sizes_of(const std::string& tuple, const std::string& name) {
  std::vector<uint64_t> sizes;
  const char* at = tuple.c_str();
  while (*at != ')') {
    char* end = nullptr;
    if (*at < '0' || *at > '9') refuse(name, "the shape is no tuple of sizes");
    sizes.push_back(std::strtoull(at, &end, 10));
    if (sizes.back() > INT64_MAX) refuse(name, "a size beyond 2^63");
    at = end + std::strspn(end, ", ");
  }
  return sizes;
}

struct Layout {
  size_t value_bytes;  // 4: fp32, 2: fp16
  uint64_t rows, columns;
  bool columns_first;  // Fortran's order
};

// Headers as numpy.save writes them: three keys in this order.
Layout layout_of(const std::string& header, const std::string& name) {
  char type[16] = "", order[8] = "";
  int shape = -1;
  std::sscanf(header.c_str(), "{'descr': '%15[^']', 'fortran_order': %7[a-zA-Z], 'shape': (%n",
              type, order, &shape);
  if (shape < 0) refuse(name, "a header that numpy.save does not write");
  const bool f32 = std::strcmp(type, "<f4") == 0;
  if (!f32 && std::strcmp(type, "<f2") != 0) refuse(name, std::string("values of type ") + type);
  const std::vector<uint64_t> sizes = sizes_of(header.substr(static_cast<size_t>(shape)), name);
  if (sizes.size() != 2) {
    throw UsageError(name + ": has " + std::to_string(sizes.size()) + " dimensions, not 2");
  }
  return {f32 ? 4u : 2u, sizes[0], sizes[1], std::strcmp(order, "True") == 0};
}

// How many values there are before anything is allocated: the header may say what it likes.
size_t count_values(std::istream& file, const Layout& layout, const std::string& name) {
  const auto first = file.tellg();
  file.seekg(0, std::ios::end);
  const uint64_t there = static_cast<uint64_t>(file.tellg() - first) / layout.value_bytes;
  file.seekg(first);
  uint64_t wanted = 0;
  if (__builtin_mul_overflow(layout.rows, layout.columns, &wanted) || wanted > there) {
    throw UsageError(name + ": is shorter than its header says");
  }
  return wanted;
}

template <typename Stored>
std::vector<Stored> stored_values(std::istream& file, size_t count, const std::string& name) {
  std::vector<Stored> values(count);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(Stored)));
  if (!file) throw UsageError(name + ": is shorter than its header says");
  return values;
}

std::vector<float> values_of(std::istream& file, const Layout& layout, const std::string& name) {
  const size_t count = count_values(file, layout, name);
  if (layout.value_bytes == sizeof(float)) return stored_values<float>(file, count, name);
  const std::vector<uint16_t> halves = stored_values<uint16_t>(file, count, name);
  std::vector<float> values(count);
  std::transform(halves.begin(), halves.end(), values.begin(),
                 [](uint16_t bits) { return static_cast<float>(support::f16_value(bits)); });
  return values;
}

}  // namespace

Matrix load_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return read_npy(file, path);
}

// Not by xtensor, whose reader answers a broken header with undefined behaviour, takes a length
// byte above 127 for a negative one and multiplies sizes without a look at overflow (0.24;
// test/fuzz/npy.cc found all three).
Matrix read_npy(std::istream& file, const std::string& name) {
  const Layout layout = layout_of(header_of(file, name), name);
  std::vector<float> values = values_of(file, layout, name);
  Matrix m;
  m.rows = static_cast<int64_t>(layout.rows);
  m.columns = static_cast<int64_t>(layout.columns);
  m.values = layout.columns_first ? std::vector<float>(values.size()) : std::move(values);
  if (!layout.columns_first) return m;
  for (size_t i = 0; i < m.values.size(); ++i) {
    m.values[i] = values[i % layout.columns * layout.rows + i / layout.columns];
  }
  return m;
}

}  // namespace nvfp4_tool
