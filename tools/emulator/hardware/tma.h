// SPDX-License-Identifier: MIT
// The tensor memory accelerator, and plain bulk copies.
//
// check_* say at issue what the hardware refuses; the others move the data when the copy completes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/emulator/hardware/tensor_map.h"
#include "tools/emulator/memory/global_memory.h"
#include "tools/emulator/memory/shared_memory.h"

namespace emu {

enum class TmaMode : uint8_t {
  tile,
  rows4,   // .tile::gather4, .tile::scatter4: a column and four rows
  im2col,  // .im2col, .im2col_no_offs
};

struct TmaCoordinates {
  int32_t at[TensorMap::max_rank] = {};
  TmaMode mode = TmaMode::tile;
  uint16_t offset[TensorMap::max_rank - 2] = {};  // im2col, {W, H, D}
};

// Bytes of global memory: what a load delivers to its mbarrier, in or out of bounds.
uint32_t tma_bytes(const TensorMap& map, const TmaCoordinates& c);
// Bytes of shared memory; more with padded types.
uint32_t tma_shared_bytes(const TensorMap& map, const TmaCoordinates& c);

// `rank` is the instruction's .1d to .5d; shared addresses are CTA-relative. Throw Fault.
void check_tma_load(const TensorMap& map, uint32_t rank, const TmaCoordinates& c, uint32_t shared);
void check_tma_store(const TensorMap& map, uint32_t rank, const TmaCoordinates& c, uint32_t shared);

// The box at `c` to shared memory, swizzled; elements outside the tensor become zero. Gaps of
// padded types have no value.
void tma_load(const TensorMap& map, const TmaCoordinates& c, uint32_t shared_address,
              SharedMemory& shared, const GlobalMemory& global);
// The box to global memory; rows outside the tensor are dropped, row ends are cut at 16 bytes.
void tma_store(const TensorMap& map, const TmaCoordinates& c, uint32_t shared_address,
               const SharedMemory& shared, const GlobalMemory& global);
// Calls update(element in global memory, element in shared memory) for each element of the box.
// Elements outside the tensor are dropped.
using TmaUpdate = std::function<void(uint8_t* global, const uint8_t* shared)>;
void tma_update(const TensorMap& map, const TmaCoordinates& c, uint32_t shared_address,
                const SharedMemory& shared, const GlobalMemory& global, const TmaUpdate& update);

// The bytes of global memory that a box at `c` touches.
enum class TmaUse : uint8_t { load, store, update };
std::vector<Rows> tma_rows(const TensorMap& map, const TmaCoordinates& c, TmaUse use);

// cp.async.bulk: 16-byte aligned addresses and a size in multiples of 16. Throws Fault.
void check_bulk_copy(uint64_t destination, uint64_t source, uint32_t bytes);

}  // namespace emu
