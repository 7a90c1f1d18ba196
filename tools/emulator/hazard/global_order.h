// SPDX-License-Identifier: MIT
// What the clusters of one launch share: remembered accesses to global memory, and what releases left
// at flags there. Clusters run on several host threads, so all of it is behind locks.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "clock.h"
#include "shadow.h"

namespace emu {

enum class Scope : uint8_t { cta, cluster, gpu };

// What releases left at one address: for the cluster's own warps by scope, for others at .gpu.
struct Flag {
  Knowledge own[3];
};
using Flags = std::map<uint64_t, Flag>;  // by address

class GlobalOrder {
 public:
  // Does f(chunk) for every 16 bytes of [address, address + bytes) under the lock of its page;
  // f gets the number of the chunk and the mask of its bytes.
  template <class F>
  void each(uint64_t address, uint64_t bytes, F f) {
    for (uint64_t at = address, end = address + bytes; at < end;) {
      Page& page = page_of(at / page_bytes);
      std::lock_guard guard(page.lock);
      for (const uint64_t stop = std::min(end, (at / page_bytes + 1) * page_bytes); at < stop;) {
        const uint32_t in = uint32_t(at % 16), n = uint32_t(std::min<uint64_t>(16 - in, stop - at));
        f(page.chunks[at % page_bytes / 16], at / 16, uint16_t(((1u << n) - 1) << in));
        at += n;
      }
    }
  }

  // Has anything between the two been written in this launch? May say yes for no.
  bool written(uint64_t first, uint64_t end) const { return first < highest_ && end > lowest_; }
  void mark_written(uint64_t address, uint64_t bytes);

  void release(uint64_t address, uint32_t cluster, const Knowledge& handed);
  Foreign acquire(uint64_t address);

 private:
  static constexpr uint64_t page_bytes = 4096;
  struct Page {
    std::mutex lock;
    Chunk chunks[page_bytes / 16];
  };
  Page& page_of(uint64_t number);

  std::mutex lock_;  // of the two maps
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::unordered_map<uint64_t, Foreign> flags_;
  std::atomic<uint64_t> lowest_ = ~0ull, highest_ = 0;
};

}  // namespace emu
