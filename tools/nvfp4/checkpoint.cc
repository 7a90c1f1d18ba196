// SPDX-License-Identifier: MIT
// The headers of a folder's files together, by its indexes where it has some.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/tensor_file.h"

namespace nvfp4_tool {

namespace {

namespace fs = std::filesystem;

constexpr char kIndexed[] = ".safetensors";

bool known(const fs::path& file) {
  return file.extension() == kIndexed || file.extension() == ".gguf";
}

std::vector<std::string> files_in(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (known(at->path()) && at->is_regular_file(error)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw UsageError(path + " is no safetensors or GGUF file and has none");
  return files;
}

std::string base(const std::string& file) { return fs::path(file).filename().string(); }

class Collector {
 public:
  explicit Collector(const std::string& path) {
    found_.files = files_in(path);
    std::error_code error;
    const bool whole = fs::is_directory(path, error);
    folder_ = whole ? path : fs::path(path).parent_path().string();
    if (folder_.empty()) folder_ = ".";
    found_.transforms = read_transforms(folder_, &found_.broken);
    if (whole) index_ = read_index(folder_);
    found_.broken.insert(found_.broken.end(), index_.broken.begin(), index_.broken.end());
    found_.lost = index_.outside;
    for (const std::string& one : index_.paths) {
      found_.index += (found_.index.empty() ? "" : " and ") + one;
    }
    find_stray();
  }

  Checkpoint collect() {
    for (const std::string& file : found_.files) {
      try {
        const bool gguf = fs::path(file).extension() == ".gguf";
        add(file, gguf ? read_gguf(file) : read_safetensors(file));
      } catch (const FormatError& error) {
        found_.broken.emplace_back(file, error.what());
      }
    }
    lose();
    return std::move(found_);
  }

 private:
  void find_stray() {
    std::set<std::string> named;
    for (const auto& [tensor, place] : index_.files) named.insert(place.file);
    for (const std::string& file : found_.files) {
      if (index_.paths.empty() || fs::path(file).extension() != kIndexed) continue;
      if (named.count(base(file)) == 0) found_.stray.insert(file);
    }
  }

  void add(const std::string& file, Header header) {
    found_.metadata[file] = std::move(header.metadata);
    for (TensorInfo& tensor : header.tensors) add(std::move(tensor));
  }

  // If several files have the name, the one that an index names counts, or else those that are not
  // stray.
  void add(TensorInfo tensor) {
    const auto decided = index_.files.find(tensor.name);
    if (decided != index_.files.end() && decided->second.file != base(tensor.file)) return;
    const std::string name = tensor.name;
    const bool stray = found_.stray.count(tensor.file) != 0;
    const auto [at, fresh] = found_.tensors.try_emplace(name, std::move(tensor));
    if (fresh) return;
    const bool other_stray = found_.stray.count(at->second.file) != 0;
    if (stray && !other_stray) return;
    if (stray == other_stray) {
      std::vector<std::string>& files = found_.twice[name];
      if (files.empty()) files.push_back(at->second.file);
      files.push_back(tensor.file);
      return;
    }
    found_.twice.erase(name);
    at->second = std::move(tensor);
  }

  void lose() {
    std::set<std::string> here;
    for (const std::string& file : found_.files) here.insert(base(file));
    std::map<std::string, std::string> missing;  // file, index
    for (const auto& [name, place] : index_.files) {
      if (here.count(place.file) == 0) {
        missing.emplace(place.file, place.index);
        found_.lost[name] = {place.index, "in " + place.file + ", which is missing",
                             "the file that " + place.index + " names"};
      } else if (found_.tensors.count(name) == 0) {
        found_.lost[name] = {place.index, "not in " + path_of(place.file),
                             "a tensor of that file, as " + place.index + " says"};
      }
    }
    for (const auto& [file, index] : missing) {
      found_.broken.emplace_back(path_of(file),
                                 path_of(file) + " is missing, and " + index + " names it");
    }
    for (const auto& [name, files] : index_.twice) {
      found_.twice[name] = {path_of(files[0]), path_of(files[1])};
    }
  }

  std::string path_of(const std::string& file) const { return (fs::path(folder_) / file).string(); }

  std::string folder_;
  Index index_;
  Checkpoint found_;
};

}  // namespace

Checkpoint open_checkpoint(const std::string& path) { return Collector(path).collect(); }

}  // namespace nvfp4_tool
