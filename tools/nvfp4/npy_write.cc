// SPDX-License-Identifier: MIT
// numpy.lib.format, version 1.0, for little-endian machines.
#include "tools/nvfp4/npy.h"
#include "tools/nvfp4/output_files.h"

namespace nvfp4_tool {

namespace {

std::string header(const char* type, const std::vector<size_t>& shape) {
  std::string text = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? " " : "") + std::to_string(shape[i]) + ",";
  if (shape.size() > 1) text.pop_back();  // only a tuple of one keeps its comma
  text += "), }";
  constexpr size_t kBefore = 10, kAlign = 64;  // magic, version and length; where values start
  text.append(kAlign - (kBefore + text.size() + 1) % kAlign, ' ');
  text += '\n';
  const char before[kBefore + 1] = "\x93NUMPY\x01\x00";
  std::string start(before, 8);
  start += char(text.size() & 0xFF);
  start += char(text.size() >> 8);
  return start + text;
}

template <typename Value>
void write(OutputFiles& files, const std::string& path, const char* type,
           const std::vector<size_t>& shape, const std::vector<Value>& values) {
  const std::string start = header(type, shape);
  files.write(
      path, {start, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)}});
}

}  // namespace

void save_npy(OutputFiles& files, const std::string& path, const std::vector<size_t>& shape,
              const std::vector<float>& values) {
  write(files, path, "<f4", shape, values);
}

void save_npy(OutputFiles& files, const std::string& path, const std::vector<size_t>& shape,
              const std::vector<uint8_t>& values) {
  write(files, path, "|u1", shape, values);
}

}  // namespace nvfp4_tool
