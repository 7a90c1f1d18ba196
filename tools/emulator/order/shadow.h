// SPDX-License-Identifier: MIT
// The accesses that are remembered of memory: for each 16 bytes (or each column of tensor memory) the
// last writes and the reads since, as far as a later access could still clash with them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/emulator/machine/events.h"

namespace emu {

// Strong accesses do not race with each other, as long as their scopes hold both.
constexpr bool clash(Use a, Use b) {
  return !(is_read(a) && is_read(b)) && !(is_strong(a) && is_strong(b));
}
struct Access {
  uint32_t time = 0;  // of the warp; the number of the operation if `async`
  uint32_t pc = 0;
  uint16_t warp = 0;  // in the cluster
  uint16_t mask = 0;  // bytes of the chunk; of a tensor column, groups of 16 lanes
  uint8_t lane = 0;   // the first, or every_lane
  Use use = Use::read;
  bool async = false;
  uint16_t instance = 0;  // of the instruction's executions: lanes of one share it
  uint32_t lanes = 0;     // all that access these bytes alike in it; none: every_lane
  uint32_t cluster = 0;   // global memory
  uint32_t agent = ~0u;   // global memory, async: whose time it is
  bool whole = false;     // all live lanes of the warp executed the instruction
  bool is_volatile = false;
  Scope scope = Scope::gpu;  // of a strong access
};

class Chunk {
 public:
  template <class F>
  void each(F f) const {
    for (uint32_t i = 0; i < count_; ++i) f(at(i));
  }
  // Forgets the accesses for which f, which may change them, answers true.
  template <class F>
  void drop_if(F f) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count_; ++i) {
      if (f(at(i))) continue;
      if (kept != i) at(kept) = at(i);
      ++kept;
    }
    count_ = kept;
  }
  void add(const Access& a) {
    if (count_ >= few) {
      if (!many_) many_ = std::make_unique<std::vector<Access>>();
      if (many_->size() <= count_ - few) many_->resize(count_ - few + 1);
    }
    ++count_;
    at(count_ - 1) = a;
  }
  void clear() { count_ = 0; }

 private:
  static constexpr uint32_t few = 2;
  Access& at(uint32_t i) { return i < few ? few_[i] : (*many_)[i - few]; }
  const Access& at(uint32_t i) const { return i < few ? few_[i] : (*many_)[i - few]; }
  uint32_t count_ = 0;
  Access few_[few];
  std::unique_ptr<std::vector<Access>> many_;
};

// Chunks by number, made when first touched.
class Shadow {
 public:
  Chunk& operator[](uint32_t i) {
    const uint32_t page = i / page_chunks;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = std::make_unique<Chunk[]>(page_chunks);
    return pages_[page][i % page_chunks];
  }

 private:
  static constexpr uint32_t page_chunks = 64;
  std::vector<std::unique_ptr<Chunk[]>> pages_;
};

}  // namespace emu
