// SPDX-License-Identifier: MIT
// Files that appear whole or not at all: they are written beside their destination, then all
// renamed together. A full disk or a kill leaves the old files.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nvfp4_tool {

class OutputFiles {
 public:
  OutputFiles() = default;
  ~OutputFiles();  // removes what was not committed
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Creates an empty file beside `path` for the caller to fill, and returns its name. These
  // functions throw std::runtime_error with path and cause.
  std::string add(const std::string& path);
  void write(const std::string& path, const std::vector<std::string_view>& parts);

  // Renames all of them. No signal except SIGKILL can interrupt. If one cannot be renamed, those
  // before it get their old content back.
  void commit();

 private:
  struct File {
    std::string path, beside;  // equal to `path` for a device or a pipe
    std::string backup;        // during commit(), a link to the old file
    bool existed = false, committed = false;
    bool in_place() const { return path == beside; }
  };
  void replace(File& file);
  void undo();
  std::vector<File> files_;
};

}  // namespace nvfp4_tool
