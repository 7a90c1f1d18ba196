// SPDX-License-Identifier: MIT
// The table of entry points, each checked against the toolkit's typedef of the same name and
// version.
#include "tools/emulator/driver/entries.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <type_traits>

#include "tools/emulator/driver/unsupported.h"

namespace emu::driver {
namespace {

#define EMU_ENTRY(base, symbol, version)                                    \
  static_assert(std::is_same_v<decltype(&symbol), PFN_##base##_v##version>, \
                #symbol " is not what " #base " was in CUDA " #version);
#include "tools/emulator/driver/entries.def"
#undef EMU_ENTRY

struct Row {
  std::string_view base;
  void* address;
  int version;
};

const Row rows[] = {
#define EMU_ENTRY(base, symbol, version) {#base, reinterpret_cast<void*>(&symbol), version},
#include "tools/emulator/driver/entries.def"
#undef EMU_ENTRY
};

}  // namespace

const char* base_name(Entry entry) { return rows[size_t(entry)].base.data(); }

Lookup find_entry(std::string_view base, int cuda_version) {
  Lookup answer;
  int newest = 0;
  const auto look_at = [&](const auto& row) {
    if (row.base != base) return;
    if (row.version <= cuda_version && row.version > newest) {
      answer = {row.address, CU_GET_PROC_ADDRESS_SUCCESS};
      newest = row.version;
    } else if (!newest) {
      answer.found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
  };
  for (const Row& row : rows) look_at(row);
  for (const UnsupportedRow& row : unsupported_rows()) look_at(row);
  return answer;
}

bool is_entry(std::string_view base) {
  return std::any_of(std::begin(rows), std::end(rows),
                     [&](const Row& row) { return row.base == base; });
}

}  // namespace emu::driver
