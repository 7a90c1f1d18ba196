// SPDX-License-Identifier: MIT
// The table of entry points (entries.def) as an enumeration, and look-ups in it.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <cstdint>
#include <string_view>

namespace emu::driver {

enum class Entry : uint16_t {
#define EMU_ENTRY(base, symbol, version) symbol,
#include "tools/emulator/driver/entries.def"
#undef EMU_ENTRY
  count
};

const char* base_name(Entry entry);

// What cuGetProcAddress answers: the newest signature of `base` that `cuda_version` has.
struct Lookup {
  void* address = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};
Lookup find_entry(std::string_view base, int cuda_version);

bool is_entry(std::string_view base);  // some row has this base name

}  // namespace emu::driver
