// SPDX-License-Identifier: MIT
#include "tools/nvfp4/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tools/harness/formats.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

constexpr size_t kLongestHeader = 4096;
constexpr const char* kShorter = "is shorter than its header says";

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw UsageError(name + ": " + why);
}

// Describes a file without NumPy's magic by its first bytes.
std::string kind_of(std::string_view start) {
  const std::string wanted = "; a matrix comes as .npy, from numpy.save";
  if (start.empty()) return "is empty" + wanted;
  if (start.substr(0, 4) == "PK\x03\x04") {
    return "is a zip archive, as .npz and torch.save make" + wanted;
  }
  if (start[0] == '\x80') return "is a Python pickle" + wanted;
  if (start.substr(0, 5) == "\x89HDF\r") return "is an HDF5 file" + wanted;
  return "is no .npy file: it does not begin with \\x93NUMPY" + wanted;
}

// The text between the magic and the values, as numpy.lib.format describes it.
std::string header_of(std::istream& file, const std::string& name) {
  char magic[8] = {};
  file.read(magic, sizeof magic);
  const std::string_view start(magic, size_t(file.gcount()));
  if (start.substr(0, 6) != "\x93NUMPY") refuse(name, kind_of(start));
  if (start.size() < 8) refuse(name, "is cut within its header");
  const int version = static_cast<unsigned char>(magic[6]);
  if (version < 1 || version > 3 || magic[7] != 0) {
    refuse(name, "is .npy of version " + std::to_string(version) + "." +
                     std::to_string(static_cast<unsigned char>(magic[7])) +
                     ", of which only 1.0, 2.0 and 3.0 are known");
  }
  const int length_bytes = version == 1 ? 2 : 4;
  unsigned char bytes[4] = {};
  file.read(reinterpret_cast<char*>(bytes), length_bytes);
  size_t length = 0;
  for (int i = length_bytes; i-- > 0;) length = length << 8 | bytes[i];
  if (!file) refuse(name, "is cut within its header");
  if (length > kLongestHeader) {
    refuse(name, "has a header of " + std::to_string(length) + " bytes; at most 4096 are read");
  }
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  if (!file) refuse(name, "is cut within its header");
  if (header.find('\0') != std::string::npos) refuse(name, "has a header with a zero byte in it");
  return header;
}

// The sizes in "2, 3), }".
std::vector<uint64_t> sizes_of(const std::string& tuple, const std::string& name) {
  std::vector<uint64_t> sizes;
  const char* at = tuple.c_str();
  while (*at != ')') {
    char* end = nullptr;
    if (*at < '0' || *at > '9') refuse(name, "has a shape that is no tuple of sizes");
    sizes.push_back(std::strtoull(at, &end, 10));
    if (sizes.back() > INT64_MAX) refuse(name, "has a size beyond 2^63");
    at = end + std::strspn(end, ", ");
  }
  at += 1 + std::strspn(at + 1, ", ");
  if (*at == '}') at += 1 + std::strspn(at + 1, " \n");
  if (at != tuple.c_str() + tuple.size()) refuse(name, "has more in its header than numpy.save");
  return sizes;
}

struct Layout {
  size_t value_bytes;
  std::vector<uint64_t> sizes;
  bool columns_first;  // Fortran's order
};

// Types of values that a reader takes, by NumPy's names, and the words of its refusal.
struct Types {
  std::vector<std::string> names;
  const char* words;
};
const Types kNumbers = {{"<f4", "<f2"}, "fp32 or fp16; x.astype(numpy.float32) makes them so"};
const Types kFloats = {{"<f4"}, "fp32, as nvfp4 quantize writes tensor scales"};
const Types kBytes = {{"|u1"}, "bytes (uint8), as nvfp4 quantize writes codes and scales"};

// NumPy's name of a type, and what to do about it.
std::string type_refusal(const std::string& type, const Types& types) {
  const std::string cast = std::string(": expected ") + types.words;
  if (type == ">f4" || type == ">f2") return "holds big-endian values (" + type + ")" + cast;
  if (type == "<f8") return "holds fp64 values" + cast;
  if (type.find('O') != std::string::npos) return "holds Python objects" + cast;
  return "holds values of type " + type + cast;
}

// Headers as numpy.save writes them: three keys in this order.
Layout layout_of(const std::string& header, const std::string& name, const Types& types) {
  char type[16] = "", order[8] = "";
  int shape = -1, fields = -1;
  std::sscanf(header.c_str(), "{'descr': [%n", &fields);
  if (fields >= 0) refuse(name, type_refusal("of several fields", types));
  std::sscanf(header.c_str(), "{'descr': '%15[^']', 'fortran_order': %7[a-zA-Z0-9], 'shape': (%n",
              type, order, &shape);
  if (shape < 0) refuse(name, "has a header that numpy.save does not write");
  const bool columns_first = std::strcmp(order, "True") == 0;
  if (!columns_first && std::strcmp(order, "False") != 0) {
    refuse(name, std::string("has a fortran_order that is neither True nor False: ") + order);
  }
  if (std::find(types.names.begin(), types.names.end(), type) == types.names.end()) {
    refuse(name, type_refusal(type, types));
  }
  return {size_t(type[2] - '0'), sizes_of(header.substr(static_cast<size_t>(shape)), name),
          columns_first};
}

Layout require_matrix(Layout layout, const std::string& name) {
  if (layout.sizes.size() != 2) {
    refuse(name, "has " + std::to_string(layout.sizes.size()) +
                     (layout.sizes.size() == 1 ? " dimension" : " dimensions") + ", not 2");
  }
  return layout;
}

// Counts the values before anything is allocated, because the header may say anything.
size_t count_values(std::istream& file, const Layout& layout, const std::string& name) {
  const auto first = file.tellg();
  file.seekg(0, std::ios::end);
  const uint64_t there = static_cast<uint64_t>(file.tellg() - first) / layout.value_bytes;
  file.seekg(first);
  uint64_t wanted = 1;
  for (const uint64_t size : layout.sizes) {
    if (__builtin_mul_overflow(wanted, size, &wanted)) refuse(name, kShorter);
  }
  if (wanted > there) refuse(name, kShorter);
  return wanted;
}

template <typename Stored>
std::vector<Stored> stored_values(std::istream& file, size_t count, const std::string& name) {
  std::vector<Stored> values(count);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(count * sizeof(Stored)));
  if (!file) refuse(name, kShorter);
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

std::ifstream opened(const std::string& path) {
  if (std::filesystem::is_directory(path)) refuse(path, "is a folder");
  if (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path)) {
    refuse(path, "is a pipe or a device; a .npy file is read from its size on");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  return file;
}

template <typename Value>
Array<Value> load_array(const std::string& path, const Types& types) {
  std::ifstream file = opened(path);
  const Layout layout = layout_of(header_of(file, path), path, types);
  if (layout.columns_first) {
    refuse(path, "holds columns first; numpy.ascontiguousarray(x) has rows first");
  }
  return {layout.sizes, stored_values<Value>(file, count_values(file, layout, path), path)};
}

}  // namespace

Array<uint8_t> load_npy_bytes(const std::string& path) { return load_array<uint8_t>(path, kBytes); }

Array<float> load_npy_floats(const std::string& path) { return load_array<float>(path, kFloats); }

Matrix load_npy(const std::string& path) {
  std::ifstream file = opened(path);
  return read_npy(file, path);
}

// Written here instead of using a library: xtensor's reader has undefined behaviour for a broken
// header, takes a length byte above 127 as negative, and multiplies sizes without checking for
// overflow (0.24; test/fuzz/npy.cc found all three).
Matrix read_npy(std::istream& file, const std::string& name) {
  const Layout layout = require_matrix(layout_of(header_of(file, name), name, kNumbers), name);
  std::vector<float> values = values_of(file, layout, name);
  const uint64_t rows = layout.sizes[0], columns = layout.sizes[1];
  Matrix m;
  m.rows = static_cast<int64_t>(rows);
  m.columns = static_cast<int64_t>(columns);
  m.values = layout.columns_first ? std::vector<float>(values.size()) : std::move(values);
  if (!layout.columns_first) return m;
  for (size_t i = 0; i < m.values.size(); ++i) {
    m.values[i] = values[i % columns * rows + i / columns];
  }
  return m;
}

}  // namespace nvfp4_tool
