// SPDX-License-Identifier: MIT
#include "tools/nvfp4/emulator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "nvfp4_gemm.h"
#include "nvfp4emu.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/table.h"

namespace nvfp4_tool {

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string this_program() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, size_t(length)) : "";
}

// Folder that this process loaded the library from.
std::string library_folder() {
  Dl_info info{};
  void* const function = dlsym(RTLD_DEFAULT, "nvfp4_version");
  return function && dladdr(function, &info) && info.dli_fname ? folder_of(info.dli_fname) : "";
}

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

// The loader reads LD_LIBRARY_PATH when a program starts, so the program starts again.
int emulate(char** argv) {
  const std::string program = this_program();
  // In the build tree beside the program; installed, beside the library and outside every search
  // path.
  const std::string places[] = {folder_of(program) + "/emulator",
                                library_folder() + "/nvfp4gemm/emulator"};
  for (const std::string& place : places) {
    if (access((place + "/libcuda.so.1").c_str(), R_OK) != 0) continue;
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", (before && *before ? place + ":" + before : place).c_str(), 1);
    argv[1] = argv[0];
    execv(program.c_str(), argv + 1);
    std::perror(("nvfp4: --emulate: " + program).c_str());
    return kFailed;
  }
  std::fprintf(stderr,
               "nvfp4: --emulate: there is no libcuda.so.1 in %s or %s; make emulator builds it, "
               "make install EMULATOR=1 installs it\n",
               places[0].c_str(), places[1].c_str());
  return kFailed;
}

}  // namespace nvfp4_tool
