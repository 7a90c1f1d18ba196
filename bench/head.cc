// SPDX-License-Identifier: MIT
#include "bench/head.h"

#include <link.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "nvfp4_gemm.h"

namespace bench {
namespace {

// The note of the image that `inside` lies in.
struct Search {
  uintptr_t inside;
  std::string id;
};

bool holds(const dl_phdr_info& image, uintptr_t address) {
  for (int i = 0; i < image.dlpi_phnum; ++i) {
    const uintptr_t begin = image.dlpi_addr + image.dlpi_phdr[i].p_vaddr;
    if (address >= begin && address < begin + image.dlpi_phdr[i].p_memsz) return true;
  }
  return false;
}

// The first note of a segment, which is where linkers put the build id.
std::string id_of(const unsigned char* note) {
  struct {
    uint32_t name_bytes, bytes, type;
  } head;
  std::memcpy(&head, note, sizeof head);
  if (head.type != NT_GNU_BUILD_ID) return "";
  const unsigned char* content = note + sizeof head + (head.name_bytes + 3) / 4 * 4;
  std::string id;
  for (uint32_t i = 0; i < head.bytes; ++i) id += formatted("%02x", content[i]);
  return id;
}

int look(dl_phdr_info* image, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*image, search.inside)) return 0;
  for (int i = 0; i < image->dlpi_phnum && search.id.empty(); ++i) {
    const auto& segment = image->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.id = id_of(reinterpret_cast<const unsigned char*>(image->dlpi_addr + segment.p_vaddr));
  }
  return 1;
}

}  // namespace

std::string formatted(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string today() {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  return date;
}

std::string driver_release() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string release;
  return file >> release ? release + ", " : "";
}

std::string build_id() {
  Search search{reinterpret_cast<uintptr_t>(&nvfp4_build_info), ""};
  dl_iterate_phdr(look, &search);
  return search.id;
}

std::string as_comments(const Head& head) {
  std::string lines;
  for (const auto& [name, text] : head) {
    std::string padded = name;
    padded.resize(std::max<size_t>(9, name.size()), ' ');
    lines += "# " + padded + " " + text + "\n";
  }
  return lines;
}

}  // namespace bench
