// SPDX-License-Identifier: MIT
// Loads and stores of a warp, lane by lane. Usually every lane knows that all recorded accesses to
// its bytes are over, for instance after a barrier of the CTA. Then one check against the knowledge
// of the whole warp suffices for all lanes. The records are the same either way. See accesses.h.
#include "tools/emulator/order/accesses.h"

namespace emu::order {

namespace {

uint16_t bytes_of(const WarpAccess& by, uint32_t lane) {
  return uint16_t(((1u << by.bytes) - 1) << by.address[lane] % chunk_bytes);
}

// Calls f(first lane, lanes) for neighbours that access the same bytes.
template <class F>
void each_run(const WarpAccess& by, F f) {
  for (uint32_t left = by.lanes; left;) {
    const uint32_t first = uint32_t(std::countr_zero(left));
    uint32_t run = 0;
    while (left && by.address[std::countr_zero(left)] == by.address[first]) {
      run |= left & -left;
      left &= left - 1;
    }
    f(first, run);
  }
}

}  // namespace

// For ordinary accesses to shared memory. True: judge() would find `old` over for any lane, since
// every lane of the warp has the knowledge `all`. False: undecided.
bool Accesses::over_for_all(const Access& old, const Access& a, const Knowledge& all) const {
  if (is_strong(old.use) || old.use == Use::constant_read) return false;
  if (is_read(old.use) && is_read(a.use)) return true;
  if (!old.async) {
    if (old.warp == a.warp && old.lanes == a.lanes && std::has_single_bit(a.lanes)) return true;
    return all.strict[old.warp] >= old.time &&
           (old.warp == a.warp || all.seen[old.warp] >= old.time);
  }
  const Issued& op = operations_.issued(Operation(old.time));
  const bool reads = is_read(old.use) && op.read_agent != nobody;
  const uint32_t agent = reads ? op.read_agent : op.agent, done = reads ? op.read_done : op.done;
  return agent != nobody && all.seen[agent] >= done && all.strict[agent] >= done;
}

// The end of touch(), where nothing was found.
void Accesses::remember(Chunk& chunk, const Access& access) {
  Access a = access;
  bool known = false;
  if (a.use != Use::write)
    chunk.each([&](const Access& old) {
      if (!(old.mask & access.mask) || !alike(access, old)) return;
      known = true;
      a.lanes |= old.lanes;
    });
  chunk.drop_if([&](Access& old) { return forgets(a, old, known); });
  if (!known) chunk.add(a);
}

bool Accesses::read_behind_all(const WarpAccess& by) {
  const Knowledge& all = parties_.of(now_.self()).all;
  Shadow& shadow = shared_[by.cta->rank];
  Access a = access(every_lane, by.use);
  struct Run {
    Chunk* chunk;
    uint32_t first, lanes;
  } runs[32];
  uint32_t count = 0;
  bool over = true;
  each_run(by, [&](uint32_t first, uint32_t lanes) {
    Chunk& chunk = shadow[by.address[first] / chunk_bytes];
    a.mask = bytes_of(by, first);
    a.lanes = lanes;
    chunk.each([&](const Access& old) {
      if (old.mask & a.mask) over = over && over_for_all(old, a, all);
    });
    runs[count++] = {&chunk, first, lanes};
  });
  if (!over) return false;
  for (uint32_t i = 0; i < count; ++i) {
    a.lane = uint8_t(runs[i].first);
    a.lanes = runs[i].lanes;
    a.mask = bytes_of(by, runs[i].first);
    remember(*runs[i].chunk, a);
  }
  return true;
}

// A lane is checked by itself if its bytes have a record that may not be over, for instance the
// store of a lower lane.
void Accesses::write_by_lanes(const WarpAccess& by) {
  const Knowledge& all = parties_.of(now_.self()).all;
  Shadow& shadow = shared_[by.cta->rank];
  Access a = access(every_lane, by.use);
  for_lanes(by.lanes, [&](uint32_t lane) {
    Chunk& chunk = shadow[by.address[lane] / chunk_bytes];
    a.lane = uint8_t(lane);
    a.lanes = 1u << lane;
    a.mask = bytes_of(by, lane);
    bool over = true;
    chunk.each([&](const Access& old) {
      if (old.mask & a.mask) over = over && over_for_all(old, a, all);
    });
    if (over)
      remember(chunk, a);
    else
      touch_by_lanes(by, 1u << lane);
  });
}

void Accesses::touch_by_lanes(const WarpAccess& by, uint32_t lanes) {
  Viewer v = operations_.viewer(every_lane);
  v.space = Space::shared;
  v.cta = by.cta;
  Access a = access(every_lane, by.use);
  Shadow& shadow = shared_[by.cta->rank];
  for_lanes(lanes, [&](uint32_t lane) {
    v.lane = lane;
    v.own = v.party.own[lane].get();
    v.equal = by.same >> lane & 1 ? all_bytes : 0;
    a.lane = uint8_t(lane);
    a.lanes = 1u << lane;
    a.mask = bytes_of(by, lane);
    const uint32_t chunk = by.address[lane] / chunk_bytes;
    touch(shadow[chunk], a, v, chunk);
  });
}

}  // namespace emu::order
