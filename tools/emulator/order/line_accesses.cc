// SPDX-License-Identifier: MIT
// Loads and stores of a warp whose lanes share out whole lines of shared memory: one record does
// for a line, as long as all its accesses are such. See accesses.h, and shadow.h for the record.
#include <cstring>

#include "tools/emulator/order/accesses.h"

namespace emu::order {

namespace {

constexpr uint32_t line_bytes = Shadow::line_chunks * chunk_bytes, line_words = line_bytes / 4;

// Lane i has the bytes after those of lane i - 1.
bool in_a_row(const WarpAccess& by) {
  uint32_t differ = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    differ |= (by.address[lane] - by.address[0]) ^ lane * by.bytes;
  return !differ && by.address[0] % line_bytes == 0;
}

}  // namespace

// Takes lanes in any order if each accesses a chunk, and lanes in order with 4 bytes or more each.
bool Accesses::Lines::cover(const WarpAccess& by) {
  if (by.lanes != ~0u || by.bytes < 4) return false;
  count = by.bytes / 4;
  if (in_a_row(by)) {
    for (uint32_t i = 0; i < count; ++i) number[i] = by.address[0] / line_bytes + i;
    for (uint32_t w = 0; w < count * line_words; ++w)
      lane[w / line_words][w % line_words] = uint8_t(w / count);
    return true;
  }
  if (by.bytes != chunk_bytes) return false;
  uint32_t filled[most] = {}, known = 0;
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t line = by.address[l] / line_bytes, word = by.address[l] % line_bytes / 4;
    uint32_t i = 0;
    while (i < known && number[i] != line) ++i;
    if (i == most) return false;
    if (i == known) number[known++] = line;
    memset(&lane[i][word], int(l), 4);
    filled[i] |= 0xFu << word;
  }
  for (uint32_t i = 0; i < known; ++i)
    if (~filled[i]) return false;
  return known == count;
}

// The same lane's, or known to all lanes of the warp. Else it is the chunks' affair.
bool Accesses::is_behind(const LineAccess& old, const uint8_t* lane, const Party& p,
                         uint32_t self) const {
  const bool known = p.all.strict[old.of.warp] >= old.of.time;
  if (old.of.warp == self) return known || !memcmp(old.lane, lane, sizeof old.lane);
  return known && p.all.seen[old.of.warp] >= old.of.time;
}

bool Accesses::line_takes(const Line& line, const uint8_t* lane, const Party& p, uint32_t self,
                          bool read) const {
  if (!line.whole || !is_behind(line.write, lane, p, self)) return false;
  if (!line.is_read) return true;
  if (!read) return is_behind(line.read, lane, p, self);
  // It takes the place of the one before it.
  return line.read.of.warp == self && !memcmp(line.read.lane, lane, sizeof line.read.lane);
}

bool Accesses::by_lines(const WarpAccess& by, const Lines& lines) {
  Shadow& shadow = shared_[by.cta->rank];
  const uint32_t self = now_.self();
  const Party& p = parties_.of(self);
  const bool read = is_read(by.use);
  for (uint32_t i = 0; i < lines.count; ++i)
    if (!line_takes(shadow.line(lines.number[i]), lines.lane[i], p, self, read)) return false;
  remember(by, lines);
  return true;
}

void Accesses::remember(const WarpAccess& by, const Lines& lines) {
  Shadow& shadow = shared_[by.cta->rank];
  LineAccess now;
  now.of = access(every_lane, by.use);
  for (uint32_t i = 0; i < lines.count; ++i) {
    memcpy(now.lane, lines.lane[i], sizeof now.lane);
    if (!is_read(by.use)) {
      shadow.write_line(lines.number[i], now);
      continue;
    }
    Line& line = shadow.line(lines.number[i]);
    line.read = now;
    line.is_read = true;
  }
}

}  // namespace emu::order
