// SPDX-License-Identifier: MIT
// NumPy files.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace nvfp4_tool {

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<float> values;  // row-major
};

// fp32 or fp16 with two dimensions; throws UsageError otherwise. `name` is for the message.
Matrix load_npy(const std::string& path);
Matrix read_npy(std::istream& file, const std::string& name);

// Any shape, in C order: bytes or fp32 alone. Throws UsageError otherwise.
template <typename Value>
struct Array {
  std::vector<uint64_t> shape;
  std::vector<Value> values;
};
Array<uint8_t> load_npy_bytes(const std::string& path);
Array<float> load_npy_floats(const std::string& path);

class OutputFiles;

// Any shape, values in C order. The file appears when `files` is committed.
void save_npy(OutputFiles& files, const std::string& path, const std::vector<size_t>& shape,
              const std::vector<float>& values);
void save_npy(OutputFiles& files, const std::string& path, const std::vector<size_t>& shape,
              const std::vector<uint8_t>& values);

}  // namespace nvfp4_tool
