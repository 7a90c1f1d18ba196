// SPDX-License-Identifier: MIT
// Plain loads and stores of a warp in global memory. If its lanes cover whole lines, each with
// bytes of its own, one record per line is kept. Otherwise lanes that load the same bytes are
// treated as one. One check serves all of them if the whole warp knows that every recorded access
// to these bytes is over. Records and findings are the same as lane by lane. See accesses.h.
#include <cstring>

#include "tools/emulator/order/accesses.h"

namespace emu::order {

namespace {

constexpr uint32_t line_bytes = 128, line_words = line_bytes / 4;

// Lane i has the bytes after those of lane i - 1, from the start of a line.
bool in_a_row(const GlobalAccess& by) {
  if (by.lanes != ~0u || by.bytes < 4 || by.address[0]) return false;
  uint32_t differ = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) differ |= by.address[lane] ^ lane * by.bytes;
  return !differ;
}

}  // namespace

void Accesses::global(const GlobalAccess& by) {
  uint64_t end = by.base;
  for_lanes(by.lanes, [&](uint32_t l) { end = std::max(end, by.base + by.address[l] + by.bytes); });
  const bool far = !is_read(by.use) && global_.meets_reads(by.base, end);
  if (far || !earlier_grids_.none()) return lane_by_lane(by, by.lanes);
  if (!in_a_row(by) || !by_lines(by)) by_runs(by);
}

void Accesses::lane_by_lane(const GlobalAccess& by, uint32_t lanes) {
  for_lanes(lanes, [&](uint32_t lane) {
    global(by.base + by.address[lane], by.bytes, by.use, lane,
           by.values ? by.values + lane * by.bytes : nullptr);
  });
}

// As judge() has it for any lane that knows what all lanes of its warp know; false says nothing.
bool Accesses::over_in_global(const Access& old, const Access& a, const Knowledge& all) const {
  const bool reads = is_read(old.use) && is_read(a.use);
  if (reads) return true;
  const bool constant = old.use == Use::constant_read || a.use == Use::constant_read;
  if (old.async || old.cluster != now_.serial || is_strong(old.use) || constant) return false;
  if (old.warp == a.warp && old.lanes == a.lanes && std::has_single_bit(a.lanes)) return true;
  // What another CTA has stored may still be in this one's cache as it was.
  if (!is_read(old.use) && is_read(a.use) && old.warp / now_.warps != a.warp / now_.warps)
    return false;
  return all.strict[old.warp] >= old.time && (old.warp == a.warp || all.seen[old.warp] >= old.time);
}

// A read of the same lanes takes the place of the one before it.
bool Accesses::line_takes(const GlobalLine& line, const LineAccess& now, const Party& p) const {
  if (line.by_chunks) return false;
  const auto same = [&](const LineAccess& old) {
    return old.of.warp == now.of.warp && old.of.cluster == now.of.cluster &&
           !memcmp(old.lane, now.lane, sizeof old.lane);
  };
  const auto is_over = [&](const LineAccess& old) {
    const bool constant = old.of.use == Use::constant_read || now.of.use == Use::constant_read;
    return !constant && (same(old) || over_in_global(old.of, now.of, p.all));
  };
  if (line.is_written && !is_over(line.write)) return false;
  if (!is_read(now.of.use)) return std::all_of(line.read, line.read + line.reads, is_over);
  const auto replaced = [&](const LineAccess& old) {
    return same(old) && old.of.use == now.of.use;
  };
  return line.reads < GlobalLine::most_reads ||
         std::any_of(line.read, line.read + line.reads, replaced);
}

void Accesses::remember(GlobalLine& line, const LineAccess& now) {
  if (!is_read(now.of.use)) {
    line.is_written = true;
    line.reads = 0;
    line.write = now;
    return;
  }
  uint32_t i = 0;
  while (i < line.reads &&
         (line.read[i].of.warp != now.of.warp || line.read[i].of.cluster != now.of.cluster ||
          line.read[i].of.use != now.of.use ||
          memcmp(line.read[i].lane, now.lane, sizeof now.lane)))
    ++i;
  // Later records move up, so that this one is the last, as it would be in the chunks.
  for (; i + 1 < line.reads; ++i) line.read[i] = line.read[i + 1];
  line.reads = std::max(line.reads, i + 1);
  line.read[i] = now;
}

bool Accesses::by_lines(const GlobalAccess& by) {
  const uint32_t count = 32 * by.bytes / line_bytes;
  constexpr uint32_t page_bytes = 4096;
  if (by.base % page_bytes + count * line_bytes > page_bytes) return false;
  LineAccess now[4];
  for (uint32_t i = 0; i < count; ++i) {
    now[i].of = access(every_lane, by.use);
    now[i].of.cluster = now_.serial;
    for (uint32_t w = 0; w < line_words; ++w)
      now[i].lane[w] = uint8_t((i * line_words + w) * 4 / by.bytes);
  }
  const Party& p = parties_.of(now_.self());
  return global_.lines(near_, by.base, !is_read(by.use), [&](GlobalLine* lines, uint8_t* last) {
    for (uint32_t i = 0; i < count; ++i)
      if (!line_takes(lines[i], now[i], p)) return false;
    for (uint32_t i = 0; i < count; ++i) remember(lines[i], now[i]);
    if (by.values) memcpy(last, by.values, count * line_bytes);
    return true;
  });
}

// Lanes of one access, which is remembered. False: nothing was done.
bool Accesses::run_of(GlobalOrder::Held& held, const GlobalAccess& by, Access a) {
  const uint64_t address = by.base + by.address[a.lane];
  const uint32_t in = uint32_t(address % chunk_bytes);
  a.mask = uint16_t(((1u << by.bytes) - 1) << in);
  const Knowledge& all = parties_.of(now_.self()).all;
  bool over = true;
  held.at(address, [&](Chunk& chunk, uint8_t* last) {
    over = !chunk.crowded();
    if (over)
      chunk.each([&](const Access& old) {
        if (old.mask & a.mask) over = over && over_in_global(old, a, all);
      });
    if (!over) return;
    if (by.values) memcpy(last + in, by.values + a.lane * by.bytes, by.bytes);
    remember(chunk, a);
  });
  return over;
}

void Accesses::by_runs(const GlobalAccess& by) {
  GlobalOrder::Held held(global_, near_, !is_read(by.use));
  Access a = access(every_lane, by.use);
  a.cluster = now_.serial;
  for (uint32_t left = by.lanes; left;) {
    const uint32_t first = uint32_t(std::countr_zero(left));
    uint32_t run = left & -left;
    left ^= run;
    while (is_read(by.use) && left && by.address[std::countr_zero(left)] == by.address[first]) {
      run |= left & -left;
      left &= left - 1;
    }
    a.lane = uint8_t(first);
    a.lanes = run;
    if (run_of(held, by, a)) continue;
    held.release();
    lane_by_lane(by, run);
  }
}

}  // namespace emu::order
