// SPDX-License-Identifier: MIT
// Opened when first needed: nothing else of the emulator wants more than the C++ library.
#include "tools/emulator/driver/unpack.h"

#include <dlfcn.h>

namespace emu::driver {

namespace {

// zstd.h of every version since 1.0: the number of bytes, or an error code, which is far larger.
using Decompress = size_t(void* to, size_t capacity, const void* from, size_t bytes);

Decompress* decompress() {
  static void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  static void* const function = library ? dlsym(library, "ZSTD_decompress") : nullptr;
  return reinterpret_cast<Decompress*>(function);
}

}  // namespace

bool zstd_is_here() { return decompress() != nullptr; }

std::optional<std::string> unpack_zstd(std::string_view packed, size_t bytes) {
  if (!zstd_is_here()) return std::nullopt;
  std::string out(bytes, '\0');
  if (decompress()(out.data(), bytes, packed.data(), packed.size()) != bytes) return std::nullopt;
  return out;
}

}  // namespace emu::driver
