// SPDX-License-Identifier: MIT
// See linker.h.
#include "tools/emulator/driver/linker.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

namespace emu::driver {
namespace {

// The three directives that a text begins with, each with what follows it on its line.
struct Header {
  std::string version, target, address_size;
  const char* body = nullptr;  // nullptr: one of them is missing
};

bool take(const char*& at, const char* directive, std::string& value) {
  at = skip_comments(at);
  const size_t length = strlen(directive);
  if (!at || strncmp(at, directive, length)) return false;
  at += length;
  at += strspn(at, " \t");
  const char* end = at + strcspn(at, "\n");
  const char* const comment = strstr(at, "//");
  std::string text(at, comment && comment < end ? comment : end);
  while (!text.empty() && isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  value = std::move(text);
  at = end;
  return true;
}

Header header_of(const char* ptx) {
  Header h;
  const char* at = ptx;
  if (take(at, ".version", h.version) && take(at, ".target", h.target) &&
      take(at, ".address_size", h.address_size))
    h.body = at;
  return h;
}

// "9.0" before "9.1" before "10.0".
bool is_older(const std::string& a, const std::string& b) {
  int major[2] = {}, minor[2] = {};
  sscanf(a.c_str(), "%d.%d", &major[0], &minor[0]);
  sscanf(b.c_str(), "%d.%d", &major[1], &minor[1]);
  return std::pair(major[0], minor[0]) < std::pair(major[1], minor[1]);
}

}  // namespace

CUresult Linker::add(std::string_view given, const std::string& name) {
  std::string ptx(given.substr(0, given.find('\0')));
  if (inputs_ == 0) {
    text_ = std::move(ptx);
    return ++inputs_, CUDA_SUCCESS;
  }
  const Header first = header_of(text_.c_str()), next = header_of(ptx.c_str());
  if (!first.body || !next.body)
    return refuse(name +
                  ": a text that is linked with others begins with .version, .target and "
                  ".address_size, each on a line");
  if (first.target != next.target || first.address_size != next.address_size)
    return refuse(name + ": .target " + next.target + ", .address_size " + next.address_size +
                  "; the texts before it have " + first.target + " and " + first.address_size);
  const std::string& version = is_older(first.version, next.version) ? next.version : first.version;
  text_ = ".version " + version + "\n.target " + first.target + "\n.address_size " +
          first.address_size + first.body + "\n" + next.body;
  return ++inputs_, CUDA_SUCCESS;
}

CUresult Linker::refuse(const std::string& sentence) {
  log.log_error(sentence);
  return CUDA_ERROR_INVALID_PTX;
}

}  // namespace emu::driver
