// SPDX-License-Identifier: MIT
#include "tools/nvfp4/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

int64_t TensorInfo::elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

DataFile::DataFile(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about = {};
  if (fd_ < 0 || fstat(fd_, &about) != 0) {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0) close(fd_);
    throw FormatError(path + " cannot be read: " + why);
  }
  size_ = uint64_t(about.st_size);
}

DataFile::~DataFile() { close(fd_); }

std::vector<uint8_t> DataFile::read(uint64_t begin, uint64_t bytes) const {
  if (begin > size_ || bytes > size_ - begin) {
    throw FormatError(path_ + " ends before byte " + std::to_string(begin + bytes));
  }
  std::vector<uint8_t> data(bytes);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = pread(fd_, data.data() + done, bytes - done, off_t(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FormatError(path_ + " cannot be read: " + std::strerror(errno));
    if (got == 0) throw FormatError(path_ + " became shorter while it was read");
    done += uint64_t(got);
  }
  return data;
}

namespace {

namespace fs = std::filesystem;

bool known(const fs::path& file) {
  return file.extension() == ".safetensors" || file.extension() == ".gguf";
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

}  // namespace

Checkpoint open_checkpoint(const std::string& path) {
  Checkpoint checkpoint;
  checkpoint.files = files_in(path);
  for (const std::string& file : checkpoint.files) {
    Header header;
    try {
      header = fs::path(file).extension() == ".gguf" ? read_gguf(file) : read_safetensors(file);
    } catch (const FormatError& error) {
      checkpoint.broken.emplace_back(file, error.what());
      continue;
    }
    checkpoint.metadata[file] = std::move(header.metadata);
    for (TensorInfo& tensor : header.tensors) {
      const std::string name = tensor.name;
      const auto [at, fresh] = checkpoint.tensors.emplace(name, std::move(tensor));
      if (fresh) continue;
      std::vector<std::string>& files = checkpoint.twice[name];
      if (files.empty()) files.push_back(at->second.file);
      files.push_back(file);
    }
  }
  return checkpoint;
}

}  // namespace nvfp4_tool
