// SPDX-License-Identifier: MIT
// Tensors in safetensors and GGUF files: headers, which are checked before use, and bytes, which
// are read on demand.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/nvfp4/folder.h"

namespace nvfp4_tool {

// Location of a tensor. dtype is the file's word; the fastest dimension of the shape is last.
struct TensorInfo {
  std::string name, file, dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, bytes = 0;

  int64_t elements() const;
};

// Thrown for a file whose content does not match its name.
struct FormatError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A file that is read from.
class DataFile {
 public:
  explicit DataFile(const std::string& path);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  uint64_t size() const { return size_; }
  // Throws FormatError if the file is shorter.
  std::vector<uint8_t> read(uint64_t begin, uint64_t bytes) const;

 private:
  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

struct Header {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};

// These functions throw FormatError with the file and the reason.
Header read_safetensors(const std::string& path);
Header read_gguf(const std::string& path);

// The headers of a file, or of those in a folder, by its indexes if it has some.
struct Checkpoint {
  std::map<std::string, TensorInfo> tensors;  // of several with a name, the one that counts
  std::map<std::string, std::map<std::string, std::string>> metadata;  // by file
  std::map<std::string, std::vector<std::string>> twice;  // names in several files, and which
  std::map<std::string, Lost> lost;   // tensors that an index names and that are not there
  std::set<std::string> stray;        // files that no index names
  std::string index;                  // the paths of the indexes, in a sentence
  std::vector<Transform> transforms;  // what the configurations say of layers
  std::vector<std::string> files;
  Broken broken;
};

// Throws UsageError if the path neither is nor contains such a file.
Checkpoint open_checkpoint(const std::string& path);

}  // namespace nvfp4_tool
