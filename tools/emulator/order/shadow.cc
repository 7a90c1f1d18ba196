// SPDX-License-Identifier: MIT
// See shadow.h.
#include "tools/emulator/order/shadow.h"

#include <bit>

namespace emu {

namespace {

constexpr uint32_t words = 4, word_bytes = 4;  // of a chunk

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

void Shadow::spread(Line& line, Chunk* chunks) {
  line.whole = false;
  for (uint32_t i = 0; i < line_chunks; ++i) {
    add_chunk(line.write, i, chunks[i]);
    if (line.is_read) add_chunk(line.read, i, chunks[i]);
  }
}

void Shadow::write_line(uint32_t number, const LineAccess& by) {
  Page& page = page_of(number / page_lines);
  const uint32_t in = number % page_lines;
  if (!page.lines[in].whole)
    for (uint32_t i = 0; i < line_chunks; ++i) page.chunks[in * line_chunks + i].clear();
  page.lines[in].whole = true;
  page.lines[in].is_read = false;
  page.lines[in].write = by;
}

}  // namespace emu
