// SPDX-License-Identifier: MIT
// Generic 64-bit addresses.
#include "tools/emulator/memory/address.h"

namespace emu::address {

namespace {
uint64_t window_of(Space space) {
  switch (space) {
    case Space::shared_cta:
    case Space::shared_cluster: return shared_window;
    case Space::local: return local_window;
    case Space::param: return param_window;
    default: return 0;
  }
}
}  // namespace

Space space_of(uint64_t generic) {
  switch (generic / window_bytes) {
    case shared_window / window_bytes: return Space::shared_cluster;
    case local_window / window_bytes: return Space::local;
    case param_window / window_bytes: return Space::param;
    default: return Space::global;
  }
}

uint64_t to_generic(Space space, uint64_t address) { return window_of(space) + address; }
uint64_t from_generic(Space space, uint64_t generic) { return generic - window_of(space); }

}  // namespace emu::address
