// SPDX-License-Identifier: MIT
// The accesses that are remembered of memory: for each 16 bytes (or each column of tensor memory)
// the last writes and the reads since, as far as a later access could still clash with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <unordered_map>
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
  uint32_t lanes = 0;     // the lanes that access these bytes in the same way; 0: every_lane
  uint32_t cluster = 0;   // global memory
  uint32_t agent = ~0u;   // global memory, async: whose time it is
  bool whole = false;     // all live lanes of the warp executed the instruction
  bool is_volatile = false;
  Scope scope = Scope::gpu;  // of a strong access
};

// Two strong accesses at gpu scope, neither of them asynchronous, never conflict, whichever threads
// they belong to.
constexpr bool meets_no_kin(const Access& a) {
  return is_strong(a.use) && a.scope == Scope::gpu && !a.async;
}

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
    if (kept != count_) crowd_.reset();
    count_ = kept;
  }

  // For counters that every CTA of a large grid adds to. An access that need not be compared with
  // others of its kind (meets_no_kin) visits only the records of its own cluster and those of other
  // kinds, in their order. Records for which f returns true are forgotten.
  bool crowded() const { return count_ >= crowd; }
  bool empty() const { return !count_; }
  template <class F>
  void each_of(uint32_t cluster, F f) {
    index();
    std::vector<uint32_t>& own = crowd_->of[cluster];
    std::vector<uint32_t> shown;
    std::merge(own.begin(), own.end(), crowd_->others.begin(), crowd_->others.end(),
               std::back_inserter(shown));
    for (const uint32_t i : shown)
      if (f(at(i))) forget(i, own);
    if (crowd_->forgotten > count_ / 2) drop_if([](const Access& a) { return a.mask == 0; });
  }
  void add(const Access& a) {
    if (count_ >= few && many_.size() <= count_ - few) {
      if (many_.empty()) many_.reserve(first_many);
      many_.resize(count_ - few + 1);
    }
    ++count_;
    at(count_ - 1) = a;
  }
  void clear() {
    count_ = 0;
    crowd_.reset();
  }

 private:
  static constexpr uint32_t few = 2, first_many = 6, crowd = 32;
  struct Crowd {  // places in the list, as far as `known`
    std::unordered_map<uint32_t, std::vector<uint32_t>> of;  // that meet no kin, by cluster
    std::vector<uint32_t> others;
    uint32_t known = 0, forgotten = 0;
  };
  void index() {
    if (!crowd_) crowd_ = std::make_unique<Crowd>();
    for (uint32_t& i = crowd_->known; i < count_; ++i)
      (meets_no_kin(at(i)) ? crowd_->of[at(i).cluster] : crowd_->others).push_back(i);
  }
  void forget(uint32_t i, std::vector<uint32_t>& own) {
    at(i).mask = 0;
    std::erase(own, i);
    std::erase(crowd_->others, i);
    ++crowd_->forgotten;
  }
  Access& at(uint32_t i) { return i < few ? few_[i] : many_[i - few]; }
  const Access& at(uint32_t i) const { return i < few ? few_[i] : many_[i - few]; }
  uint32_t count_ = 0;
  Access few_[few];
  std::vector<Access> many_;  // after clear() it keeps its memory
  std::unique_ptr<Crowd> crowd_;
};

// The accesses of one instruction to a line of 128 bytes (eight chunks), each lane to a part of it.
// A line has such records as long as they cover all accesses to it: those of a store, or of loads,
// or of a store and then loads. spread() makes the records of each chunk from them.
struct LineAccess {
  Access of;         // except for lane, lanes and mask
  uint8_t lane[32];  // of each word
};
// Adds to the chunks of the line what they would remember of it.
void spread(const LineAccess& by, Chunk* chunks);
// Accesses by one piece of asynchronous work to whole chunks of a line.
struct WorkAccess {
  uint32_t record;  // number of the access in the Shadow, except for its mask
  uint8_t chunks;   // a bit each
};
struct Line {
  static constexpr uint32_t most_works = 6;
  bool whole = false, is_read = false;
  LineAccess write, read;
  uint32_t works = 0;  // entries of `work`, in order; if not 0, all accesses to the line
  WorkAccess work[most_works];
};

// Chunks by number, made when first touched.
class Shadow {
 public:
  Shadow() = default;
  Shadow(Shadow&&) = default;
  Shadow& operator=(Shadow&&) = delete;
  ~Shadow();

  static constexpr uint32_t line_chunks = 8;

  Chunk& operator[](uint32_t i) {
    Page& page = page_of(i / page_chunks);
    Line& line = page.lines[i % page_chunks / line_chunks];
    Chunk* const chunks = chunks_of(page);
    if (line.whole || line.works)
      spread(line, &chunks[i % page_chunks / line_chunks * line_chunks]);
    return chunks[i % page_chunks];
  }
  // The line of the chunks from line_chunks * number on. If neither `whole` nor `works` is set, the
  // chunks hold the record.
  Line& line(uint32_t number) { return page_of(number / page_lines).lines[number % page_lines]; }
  // True if nothing is recorded for the line, and none of its page's lines is recorded by chunks.
  bool untouched(uint32_t number) {
    return !page_of(number / page_lines).by_chunks && !line(number).whole && !line(number).works;
  }
  // Forgets all but a store that covers the line.
  void write_line(uint32_t number, const LineAccess& by);
  void write_line(uint32_t number, uint32_t record);

  uint32_t add_record(const Access& a) {
    records_.push_back(a);
    return uint32_t(records_.size() - 1);
  }
  const Access& record(uint32_t number) const { return records_[number]; }

 private:
  static constexpr uint32_t page_chunks = 64, page_lines = page_chunks / line_chunks;
  struct Page {
    Line lines[page_lines];
    std::unique_ptr<Chunk[]> chunks;  // of page_chunks, made when the first is asked for
    bool by_chunks = false;           // one was asked for since clear()
    void clear();
  };
  Page& page_of(uint32_t page) {
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (!pages_[page]) pages_[page] = new_page();
    return *pages_[page];
  }
  // Pages of the host thread's earlier CTAs: to make and to free them took a tenth of the time.
  static std::vector<std::unique_ptr<Page>>& spare_pages();
  static std::unique_ptr<Page> new_page();
  static Chunk* chunks_of(Page& page) {
    if (!page.chunks) page.chunks = std::make_unique<Chunk[]>(page_chunks);
    page.by_chunks = true;
    return page.chunks.get();
  }
  void clear_chunks(uint32_t number);
  void spread(Line& line, Chunk* chunks) const;
  std::vector<std::unique_ptr<Page>> pages_;
  std::vector<Access> records_;  // of asynchronous work
};

}  // namespace emu
