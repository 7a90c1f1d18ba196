// SPDX-License-Identifier: MIT
// The memory of accesses: every one meets those that are remembered of the same bytes, and is
// remembered itself.
#pragma once

#include "tools/emulator/order/earlier_grids.h"
#include "tools/emulator/order/meetings.h"
#include "tools/emulator/order/verdict.h"

namespace emu::order {

class Accesses {
 public:
  Accesses(const Now& now, const Parties& parties, Operations& operations, Meetings& meetings,
           const Verdict& verdict, const Reporter& reporter, const EarlierGrids& earlier,
           GlobalOrder& global);

  // By a lane; `same`: a store of the value that is there. `value`: what a plain store writes.
  void shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane, bool same);
  void global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, const void* value);
  void tensor_map(uint64_t address, uint32_t lane);
  void free_columns(Cta& cta, uint32_t column, uint32_t count);
  void barrier_use(Cta& cta, uint32_t address, uint32_t lanes);

  // By asynchronous work.
  void shared(Operation op, Cta& cta, uint32_t address, uint32_t bytes, Use use);
  void shared(Operation op, Cta& cta, const std::vector<uint32_t>& chunks, Use use);
  void global(Operation op, const Rows& rows, Use use);
  void columns(Operation op, Cta& cta, uint32_t column, uint32_t count, uint16_t groups, Use use);
  void barrier_use(Operation op, Cta& cta, uint32_t address);

 private:
  static constexpr uint16_t all_groups = 0xFF;
  Access access(uint32_t lane, Use use) const;
  static Access init_of(const Barrier& b);
  void check_init(const Barrier& b, Cta& cta, uint32_t address, Viewer v, bool async);
  bool fence_known(const Barrier& b, const Viewer& v) const;
  void meet_bulk_reads(uint64_t address, uint64_t bytes, const Access& a, Viewer v);
  void touch_range(Cta& cta, uint32_t address, uint32_t bytes, Access a, const Viewer& v);
  void touch(Chunk& chunk, const Access& a, const Viewer& v, uint64_t index, bool remember = true);
  Reason reason_of(const Access& old, const Access& a, const Viewer& v) const;
  static bool alike(const Access& a, const Access& old);
  bool replaces(const Access& a, const Access& old) const;

  const Now& now_;
  const Parties& parties_;
  Operations& operations_;
  Meetings& meetings_;
  const Verdict& verdict_;
  const Reporter& reporter_;
  const EarlierGrids& earlier_grids_;
  GlobalOrder& global_;
  GlobalOrder::Near near_;
  std::vector<Shadow> shared_, tensor_;  // by rank
};

}  // namespace emu::order
