// SPDX-License-Identifier: MIT
// See shadow.h.
#include "tools/emulator/order/shadow.h"

#include <bit>

namespace emu {

namespace {

constexpr uint32_t words = 4, word_bytes = 4;  // of a chunk
constexpr size_t most_spare = 512;             // pages: twice the largest shared memory

// In the order in which the lanes would have been remembered.
void add_chunk(const LineAccess& by, uint32_t number, Chunk& to) {
  const uint8_t* const lane = by.lane + number * words;
  uint32_t lanes = 0;
  for (uint32_t w = 0; w < words; ++w) lanes |= 1u << lane[w];
  for (; lanes; lanes &= lanes - 1) {
    Access a = by.of;
    a.lane = uint8_t(std::countr_zero(lanes));
    a.lanes = 1u << a.lane;
    a.mask = 0;
    for (uint32_t w = 0; w < words; ++w)
      if (lane[w] == a.lane) a.mask |= uint16_t(0xF << w * word_bytes);
    to.add(a);
  }
}

}  // namespace

void spread(const LineAccess& by, Chunk* chunks) {
  for (uint32_t i = 0; i < Shadow::line_chunks; ++i) add_chunk(by, i, chunks[i]);
}

void Shadow::Page::clear() {
  for (Line& line : lines) line.whole = false, line.works = 0;
  for (uint32_t i = 0; by_chunks && i < page_chunks; ++i) chunks[i].clear();
  by_chunks = false;
}

std::vector<std::unique_ptr<Shadow::Page>>& Shadow::spare_pages() {
  thread_local std::vector<std::unique_ptr<Page>> spare;
  return spare;
}

std::unique_ptr<Shadow::Page> Shadow::new_page() {
  auto& spare = spare_pages();
  if (spare.empty()) return std::make_unique<Page>();
  std::unique_ptr<Page> page = std::move(spare.back());
  spare.pop_back();
  page->clear();
  return page;
}

Shadow::~Shadow() {
  auto& spare = spare_pages();
  for (auto& page : pages_)
    if (page && spare.size() < most_spare) spare.push_back(std::move(page));
}

void Shadow::spread(Line& line, Chunk* chunks) const {
  if (line.whole) emu::spread(line.write, chunks);
  if (line.whole && line.is_read) emu::spread(line.read, chunks);
  for (uint32_t w = 0; w < line.works; ++w)
    for (uint32_t i = 0; i < line_chunks; ++i)
      if (line.work[w].chunks >> i & 1) chunks[i].add(records_[line.work[w].record]);
  line.whole = false;
  line.works = 0;
}

void Shadow::clear_chunks(uint32_t number) {
  Page& page = page_of(number / page_lines);
  const uint32_t first = number % page_lines * line_chunks;
  if (!page.by_chunks || line(number).whole || line(number).works) return;
  for (uint32_t i = 0; i < line_chunks; ++i) page.chunks[first + i].clear();
}

void Shadow::write_line(uint32_t number, const LineAccess& by) {
  clear_chunks(number);
  Line& l = line(number);
  l.whole = true;
  l.is_read = false;
  l.works = 0;
  l.write = by;
}

void Shadow::write_line(uint32_t number, uint32_t record) {
  clear_chunks(number);
  Line& l = line(number);
  l.whole = false;
  l.works = 1;
  l.work[0] = {record, 0xFF};
}

}  // namespace emu
