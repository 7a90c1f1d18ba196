// SPDX-License-Identifier: MIT
// Instructions on whole stretches of memory: st.bulk, discard, applypriority (PTX ISA 9.7.9.13 ff).
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint64_t word = 8;

void fill(Warp& w, const Instr& in, uint32_t lane, Space space, uint64_t first, uint64_t bytes,
          uint64_t value) {
  for (uint64_t at = 0; at < bytes; at += word) {
    const Place p = locate(w, lane, space, first + at, word, in.opcode);
    p.open(in, word, Use::write, &value).write(0, word, value, in.opcode);
  }
}

// Zeros in the CTA's own shared memory, in units of 8 bytes.
Step clear(Warp& w, const Instr& in, uint32_t active) {
  Warp::Row scratch;
  const uint64_t* bytes = w.source(in.ops[1], active, scratch);
  for_lanes(active, [&](uint32_t i) {
    if (bytes[i] % word)
      throw Fault(FaultKind::illegal_instruction,
                  format("st.bulk of %llu bytes, which is no multiple of 8",
                         static_cast<unsigned long long>(bytes[i])));
    uint64_t first = w.address(in.ops[0], i);
    if (!in.has(Mod::shared_cta)) {
      if (bytes[i] && address::space_of(first) != Space::shared_cluster)
        throw Fault(FaultKind::illegal_address, "st.bulk clears shared memory only");
      first = address::from_generic(Space::shared_cluster, first);
    }
    fill(w, in, i, Space::shared_cta, first, bytes[i], 0);
  });
  return Step::next;
}

// The line's bytes are gone; a kernel that reads them gets what fresh memory holds.
Step discard(Warp& w, const Instr& in, uint32_t active) {
  constexpr uint64_t line = 128, gone = ~0ull;
  for_lanes(active, [&](uint32_t i) {
    const uint64_t first = w.address(in.ops[0], i);
    if (first % line)
      throw Fault(FaultKind::misaligned_address, "discard of a line that is not 128-byte aligned");
    fill(w, in, i, Space::global, first, line, gone);
  });
  return Step::next;
}

Step hint(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) { w.address(in.ops[0], i); });
  return Step::next;
}

}  // namespace

Exec bind_st_bulk(const Instr&, std::string&) { return clear; }
Exec bind_discard(const Instr&, std::string&) { return discard; }
Exec bind_applypriority(const Instr&, std::string&) { return hint; }

}  // namespace emu::ops
