// SPDX-License-Identifier: MIT
// What asynchronous work accesses: boxes, operands, accumulators. One record does for a line of
// eight chunks, or of eight columns, as long as all its accesses are such and are in order.
// Otherwise each chunk keeps its own record. See accesses.h, and shadow.h for the record.
#include "tools/emulator/order/accesses.h"

namespace emu::order {

namespace {

constexpr uint8_t whole_line = 0xFF;

}  // namespace

Access Accesses::access(Operation op, const Viewer& v, Use use, uint16_t mask) const {
  Access a = access(v.lane, use);
  a.async = true;
  a.time = uint32_t(op);
  a.mask = mask;
  return a;
}

void Accesses::shared(Operation op, Cta& cta, uint32_t address, uint32_t bytes, Use use) {
  Viewer v = operations_.viewer(op);
  v.space = Space::shared;
  v.cta = &cta;
  const Work work = operations_.issued(op).work;
  if (is_read(use) ? work == Work::copy : work != Work::cp_async)
    operations_.land(op, cta.rank, address, is_read(use));
  Strip strip(shared_[cta.rank], access(op, v, use, all_bytes), v);
  behind_.clear();
  const uint32_t end = address + bytes;
  uint32_t at = std::min(end, (address + chunk_bytes - 1) / chunk_bytes * chunk_bytes);
  touch_range(cta, address, at - address, strip.access, v);
  for (; end - at >= chunk_bytes; at += chunk_bytes) touch_by_line(strip, at / chunk_bytes);
  touch_rest(strip);
  touch_range(cta, at, end - at, strip.access, v);
}

void Accesses::shared(Operation op, Cta& cta, const std::vector<uint32_t>& chunks, Use use) {
  Viewer v = operations_.viewer(op);
  v.space = Space::shared;
  v.cta = &cta;
  Strip strip(shared_[cta.rank], access(op, v, use, all_bytes), v);
  behind_.clear();
  for (uint32_t address : chunks) touch_by_line(strip, address / chunk_bytes);
  touch_rest(strip);
}

void Accesses::columns(Operation op, Cta& cta, uint32_t column, uint32_t count, uint16_t groups,
                       Use use) {
  Viewer v = operations_.viewer(op);
  v.space = Space::tensor;
  v.cta = &cta;
  Strip strip(tensor_[cta.rank], access(op, v, use, groups), v);
  behind_.clear();
  for (uint32_t c = column; c < column + count; ++c) {
    if (groups == all_groups)
      touch_by_line(strip, c);
    else
      touch(tensor_[cta.rank][c], strip.access, v, c);
  }
  touch_rest(strip);
}

// Chunk after chunk, in this order.
void Accesses::touch_by_line(Strip& strip, uint32_t chunk) {
  const uint32_t line = chunk / Shadow::line_chunks, in = chunk % Shadow::line_chunks;
  if (strip.count && (line != strip.line || strip.chunks >> in & 1)) touch_rest(strip);
  strip.line = line;
  strip.chunks |= uint8_t(1u << in);
  strip.chunk[strip.count++] = chunk;
  if (strip.chunks == whole_line) touch_rest(strip);
}

void Accesses::touch_rest(Strip& strip) {
  if (!strip.count) return;
  Line& line = strip.shadow.line(strip.line);
  const bool stored = strip.chunks == whole_line && strip.access.use == Use::write;
  if (line.works && meets_in_order(strip, line)) {
    remember(strip, line);
  } else {
    if (!stored || !strip.shadow.untouched(strip.line)) touch_chunks(strip);
    if (stored) strip.shadow.write_line(strip.line, record_of(strip));  // nothing older is left
  }
  strip.chunks = 0;
  strip.count = 0;
}

void Accesses::touch_chunks(Strip& strip) {
  for (uint32_t i = 0; i < strip.count; ++i)
    touch(strip.shadow[strip.chunk[i]], strip.access, strip.viewer, strip.chunk[i]);
}

uint32_t Accesses::record_of(Strip& strip) {
  if (strip.record == Strip::none) strip.record = strip.shadow.add_record(strip.access);
  return strip.record;
}

bool Accesses::meets_in_order(Strip& strip, const Line& line) {
  strip.viewer.use = strip.access.use;
  strip.viewer.mask = strip.access.mask;
  for (uint32_t w = 0; w < line.works; ++w) {
    if (!(line.work[w].chunks & strip.chunks)) continue;
    const Access& old = strip.shadow.record(line.work[w].record);
    if (behind_.has(old)) continue;
    if (reason_of(old, strip.access, strip.viewer) != Reason::ordered) return false;
    behind_.add(old);
  }
  return true;
}

// As touch() does it for a chunk.
void Accesses::remember(Strip& strip, Line& line) {
  uint32_t kept = 0;
  for (uint32_t w = 0; w < line.works; ++w) {
    WorkAccess old = line.work[w];
    if ((old.chunks & strip.chunks) &&
        (strip.access.use == Use::write || replaces(strip.access, strip.shadow.record(old.record))))
      old.chunks &= uint8_t(~strip.chunks);
    if (old.chunks) line.work[kept++] = old;
  }
  line.works = kept;
  const uint32_t record = record_of(strip);
  WorkAccess* const last = kept ? &line.work[kept - 1] : nullptr;
  if (last && last->record == record && !(last->chunks & strip.chunks)) {
    last->chunks |= strip.chunks;
  } else if (kept < Line::most_works) {
    line.work[line.works++] = {record, strip.chunks};
  } else {
    for (uint32_t i = 0; i < strip.count; ++i) strip.shadow[strip.chunk[i]].add(strip.access);
  }
}

}  // namespace emu::order
