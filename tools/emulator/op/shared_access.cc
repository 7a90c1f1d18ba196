// SPDX-License-Identifier: MIT
// See shared_access.h.
#include "tools/emulator/op/shared_access.h"

#include <cstring>

#include "tools/emulator/machine/global_lanes.h"
#include "tools/emulator/machine/shared_lanes.h"

namespace emu::ops {

namespace {

const Operand& element(const Operand& op, size_t i) {
  return op.kind == Operand::Kind::vector ? op.elements[i] : op;
}

// Other host threads may store to global memory.
template <class T>
void load_words(uint64_t* d, const uint8_t* const* from, uint32_t active, uint32_t at,
                uint64_t keep, bool is_signed) {
  for_lanes(active, [=](uint32_t lane) {
    const T value = __atomic_load_n(reinterpret_cast<const T*>(from[lane] + at), __ATOMIC_ACQUIRE);
    const uint64_t extended =
        is_signed ? uint64_t(int64_t(std::make_signed_t<T>(value))) : uint64_t(value);
    d[lane] = extended & keep;
  });
}

void load_word(Warp& w, const Operand& op, uint32_t active, const uint8_t* const* from, uint32_t at,
               uint32_t bytes, bool is_signed) {
  uint64_t* const d = w.destination(op, active);
  const uint64_t keep = op.kind == Operand::Kind::sink ? ~0ull : width_mask(op.declared);
  switch (bytes) {
    case 1: return load_words<uint8_t>(d, from, active, at, keep, is_signed);
    case 2: return load_words<uint16_t>(d, from, active, at, keep, is_signed);
    case 4: return load_words<uint32_t>(d, from, active, at, keep, is_signed);
    default: return load_words<uint64_t>(d, from, active, at, keep, is_signed);
  }
}

}  // namespace

namespace {

template <class Lanes>
void load_words_of(Warp& w, const Instr& in, uint32_t active, const Lanes& lanes, uint32_t bytes,
                   uint32_t words) {
  const bool is_signed = ptx::class_of(in.type()) == 's';
  for (uint32_t e = 0; e < words; ++e)
    load_word(w, element(in.ops[0], e), active, lanes.bytes(), e * bytes, bytes, is_signed);
}

// The words that a store writes, by element. False: a lane has none, or there are too many.
struct Stored {
  static constexpr uint32_t most = 16;
  Warp::Row scratch[most];
  const uint64_t* values[most];
  bool get(Warp& w, const Instr& in, uint32_t active, uint32_t words) {
    if (words > most) return false;
    for (uint32_t e = 0; e < words; ++e) {
      const Operand& op = element(in.ops[1], e);
      if (w.defined(op, active) != active) return false;
      values[e] = w.source(op, active, scratch[e]);
    }
    return true;
  }
};

}  // namespace

bool load_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words) {
  SharedLanes lanes(w, in.ops[1], active, bytes * words);
  if (!lanes.read()) return false;
  load_words_of(w, in, active, lanes, bytes, words);
  return true;
}

bool load_global_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words,
                          Use use) {
  GlobalLanes lanes(w, in.ops[1], active, bytes * words);
  if (!lanes.read(use)) return false;
  load_words_of(w, in, active, lanes, bytes, words);
  return true;
}

bool store_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words) {
  Stored stored;
  return stored.get(w, in, active, words) &&
         SharedLanes(w, in.ops[0], active, bytes * words).write(stored.values, bytes);
}

bool store_global_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes,
                           uint32_t words) {
  Stored stored;
  return stored.get(w, in, active, words) &&
         GlobalLanes(w, in.ops[0], active, bytes * words).write(stored.values, bytes);
}

}  // namespace emu::ops
