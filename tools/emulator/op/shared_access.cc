// SPDX-License-Identifier: MIT
// See shared_access.h.
#include "tools/emulator/op/shared_access.h"

#include <cstring>

#include "tools/emulator/machine/shared_lanes.h"

namespace emu::ops {

namespace {

const Operand& element(const Operand& op, size_t i) {
  return op.kind == Operand::Kind::vector ? op.elements[i] : op;
}

template <class T>
void load_words(uint64_t* d, const uint8_t* const* from, uint32_t active, uint32_t at,
                uint64_t keep, bool is_signed) {
  for_lanes(active, [=](uint32_t lane) {
    T value;
    memcpy(&value, from[lane] + at, sizeof value);
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

bool load_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words) {
  SharedLanes lanes(w, in.ops[1], active, bytes * words);
  if (!lanes.read()) return false;
  const bool is_signed = ptx::class_of(in.type()) == 's';
  for (uint32_t e = 0; e < words; ++e)
    load_word(w, element(in.ops[0], e), active, lanes.bytes(), e * bytes, bytes, is_signed);
  return true;
}

bool store_together(Warp& w, const Instr& in, uint32_t active, uint32_t bytes, uint32_t words) {
  constexpr uint32_t most_words = SharedLanes::most_bytes;
  if (words > most_words) return false;
  Warp::Row scratch[most_words];
  const uint64_t* values[most_words];
  for (uint32_t e = 0; e < words; ++e) {
    const Operand& op = element(in.ops[1], e);
    if (w.defined(op, active) != active) return false;
    values[e] = w.source(op, active, scratch[e]);
  }
  return SharedLanes(w, in.ops[0], active, bytes * words).write(values, bytes);
}

}  // namespace emu::ops
