// SPDX-License-Identifier: MIT
// See global_order.h.
#include "tools/emulator/order/global_order.h"

#include <algorithm>
#include <iterator>

namespace emu {

namespace {

constexpr size_t most_spare = 512;  // pages, which take 36 KiB each

// Only ever under the lock; read without it.
void widen(std::atomic<uint64_t>& begin, std::atomic<uint64_t>& end, uint64_t from, uint64_t to) {
  begin = std::min<uint64_t>(begin, from);
  end = std::max<uint64_t>(end, to);
}

// The first byte that [from, to) shares with the rows; to: none.
uint64_t first_shared(const Rows& rows, uint64_t from, uint64_t to) {
  if (from >= rows.end() || to <= rows.address) return to;
  uint64_t row = rows.stride && from > rows.address
                     ? std::min<uint64_t>((from - rows.address) / rows.stride, rows.count - 1)
                     : 0;
  // It is enough to begin at the last row that begins before `from`, even if rows overlap because
  // the stride is short.
  for (; row < rows.count; ++row) {
    const uint64_t begin = rows.address + row * rows.stride;
    if (begin >= to) return to;
    if (from < begin + rows.bytes) return std::max(from, begin);
  }
  return to;
}

}  // namespace

// A thread's read replaces its earlier read of the same bytes, as in the records of a chunk.
void GlobalOrder::spread_line(GlobalLine& line, Chunk* chunks) {
  constexpr uint64_t count = line_bytes / 16;
  if (line.is_written) spread(line.write, chunks);
  for (uint32_t i = 0; i < line.reads; ++i) {
    Chunk now[count];
    spread(line.read[i], now);
    for (uint64_t c = 0; c < count; ++c)
      now[c].each([&](const Access& a) {
        chunks[c].drop_if([&](const Access& old) {
          return old.use == a.use && !(old.mask & ~a.mask) && old.cluster == a.cluster &&
                 old.warp == a.warp && !(old.lanes & ~a.lanes);
        });
        chunks[c].add(a);
      });
  }
  line.by_chunks = true;
  line.is_written = false;
  line.reads = 0;
}

void GlobalOrder::make_lines(Page& page) {
  constexpr uint64_t count = page_bytes / line_bytes, chunks = line_bytes / 16;
  page.lines = std::make_unique<GlobalLine[]>(count);
  for (uint64_t i = 0; i < count * chunks; ++i)
    if (!page.chunks[i].empty()) page.lines[i / chunks].by_chunks = true;
}

void GlobalOrder::Page::clear() {
  written = false;
  for (uint64_t i = 0; lines && i < page_bytes / line_bytes; ++i) {
    lines[i].by_chunks = lines[i].is_written = false;
    lines[i].reads = 0;
  }
  for (Chunk& chunk : chunks) chunk.clear();
  std::fill(std::begin(last), std::end(last), uint8_t(0));
}

std::vector<std::unique_ptr<GlobalOrder::Page>>& GlobalOrder::spare_pages() {
  thread_local std::vector<std::unique_ptr<Page>> spare;
  return spare;
}

std::unique_ptr<GlobalOrder::Page> GlobalOrder::new_page() {
  auto& spare = spare_pages();
  if (spare.empty()) return std::make_unique<Page>();
  std::unique_ptr<Page> page = std::move(spare.back());
  spare.pop_back();
  page->clear();
  return page;
}

GlobalOrder::~GlobalOrder() {
  auto& spare = spare_pages();
  for (auto& [number, page] : pages_)
    if (spare.size() < most_spare) spare.push_back(std::move(page));
}

GlobalOrder::Page& GlobalOrder::page_of(uint64_t number) {
  std::lock_guard guard(lock_);
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) page = new_page();
  return *page;
}

GlobalOrder::Page* GlobalOrder::find(uint64_t number) {
  std::lock_guard guard(lock_);
  const auto it = pages_.find(number);
  return it == pages_.end() ? nullptr : it->second.get();
}

void GlobalOrder::mark_written(Page& page, uint64_t number) {
  std::lock_guard guard(lock_);
  page.written = true;
  regions_[number * page_bytes / region_bytes].written = true;
  widen(written_begin_, written_end_, number * page_bytes, (number + 1) * page_bytes);
}

bool GlobalOrder::written(const Rows& rows) {
  if (rows.address >= written_end_ || rows.end() <= written_begin_) return false;
  std::lock_guard guard(lock_);
  bool any = false;
  regions(rows, [&](uint64_t r) {
    const auto it = regions_.find(r);
    any = any || (it != regions_.end() && it->second.written);
  });
  return any;
}

size_t GlobalOrder::add(const Rows& rows, const Access& by) {
  std::lock_guard guard(lock_);
  reads_.push_back({rows, by});
  regions(rows, [&](uint64_t r) { regions_[r].reads.push_back(reads_.size() - 1); });
  widen(reads_begin_, reads_end_, rows.address, rows.end());
  return reads_.size() - 1;
}

void GlobalOrder::complete(size_t bulk_read, uint32_t agent, uint32_t time) {
  std::lock_guard guard(lock_);
  reads_[bulk_read].by.agent = agent;
  reads_[bulk_read].by.time = time;
}

std::vector<GlobalOrder::Shared> GlobalOrder::shared_with_reads(uint64_t address, uint64_t bytes) {
  std::vector<Shared> all;
  std::lock_guard guard(lock_);
  const uint64_t end = address + bytes;
  for (uint64_t r = address / region_bytes; r <= (end - 1) / region_bytes; ++r) {
    const auto it = regions_.find(r);
    if (it == regions_.end()) continue;
    const uint64_t from = std::max(address, r * region_bytes);
    const uint64_t to = std::min(end, (r + 1) * region_bytes);
    for (size_t i : it->second.reads) {
      const uint64_t first = first_shared(reads_[i].rows, from, to);
      if (first < to) all.push_back({reads_[i].by, first / 16, uint16_t(1u << first % 16)});
    }
  }
  return all;
}

void GlobalOrder::release(uint64_t address, uint32_t cluster, const Knowledge& handed) {
  std::lock_guard guard(lock_);
  std::shared_ptr<const Foreign>& left = flags_[address];
  const auto more = left ? std::make_shared<Foreign>(*left) : std::make_shared<Foreign>();
  join(*more, handed.others);
  (*more)[cluster].join(handed);
  left = more;
}

std::shared_ptr<const Foreign> GlobalOrder::acquire(uint64_t address) {
  std::lock_guard guard(lock_);
  const auto it = flags_.find(address);
  return it == flags_.end() ? nullptr : it->second;
}

}  // namespace emu
