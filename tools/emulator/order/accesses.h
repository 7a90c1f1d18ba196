// SPDX-License-Identifier: MIT
// The accesses so far. Each new one is compared with those that are recorded for the same bytes,
// and is then recorded itself.
#pragma once

#include <algorithm>

#include "tools/emulator/order/earlier_grids.h"
#include "tools/emulator/order/meetings.h"
#include "tools/emulator/order/verdict.h"

namespace emu::order {

class Accesses {
 public:
  Accesses(const Now& now, const Parties& parties, Operations& operations, Meetings& meetings,
           const Verdict& verdict, const Reporter& reporter, const EarlierGrids& earlier,
           GlobalOrder& global);

  // Accesses by threads. `same`: the store does not change the value. `value`: what a plain store
  // writes.
  void shared(Cta& cta, uint32_t address, uint32_t bytes, Use use, uint32_t lane, bool same);
  void shared(const WarpAccess& by_lanes);
  void global(uint64_t address, uint32_t bytes, Use use, uint32_t lane, const void* value);
  void global(const GlobalAccess& by_lanes);
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
  struct Lines {  // of shared memory
    static constexpr uint32_t most = 4;
    uint32_t count = 0, number[most];
    uint8_t lane[most][32];  // of each word
    // True if the lanes together access whole lines and no other bytes.
    bool cover(const WarpAccess& by);
  };
  bool by_lines(const WarpAccess& by, const Lines& lines);  // false: nothing was done
  bool line_takes(const Line& line, const uint8_t* lane, const Party& p, uint32_t self,
                  bool read) const;
  bool is_behind(const LineAccess& old, const uint8_t* lane, const Party& p, uint32_t self) const;
  void remember(const WarpAccess& by, const Lines& lines);
  // A read of a warp with one check for all lanes: if every recorded access to its bytes is ordered
  // before all lanes of the warp, records the read of each lane.
  bool read_behind_all(const WarpAccess& by);  // false: nothing was done
  void write_by_lanes(const WarpAccess& by);
  void touch_by_lanes(const WarpAccess& by, uint32_t lanes);
  bool over_for_all(const Access& old, const Access& a, const Knowledge& all) const;
  void remember(Chunk& chunk, const Access& a);
  void lane_by_lane(const GlobalAccess& by, uint32_t lanes);
  bool by_lines(const GlobalAccess& by);  // false: nothing was done
  bool line_takes(const GlobalLine& line, const LineAccess& now, const Party& p) const;
  static void remember(GlobalLine& line, const LineAccess& now);
  void by_runs(const GlobalAccess& by);
  bool run_of(GlobalOrder::Held& held, const GlobalAccess& by, Access a);
  bool over_in_global(const Access& old, const Access& a, const Knowledge& all) const;
  static Access init_of(const Barrier& b);
  void check_init(const Barrier& b, Cta& cta, uint32_t address, Viewer v, bool async);
  bool fence_known(const Barrier& b, const Viewer& v) const;
  void meet_bulk_reads(uint64_t address, uint64_t bytes, const Access& a, Viewer v);
  void touch_range(Cta& cta, uint32_t address, uint32_t bytes, Access a, Viewer& v);
  void touch(Chunk& chunk, const Access& a, Viewer& v, uint64_t index, bool remember = true);
  bool line_loaded(const Chunk& chunk, uint64_t index) const;
  bool forgets(const Access& a, Access& old, bool known) const;
  Reason reason_of(const Access& old, const Access& a, const Viewer& v) const;
  static bool alike(const Access& a, const Access& old);
  bool replaces(const Access& a, const Access& old) const;

  // An access of one asynchronous operation, chunk after chunk. It collects chunks of one line, so
  // that the line is compared as a whole.
  struct Strip {
    static constexpr uint32_t none = ~0u;
    Strip(Shadow& s, const Access& a, Viewer& v) : shadow(s), access(a), viewer(v) {}
    Shadow& shadow;
    const Access access;  // to a whole chunk
    Viewer& viewer;
    uint32_t record = none;  // of the access, once there is one
    uint32_t line = 0, count = 0, chunk[Shadow::line_chunks];
    uint8_t chunks = 0;  // a bit each
  };
  Access access(Operation op, const Viewer& v, Use use, uint16_t mask) const;
  void touch_by_line(Strip& strip, uint32_t chunk);
  void touch_rest(Strip& strip);
  void touch_chunks(Strip& strip);
  static uint32_t record_of(Strip& strip);
  bool meets_in_order(Strip& strip, const Line& line);
  void remember(Strip& strip, Line& line);

  // A cache: an operation finds the same earlier accesses in chunk after chunk. It holds those that
  // were found to be ordered before the operation, and is cleared for every call.
  class Behind {
   public:
    bool has(const Access& old) const {
      for (uint32_t i = 0; i < std::min(count_, most); ++i)
        if (equal(all_[i], old)) return true;
      return false;
    }
    void add(const Access& old) { all_[count_++ % most] = old; }
    void clear() { count_ = 0; }

   private:
    static bool equal(const Access& a, const Access& b) {
      if (a.time != b.time || a.use != b.use || a.async != b.async) return false;
      if (a.async) return true;  // `time` is the operation's number: both are the same operation
      return a.lanes == b.lanes && a.pc == b.pc && a.warp == b.warp && a.instance == b.instance &&
             a.lane == b.lane && a.whole == b.whole && a.scope == b.scope &&
             a.is_volatile == b.is_volatile;
    }
    static constexpr uint32_t most = 8;
    Access all_[most];
    uint32_t count_ = 0;
  };

  const Now& now_;
  const Parties& parties_;
  Operations& operations_;
  Meetings& meetings_;
  const Verdict& verdict_;
  const Reporter& reporter_;
  const EarlierGrids& earlier_grids_;
  GlobalOrder& global_;
  GlobalOrder::Near near_;
  Behind behind_;
  std::vector<Shadow> shared_, tensor_;  // by rank
};

}  // namespace emu::order
