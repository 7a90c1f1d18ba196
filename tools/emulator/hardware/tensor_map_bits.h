// SPDX-License-Identifier: MIT
// The 128 bytes of a CUtensorMap. Opaque by contract, but public code counts on the driver's
// layout: hosts of grouped kernels write addresses and extents into maps, CUTLASS clears a bit.
#pragma once

#include <array>
#include <cstdint>

#include "tools/emulator/hardware/tensor_map.h"

namespace emu {

struct alignas(64) EncodedMap {
  std::array<uint64_t, 16> words = {};

  EncodedMap() = default;
  EncodedMap(const TensorMap& map);  // implicit: a map becomes bytes wherever memory wants them
  // False: these bytes are no map. The driver's rules are not checked: a kernel may start from
  // zeros and fill in the fields one by one.
  bool decode(TensorMap* map) const;
  bool by_a_call() const;  // encoded by one, and not by a kernel
};
static_assert(sizeof(EncodedMap) == 128);

}  // namespace emu
