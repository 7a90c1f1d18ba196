// SPDX-License-Identifier: MIT
// See tell.h.
#include "tools/emulator/base/tell.h"

#include <atomic>
#include <cstdio>

namespace emu {
namespace {
std::atomic<Listener> instead{nullptr};
}  // namespace

void tell(const std::string& report) {
  if (const Listener listener = instead)
    listener(report);
  else
    fprintf(stderr, "emulator: %s\n", report.c_str());
}

void set_listener(Listener listener) { instead = listener; }

}  // namespace emu
