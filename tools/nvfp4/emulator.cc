// SPDX-License-Identifier: MIT
#include "tools/nvfp4/emulator.h"

#include <cinttypes>
#include <cstdio>

#include "nvfp4emu.h"
#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

void require_emulator(const support::Driver& driver, const char* option) {
  if (!driver.extension("nvfp4emu_counter_name"))
    throw UsageError(std::string(option) + ": the driver is a GPU's; the emulator can do that");
}

void trace_to(const support::Driver& driver, const std::string& path) {
  require_emulator(driver, "--trace");
  const auto set = reinterpret_cast<decltype(&nvfp4emu_set)>(driver.extension("nvfp4emu_set"));
  set("EMU_TRACE", path.c_str());
}

void print_counters(const support::Driver& driver) {
  const auto name =
      reinterpret_cast<decltype(&nvfp4emu_counter_name)>(driver.extension("nvfp4emu_counter_name"));
  const auto value =
      reinterpret_cast<decltype(&nvfp4emu_counters)>(driver.extension("nvfp4emu_counters"));
  const char *key = "", *meaning = "";
  for (unsigned i = 0; name(i, &key, &meaning) == 0; ++i) {
    uint64_t count = 0;
    value(key, &count);
    if (count) std::printf("%-18s %15" PRIu64 "  %s\n", key, count, meaning);
  }
}

}  // namespace nvfp4_tool
