// SPDX-License-Identifier: MIT
// Generic 64-bit addresses: windows for shared, local and param; everything else is global.
//
// Where hardware puts its windows is not architectural; ours sit below GlobalMemory::base, 4 GiB
// apart, so that the low 32 bits of a generic shared address are the .shared address, cluster rank
// included, and an offset of any alignment keeps it.
#pragma once

#include <cstdint>

#include "tools/emulator/base/space.h"

namespace emu::address {

constexpr uint64_t window_bytes = 1ull << 32;
constexpr uint64_t shared_window = 1ull << 32;
constexpr uint64_t local_window = 2ull << 32;
constexpr uint64_t param_window = 3ull << 32;

// The space that a generic address points to: shared_cluster, local, param or global.
Space space_of(uint64_t generic);

// cvta.space: an address of `space` made generic. Global and constant addresses are generic
// already.
uint64_t to_generic(Space space, uint64_t address);

// cvta.to.space, the way back. An address outside the window gives a value outside the space, as on
// hardware, where this is a plain subtraction; using it is what faults.
uint64_t from_generic(Space space, uint64_t generic);

}  // namespace emu::address
