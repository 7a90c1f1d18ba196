// SPDX-License-Identifier: MIT
// The header of a GGUF file: names, types, shapes and offsets of its tensors. Its settings are
// skipped, except for the alignment, on which the offsets depend.
#include <algorithm>
#include <set>

#include "tools/nvfp4/dialects.h"
#include "tools/nvfp4/strict_json.h"
#include "tools/nvfp4/tensor_file.h"

namespace nvfp4_tool {

namespace {

constexpr uint32_t kUint32 = 4, kString = 8, kArray = 9;
constexpr uint32_t kMostDimensions = 4;

[[noreturn]] void refuse(const std::string& text) { throw FormatError(text); }

uint64_t value_bytes(uint32_t kind) {
  constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  if (kind >= sizeof kBytes || kBytes[kind] == 0) {
    refuse("a setting of type " + std::to_string(kind));
  }
  return kBytes[kind];
}

// Reads forward in steps of a mebibyte, never beyond the file.
class Cursor {
 public:
  explicit Cursor(const DataFile& file) : file_(file) {}

  uint64_t place() const { return place_; }

  void skip(uint64_t bytes) {
    if (bytes > file_.size() - place_) {
      refuse(std::to_string(bytes) + " bytes are expected where " +
             std::to_string(file_.size() - place_) + " are left");
    }
    place_ += bytes;
  }

  uint64_t number(unsigned bytes) {
    const uint64_t at = place_;
    skip(bytes);
    load(at, bytes);
    uint64_t value = 0;
    for (unsigned i = bytes; i-- > 0;) value = value << 8 | buffer_[at - begin_ + i];
    return value;
  }

  std::string text() {
    const uint64_t bytes = number(8), at = place_;
    skip(bytes);
    const std::vector<uint8_t> data = file_.read(at, bytes);
    const std::string text(data.begin(), data.end());
    try {
      StrictJson(text).dump();
    } catch (const StrictJson::exception&) {
      refuse("a name that is no UTF-8");
    }
    return text;
  }

 private:
  void load(uint64_t at, uint64_t bytes) {
    if (at >= begin_ && at + bytes <= begin_ + buffer_.size()) return;
    begin_ = at;
    buffer_ =
        file_.read(at, std::min<uint64_t>(std::max<uint64_t>(bytes, 1 << 16), file_.size() - at));
  }

  const DataFile& file_;
  uint64_t place_ = 0, begin_ = 0;
  std::vector<uint8_t> buffer_;
};

void skip_values(Cursor& cursor, uint32_t kind, uint64_t count) {
  if (kind == kString) {
    for (uint64_t i = 0; i < count; ++i) cursor.skip(cursor.number(8));
    return;
  }
  const uint64_t bytes = value_bytes(kind);
  if (count > uint64_t(1) << 60) refuse("a setting of " + std::to_string(count) + " values");
  cursor.skip(count * bytes);
}

uint64_t skip_settings(Cursor& cursor, uint64_t settings) {
  uint64_t alignment = 32;
  for (uint64_t i = 0; i < settings; ++i) {
    const std::string name = cursor.text();
    uint32_t kind = uint32_t(cursor.number(4));
    if (name == "general.alignment") {
      alignment = kind == kUint32 ? cursor.number(4) : 0;
      if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
        refuse("general.alignment is no power of two");
      }
      continue;
    }
    uint64_t count = 1;
    if (kind == kArray) {
      kind = uint32_t(cursor.number(4));
      count = cursor.number(8);
    }
    skip_values(cursor, kind, count);
  }
  return alignment;
}

// `bytes` stays 0 for types that do not matter here. `begin` is the offset in the data.
TensorInfo entry_of(Cursor& cursor, const std::string& file) {
  TensorInfo tensor;
  tensor.file = file, tensor.name = cursor.text();
  const uint64_t dimensions = cursor.number(4);
  if (dimensions > kMostDimensions) {
    refuse("'" + tensor.name + "' has " + std::to_string(dimensions) + " dimensions");
  }
  constexpr uint64_t kMost = uint64_t(1) << 62;
  uint64_t elements = 1;
  for (uint64_t i = 0; i < dimensions; ++i) {
    const uint64_t size = cursor.number(8);
    const bool fits = size == 0 || elements <= kMost / size;
    elements *= size;
    if (!fits) {
      refuse("'" + tensor.name + "' does not end before the next tensor");
    }
    tensor.shape.insert(tensor.shape.begin(), int64_t(size));
  }
  const uint32_t kind = uint32_t(cursor.number(4));
  tensor.begin = cursor.number(8);
  tensor.dtype = "type " + std::to_string(kind);
  for (const GgufType& type : gguf_types()) {
    if (type.number != kind) continue;
    tensor.dtype = type.name;
    if (!tensor.shape.empty() && uint64_t(tensor.shape.back()) % type.elements != 0) {
      refuse("'" + tensor.name + "' is " + tensor.dtype + " with rows of " +
             std::to_string(tensor.shape.back()) + ", no multiple of " +
             std::to_string(type.elements));
    }
    tensor.bytes = elements / type.elements * type.bytes;
  }
  return tensor;
}

// Checks that each tensor ends before the next one begins.
void place(std::vector<TensorInfo>& tensors, uint64_t start, uint64_t end, uint64_t alignment) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) { return a.begin > b.begin; });
  for (TensorInfo& tensor : tensors) {
    const bool fits =
        start <= end && tensor.begin <= end - start && tensor.bytes <= end - start - tensor.begin;
    if (!fits || tensor.begin % alignment != 0) {
      refuse("'" + tensor.name + "' lies at byte " + std::to_string(tensor.begin) +
             " of the data, which is no multiple of " + std::to_string(alignment) +
             ", or does not end before the next tensor");
    }
    tensor.begin += start;
    end = tensor.begin;
  }
}

Header parse(const DataFile& file, const std::string& path) {
  Cursor cursor(file);
  if (cursor.number(4) != 0x46554747) refuse("it does not begin with GGUF");
  const uint64_t version = cursor.number(4);
  if (version != 2 && version != 3) {
    refuse("version " + std::to_string(version) + "; 2 and 3 are read");
  }
  const uint64_t tensors = cursor.number(8), settings = cursor.number(8);
  const uint64_t alignment = skip_settings(cursor, settings);
  Header header;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    header.tensors.push_back(entry_of(cursor, path));
    if (!names.insert(header.tensors.back().name).second) refuse("two tensors of one name");
  }
  const uint64_t start = (cursor.place() + alignment - 1) / alignment * alignment;
  place(header.tensors, start, file.size(), alignment);
  return header;
}

}  // namespace

Header read_gguf(const std::string& path) {
  const DataFile file(path);
  try {
    return parse(file, path);
  } catch (const std::runtime_error& error) {
    throw FormatError(path + " is no GGUF file: " + error.what());
  }
}

}  // namespace nvfp4_tool
