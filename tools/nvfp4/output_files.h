// SPDX-License-Identifier: MIT
// Files that appear whole or not at all: written beside their place, then renamed into it, all
// together. A full disk or a kill leaves what was there before.
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

  // An empty file beside `path` for somebody else to fill; answers its name. These throw
  // std::runtime_error with path and cause.
  std::string add(const std::string& path);
  void write(const std::string& path, const std::vector<std::string_view>& parts);

  // Renames all of them. No signal but SIGKILL comes between; where one cannot be renamed, those
  // before it get their old content back.
  void commit();

 private:
  struct File {
    std::string path, beside;  // `beside` is `path` where that is a device or a pipe
    std::string backup;        // during commit(), a link to what was there
    bool existed = false, committed = false;
    bool in_place() const { return path == beside; }
  };
  void replace(File& file);
  void undo();
  std::vector<File> files_;
};

}  // namespace nvfp4_tool
