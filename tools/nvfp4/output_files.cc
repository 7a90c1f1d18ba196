// SPDX-License-Identifier: MIT
#include "tools/nvfp4/output_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace nvfp4_tool {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw std::runtime_error(path + ": cannot be written: " + std::strerror(error));
}

// Signals that would end the program wait while this object exists.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Target of a symbolic link, so that the link stays one.
std::string target_of(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

mode_t new_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

void write_all(int descriptor, std::string_view part, const std::string& path) {
  while (!part.empty()) {
    const ssize_t written = ::write(descriptor, part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, errno);
    part.remove_prefix(size_t(written));
  }
}

}  // namespace

OutputFiles::~OutputFiles() {
  for (const File& file : files_) {
    if (!file.in_place() && !file.committed) unlink(file.beside.c_str());
  }
}

std::string OutputFiles::add(const std::string& path) {
  File file;
  file.path = target_of(path);
  struct stat there {};
  const bool exists = file.existed = stat(file.path.c_str(), &there) == 0;
  if (exists && S_ISDIR(there.st_mode)) fail(path, EISDIR);
  if (exists && !S_ISREG(there.st_mode)) {
    file.beside = file.path;
  } else {
    if (exists && access(file.path.c_str(), W_OK) != 0) fail(path, errno);
    file.beside = file.path + ".XXXXXX";
    const int descriptor = mkstemp(file.beside.data());
    if (descriptor < 0) fail(path, errno);
    fchmod(descriptor, exists ? there.st_mode & 07777 : new_mode());
    close(descriptor);
  }
  files_.push_back(file);
  return file.beside;
}

void OutputFiles::write(const std::string& path, const std::vector<std::string_view>& parts) {
  const std::string beside = add(path);
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, errno);
  try {
    for (const std::string_view part : parts) write_all(descriptor, part, path);
    // A disk may notice late that it is full. What cannot be synchronised returns EINVAL.
    if (fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS) fail(path, errno);
  } catch (...) {
    close(descriptor);
    throw;
  }
  if (close(descriptor) != 0) fail(path, errno);
}

void OutputFiles::replace(File& file) {
  const std::string backup = file.beside + ".old";
  if (link(file.path.c_str(), backup.c_str()) == 0) file.backup = backup;
  if (rename(file.beside.c_str(), file.path.c_str()) != 0) fail(file.path, errno);
  file.committed = true;
}

void OutputFiles::undo() {
  for (File& file : files_) {
    if (file.committed && !file.backup.empty()) {
      rename(file.backup.c_str(), file.path.c_str());
    } else if (file.committed && !file.existed) {
      unlink(file.path.c_str());
    } else if (!file.backup.empty()) {
      unlink(file.backup.c_str());
    }
  }
}

void OutputFiles::commit() {
  const NoSignals quiet;
  try {
    for (File& file : files_) {
      if (!file.in_place()) replace(file);
    }
  } catch (...) {
    undo();
    throw;
  }
  for (const File& file : files_) {
    if (!file.backup.empty()) unlink(file.backup.c_str());
  }
  files_.clear();
}

}  // namespace nvfp4_tool
