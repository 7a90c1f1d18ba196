// SPDX-License-Identifier: MIT
#include "tools/nvfp4/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

}  // namespace nvfp4_tool
