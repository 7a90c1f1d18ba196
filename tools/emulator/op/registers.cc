// SPDX-License-Identifier: MIT
// setmaxnreg (PTX ISA 9.7.20.5): registers that the warps of a CTA hand to each other.
#include <algorithm>

#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

constexpr uint32_t of_an_sm = 65536, most = 256, granule = 8;

uint32_t threads_of(const ptx::Function& f) {
  const uint32_t* given = f.reqntid[0] ? f.reqntid : f.maxntid;
  uint32_t product = given[0];
  for (int i = 1; i < 3; ++i) product *= given[i] ? given[i] : 1;
  return product;
}

// The registers of a thread at entry: .maxnreg, or the most with which .minnctapersm CTAs of
// .reqntid or .maxntid threads fit an SM. ptxas 13.0 ignores setmaxnreg ("unable to determine
// register count at entry") where neither is given.
uint32_t at_entry(const ptx::Function& f) {
  if (f.maxnreg) return (f.maxnreg + granule - 1) / granule * granule;
  const uint32_t threads = (threads_of(f) + 127) / 128 * 128;  // as ptxas counts them
  if (!threads || !f.minnctapersm) return 0;
  return std::min(most, of_an_sm / (f.minnctapersm * threads) / granule * granule);
}

// .dec gives registers to the CTA's pool, .inc waits until there are enough.
Step set_registers(Warp& w, const Instr& in, uint32_t active) {
  w.require_aligned(active, in.opcode);
  const int64_t n = in.ops[0].imm;
  if (n < 24 || n > most || n % granule)
    throw Fault(FaultKind::illegal_instruction,
                format("setmaxnreg %lld: not a multiple of 8 from 24 to 256", (long long)n));
  if (!w.registers) w.registers = at_entry(*w.cta.cluster.launch.function);
  const uint32_t had = w.registers, wanted = uint32_t(n);
  if (had && in.has(Mod::dec) && wanted < had) {
    w.cta.free_registers += (had - wanted) * 32;
    w.registers = wanted;
  } else if (had && in.has(Mod::inc) && wanted > had) {
    const uint64_t more = (wanted - had) * 32;
    if (w.cta.free_registers < more) {
      w.waiting = [&w, more] {
        return format(
            "%llu more registers a thread; the CTA's pool has %llu, this warp needs %llu: "
            "another has to release them with setmaxnreg.dec",
            (unsigned long long)more / 32, (unsigned long long)w.cta.free_registers,
            (unsigned long long)more);
      };
      return Step::blocked;
    }
    w.cta.free_registers -= more;
    w.registers = wanted;
  }
  w.register_changes.push_back(&in);
  ++w.cta.cluster.progress;
  return Step::next;
}

}  // namespace

Exec bind_setmaxnreg(const Instr&, std::string&) { return set_registers; }

}  // namespace emu::ops
