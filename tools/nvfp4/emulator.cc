// SPDX-License-Identifier: MIT
#include "tools/nvfp4/emulator.h"

#include <fstream>
#include <stdexcept>
#include <vector>

#include "nvfp4emu.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/table.h"

namespace nvfp4_tool {

namespace {

// An event in Chrome's trace format has a phase. Its frame has none, and ends in a line of its own.
bool is_whole(const std::string& path) {
  std::ifstream file(path);
  bool event = false;
  std::string line, last;
  while (std::getline(file, line)) {
    event = event || line.find("\"ph\":") != std::string::npos;
    last = line;
  }
  return event && last == "]}";
}

}  // namespace

void require_emulator(const support::Driver& driver, const char* option) {
  if (!driver.extension("nvfp4emu_counter_name"))
    throw UsageError(std::string(option) + ": the driver is a GPU's; the emulator can do that");
}

Trace::Trace(const support::Driver& driver, OutputFiles& files, const std::string& path)
    : path_(path) {
  if (path.empty()) return;
  require_emulator(driver, "--trace");
  beside_ = files.add(path);
  // The time line is read back to see that it is whole, which a device or a pipe does not allow.
  if (beside_ == path) throw UsageError("--trace: " + path + " is no regular file");
  const auto set = reinterpret_cast<decltype(&nvfp4emu_set)>(driver.extension("nvfp4emu_set"));
  set("EMU_TRACE", beside_.c_str());
}

void Trace::require_events() const {
  if (path_.empty() || is_whole(beside_)) return;
  throw std::runtime_error(
      path_ +
      ": not written: the emulator traced no event, because the file could not take them "
      "or EMU_TRACE_BLOCKS names no block of the launch");
}

void report_counters(const support::Driver& driver, Report& report) {
  const auto name =
      reinterpret_cast<decltype(&nvfp4emu_counter_name)>(driver.extension("nvfp4emu_counter_name"));
  const auto value =
      reinterpret_cast<decltype(&nvfp4emu_counters)>(driver.extension("nvfp4emu_counters"));
  const char *key = "", *meaning = "";
  std::vector<std::vector<std::string>> rows;
  for (unsigned i = 0; name(i, &key, &meaning) == 0; ++i) {
    uint64_t count = 0;
    value(key, &count);
    if (count) rows.push_back({key, std::to_string(count), meaning});
    if (count) report["counters"][key] = count;
  }
  if (report.for_programs()) return;
  Table table({{""}, {"", true}, {""}});
  for (const auto& row : rows) table.expect(row);
  for (const auto& row : rows) table.print(row);
}

}  // namespace nvfp4_tool
