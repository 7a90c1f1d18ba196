// SPDX-License-Identifier: MIT
// The header of a safetensors file: 8 bytes with the length of a JSON object, that object, then the
// tensors' bytes without gaps. Files that the package safetensors refuses are refused here too,
// since anything else would be read as weights.
#include <algorithm>

#include "tools/nvfp4/strict_json.h"
#include "tools/nvfp4/tensor_file.h"

namespace nvfp4_tool {

namespace {

// The largest header that the package safetensors reads; 100,000 tensors need a tenth of it.
constexpr uint64_t kMostHeader = 100'000'000;

int bits_of(const std::string& dtype) {
  static const std::map<std::string, int> types = {
      {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"BOOL", 8},    {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},     {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"I16", 16}, {"U16", 16},    {"F8_E5M2FNUZ", 8}, {"F16", 16},    {"BF16", 16},
      {"I32", 32}, {"U32", 32},    {"F32", 32},        {"F64", 64},    {"I64", 64},
      {"U64", 64}, {"C64", 64}};
  const auto at = types.find(dtype);
  return at == types.end() ? 0 : at->second;
}

[[noreturn]] void refuse(const std::string& text) { throw FormatError(text); }

// Natural numbers below 2^62 of a JSON list.
std::vector<int64_t> naturals(const StrictJson& list, const std::string& what) {
  if (!list.is_array()) refuse(what + list.dump());
  std::vector<int64_t> numbers;
  for (const StrictJson& number : list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= uint64_t(1) << 62) {
      refuse(what + list.dump());
    }
    numbers.push_back(number.get<int64_t>());
  }
  return numbers;
}

uint64_t bytes_of(const TensorInfo& tensor) {
  constexpr uint64_t kMost = uint64_t(1) << 62;
  uint64_t bits = uint64_t(bits_of(tensor.dtype));
  for (const int64_t size : tensor.shape) {
    const bool fits = size == 0 || bits <= kMost / uint64_t(size);
    bits *= uint64_t(size);
    if (!fits) refuse("'" + tensor.name + "' has a shape of more than any file holds");
  }
  if (bits % 8 != 0) refuse("'" + tensor.name + "' has no whole number of bytes");
  return bits / 8;
}

TensorInfo entry_of(const std::string& file, const std::string& name, const StrictJson& entry) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets")) {
    refuse("'" + name + "' is not described by dtype, shape and data_offsets");
  }
  const StrictJson& dtype = entry["dtype"];
  TensorInfo tensor;
  tensor.name = name, tensor.file = file;
  if (dtype.is_string()) tensor.dtype = dtype.get<std::string>();
  if (bits_of(tensor.dtype) == 0) {
    refuse("'" + name + "' is of " + dtype.dump() + ", which is no type of safetensors");
  }
  tensor.shape = naturals(entry["shape"], "'" + name + "' has the shape ");
  const std::string offsets = "'" + name + "' has the data_offsets ";
  const std::vector<int64_t> ends = naturals(entry["data_offsets"], offsets);
  if (ends.size() != 2) refuse(offsets + entry["data_offsets"].dump());
  const uint64_t bytes = bytes_of(tensor);
  if (ends[1] < ends[0] || uint64_t(ends[1] - ends[0]) != bytes) {
    refuse("'" + name + "' is " + tensor.dtype + " of " + std::to_string(bytes) +
           " bytes, and its data_offsets hold " + std::to_string(ends[1] - ends[0]));
  }
  tensor.begin = uint64_t(ends[0]), tensor.bytes = bytes;
  return tensor;
}

// Sorts tensors by their bytes, which must be contiguous from 0 to `size`, and adds `start` to
// their offsets.
void place(std::vector<TensorInfo>& tensors, uint64_t start, uint64_t size) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::make_pair(a.begin, a.bytes) < std::make_pair(b.begin, b.bytes);
  });
  uint64_t last = 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.begin != last) {
      refuse("'" + tensor.name + "' begins at byte " + std::to_string(tensor.begin) + ", where " +
             std::to_string(last) + " is expected");
    }
    last += tensor.bytes;
    tensor.begin += start;
  }
  if (last != size) {
    refuse(std::to_string(size) + " bytes follow the header, and its tensors are " +
           std::to_string(last));
  }
}

Header parse(const std::string& path, const std::vector<uint8_t>& text, uint64_t start,
             uint64_t size) {
  if (text.empty() || text[0] != '{') refuse("its header is no JSON object");
  const StrictJson head = parse_strict(std::string(text.begin(), text.end()));
  Header header;
  for (const auto& [name, entry] : head.items()) {
    if (name != "__metadata__") {
      header.tensors.push_back(entry_of(path, name, entry));
      continue;
    }
    if (!entry.is_object()) refuse("__metadata__ is no object of strings");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse("__metadata__ is no object of strings");
      header.metadata[key] = value.get<std::string>();
    }
  }
  place(header.tensors, start, size);
  return header;
}

}  // namespace

Header read_safetensors(const std::string& path) {
  const DataFile file(path);
  try {
    uint64_t size = 0;
    if (file.size() < 8) refuse("a header of 0 bytes");
    const std::vector<uint8_t> length = file.read(0, 8);
    for (int i = 7; i >= 0; --i) size = size << 8 | length[size_t(i)];
    if (size > std::min(file.size() - 8, kMostHeader)) {
      refuse("a header of " + std::to_string(size) + " bytes");
    }
    return parse(path, file.read(8, size), 8 + size, file.size() - 8 - size);
  } catch (const std::runtime_error& error) {
    throw FormatError(path + " is no safetensors file: " + error.what());
  }
}

}  // namespace nvfp4_tool
