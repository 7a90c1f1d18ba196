// SPDX-License-Identifier: MIT
// What the clusters of one launch share: remembered accesses to global memory, and what releases
// left at flags there. Clusters run on several host threads, so all of it is behind locks.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/emulator/memory/global_memory.h"
#include "tools/emulator/order/clock.h"
#include "tools/emulator/order/shadow.h"

namespace emu {

// A load by an mbarrier's copy. Inputs are loaded in large boxes and seldom written, so these are
// kept whole, and a write looks for them.
struct BulkRead {
  Rows rows;
  Access by;  // its agent is known once it is complete
};

// As Line of shared memory: its record, as long as all accesses were by warps whose lanes shared
// the line out. Several warps may have read it.
struct GlobalLine {
  static constexpr uint32_t most_reads = 3;
  bool by_chunks = false;  // they hold the record
  bool is_written = false;
  uint32_t reads = 0;
  LineAccess write, read[most_reads];
};

class GlobalOrder {
  struct Page;

 public:
  GlobalOrder() = default;
  GlobalOrder(const GlobalOrder&) = delete;
  GlobalOrder& operator=(const GlobalOrder&) = delete;
  ~GlobalOrder();

  // The pages that one cluster accessed last, which it finds again without the lock of all.
  class Near {
    friend class GlobalOrder;
    static constexpr size_t entries = 16;
    uint64_t number_[entries] = {};
    Page* page_[entries] = {};
  };

  // Does f(chunk, its number, the mask of its bytes, the bytes last stored to it) for every 16
  // bytes of [address, address + bytes) under the lock of its page.
  template <class F>
  void each(Near& near, uint64_t address, uint64_t bytes, bool writes, F f) {
    pages(address, bytes, [&](uint64_t number, uint64_t from, uint64_t to) {
      Page& page = page_of(near, number);
      std::lock_guard guard(page.lock);
      if (writes && !page.written) mark_written(page, number);
      chunks(page, from, to, f);
    });
  }
  // The same for whole lines of 128 bytes, of one page: f(first line, the bytes last stored to it).
  template <class F>
  bool lines(Near& near, uint64_t address, bool writes, F f) {
    const uint64_t number = address / page_bytes, first = address % page_bytes / line_bytes;
    Page& page = page_of(near, number);
    std::lock_guard guard(page.lock);
    if (writes && !page.written) mark_written(page, number);
    if (!page.lines) make_lines(page);
    return f(&page.lines[first], &page.last[first * line_bytes]);
  }
  // Chunk by chunk, in a page that stays locked from one to the next.
  class Held {
   public:
    Held(GlobalOrder& order, Near& near, bool writes)
        : order_(order), near_(near), writes_(writes) {}
    // Does f(chunk, the bytes last stored to it).
    template <class F>
    void at(uint64_t address, F f) {
      const uint64_t number = address / page_bytes;
      if (!page_ || number != number_) take(number);
      const uint64_t chunk = address % page_bytes / 16;
      f(chunk_of(*page_, chunk), &page_->last[chunk * 16]);
    }
    void release() {
      guard_ = {};
      page_ = nullptr;
    }

   private:
    void take(uint64_t number) {
      release();
      page_ = &order_.page_of(near_, number);
      guard_ = std::unique_lock(page_->lock);
      number_ = number;
      if (writes_ && !page_->written) order_.mark_written(*page_, number);
    }
    GlobalOrder& order_;
    Near& near_;
    const bool writes_;
    Page* page_ = nullptr;
    uint64_t number_ = 0;
    std::unique_lock<std::mutex> guard_;
  };
  // May a bulk load have read any of the bytes?
  bool meets_reads(uint64_t begin, uint64_t end) const {
    return begin < reads_end_ && end > reads_begin_;
  }

  // Does f(chunk, ..) for what has been written in this launch, and perhaps for its neighbours.
  template <class F>
  void each_written(const Rows& rows, F f) {
    if (!written(rows)) return;
    for (uint32_t i = 0; i < rows.count; ++i)
      pages(rows.address + i * rows.stride, rows.bytes,
            [&](uint64_t number, uint64_t from, uint64_t to) {
              Page* page = find(number);
              if (!page) return;
              std::lock_guard guard(page->lock);
              if (page->written) chunks(*page, from, to, f);
            });
  }

  // The same for what has been accessed at all, except by bulk loads.
  template <class F>
  void each_touched(uint64_t address, uint64_t bytes, F f) {
    pages(address, bytes, [&](uint64_t number, uint64_t from, uint64_t to) {
      Page* page = find(number);
      if (!page) return;
      std::lock_guard guard(page->lock);
      chunks(*page, from, to, f);
    });
  }

  // Bulk loads: remembered before each_written() looks, as a write is before each_read() does.
  size_t add(const Rows& rows, const Access& by);
  void complete(size_t bulk_read, uint32_t agent, uint32_t time);
  // Does f(access, number of the first chunk they share, mask of the bytes there).
  template <class F>
  void each_read(uint64_t address, uint64_t bytes, F f) {
    if (!meets_reads(address, address + bytes)) return;
    for (const Shared& s : shared_with_reads(address, bytes)) f(s.by, s.chunk, s.mask);
  }

  void release(uint64_t address, uint32_t cluster, const Knowledge& handed);
  // What was released there, another object after each release; null before the first.
  std::shared_ptr<const Foreign> acquire(uint64_t address);

  std::string kernel;  // of the launch
  std::atomic<bool> dependents_launched = false;
  // There is a CTA in which every thread that launched dependents knew by then that the grids ahead
  // were over.
  std::atomic<bool> waited_first = false;

 private:
  static constexpr uint64_t page_bytes = 4096, region_bytes = 16 * page_bytes, line_bytes = 128;
  struct Page {
    std::mutex lock;
    bool written = false;
    Chunk chunks[page_bytes / 16];
    std::unique_ptr<GlobalLine[]> lines;  // made when the first is asked for
    uint8_t last[page_bytes];
    void clear();
  };
  // Pages of the host thread's earlier launches: most tests and many programs launch small grids
  // one after the other.
  static std::vector<std::unique_ptr<Page>>& spare_pages();
  static std::unique_ptr<Page> new_page();
  struct Region {
    bool written = false;
    std::vector<size_t> reads;
  };
  struct Shared {
    Access by;
    uint64_t chunk;
    uint16_t mask;
  };

  // Calls f(number of the page, first, end) for the pages of a range.
  template <class F>
  static void pages(uint64_t address, uint64_t bytes, F f) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      const uint64_t stop = std::min(end, (at / page_bytes + 1) * page_bytes);
      f(at / page_bytes, at, stop);
      at = stop;
    }
  }
  template <class F>
  static void chunks(Page& page, uint64_t at, uint64_t end, F f) {
    while (at < end) {
      const uint32_t in = uint32_t(at % 16), n = uint32_t(std::min<uint64_t>(16 - in, end - at));
      const uint64_t chunk = at % page_bytes / 16;
      f(chunk_of(page, chunk), at / 16, uint16_t(((1u << n) - 1) << in), &page.last[chunk * 16]);
      at += n;
    }
  }
  static Chunk& chunk_of(Page& page, uint64_t chunk) {
    constexpr uint64_t chunks = line_bytes / 16;
    if (page.lines && !page.lines[chunk / chunks].by_chunks)
      spread_line(page.lines[chunk / chunks], &page.chunks[chunk / chunks * chunks]);
    return page.chunks[chunk];
  }
  static void spread_line(GlobalLine& line, Chunk* chunks);
  static void make_lines(Page& page);
  // Calls f(number) for the regions of rows, which may lie far apart.
  template <class F>
  static void regions(const Rows& rows, F f) {
    const bool dense = rows.stride <= region_bytes;
    for (uint32_t i = 0; i < (dense ? 1 : rows.count); ++i) {
      const uint64_t from = rows.address + i * rows.stride;
      const uint64_t to = dense ? rows.end() : from + rows.bytes;
      for (uint64_t r = from / region_bytes; r <= (to - 1) / region_bytes; ++r) f(r);
    }
  }
  Page& page_of(uint64_t number);
  Page& page_of(Near& near, uint64_t number) {
    const size_t at = number % Near::entries;
    if (!near.page_[at] || near.number_[at] != number) {
      near.page_[at] = &page_of(number);
      near.number_[at] = number;
    }
    return *near.page_[at];
  }
  Page* find(uint64_t number);
  void mark_written(Page& page, uint64_t number);
  bool written(const Rows& rows);
  std::vector<Shared> shared_with_reads(uint64_t address, uint64_t bytes);

  std::mutex lock_;  // of what follows; a page's own lock may be held
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<uint64_t, Region> regions_;
  std::vector<BulkRead> reads_;
  std::unordered_map<uint64_t, std::shared_ptr<const Foreign>> flags_;
  // Around all writes, all bulk loads: most accesses are outside.
  std::atomic<uint64_t> written_begin_ = ~0ull, written_end_ = 0;
  std::atomic<uint64_t> reads_begin_ = ~0ull, reads_end_ = 0;
};

}  // namespace emu
