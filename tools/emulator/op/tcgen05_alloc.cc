// SPDX-License-Identifier: MIT
// tcgen05.alloc, dealloc, relinquish_alloc_permit: warp collective, and with .cta_group::2 a matter
// of one warp in each CTA of the pair.
//
// "The first warp to perform the operation could block until the second warp in the peer CTA also
// performs the operation" (PTX ISA 9.7.16.5): could, so here it does or does not as the run's order
// says. The first alloc gives the columns in both CTAs: kernels proven on hardware have the leader
// use them while the peer's alloc is still to come.
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/machine/tensor_columns.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/tcgen05.h"

namespace emu::ops {
namespace {

using glue::Target;
using glue::Where;
using ptx::Instr;
using ptx::Mod;
using ptx::Step;

// The second half of an instruction of a pair, after this CTA has done its share: waits until
// done() says that the peer has, too. The path's ticket remembers that the instruction waits here.
template <class F>
Step join(Warp& warp, const Instr& in, Cta* other, F done) {
  uint64_t& waiting = warp.flow.here().ticket;
  if (!waiting) {
    ++warp.cta.cluster.progress;
    waiting = other && warp.cta.cluster.async.late();
  }
  if (waiting && !done()) {
    warp.waiting = [&in, other] {
      return format("%s in CTA %u of the pair", in.opcode, other->rank);
    };
    return Step::blocked;
  }
  waiting = 0;
  return Step::next;
}

Step alloc(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_all(active, in.opcode);
  Cta* other = peer(warp, in);
  TensorColumns tensor(warp.cta);
  if (!warp.flow.here().ticket) {
    const uint32_t lane = uint32_t(std::countr_zero(active));
    const uint32_t columns = uint32_t(warp.uniform(in.ops[1], active, in.opcode));
    warp.uniform(in.ops[0], active, in.opcode);
    const Where where = in.has(Mod::shared_cta) ? Where::own : Where::generic_own;
    const Target to = glue::target(warp, in.ops[0], lane, where, in.opcode);
    const bool first = other && !tensor.has_reserved();
    const std::optional<uint32_t> address = tensor.allocate(columns);
    if (!address) {
      warp.waiting = [&warp, columns] {
        return format("%u columns of tensor memory; ", columns) +
               TensorColumns(warp.cta).describe();
      };
      return Step::blocked;
    }
    if (first) TensorColumns(*other).reserve(*address, columns);
    Bytes::store_word(*to.cta, to.address, *address, in.opcode);
  }
  return join(warp, in, other,
              [&] { return TensorColumns(*other).allocations() >= tensor.allocations(); });
}

// Seen on hardware: a launch failure when the peer's alloc has not happened yet.
void require_peer_allocated(const Instr& in, const TensorColumns& mine, Cta& other) {
  const TensorColumns columns(other);
  if (columns.allocations() >= mine.allocations()) return;
  throw Fault(FaultKind::tensor_memory,
              format("%s before CTA %u of the pair has executed its tcgen05.alloc; %s", in.opcode,
                     other.rank, columns.describe().c_str()));
}

Step dealloc(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_all(active, in.opcode);
  Cta* other = peer(warp, in);
  TensorColumns tensor(warp.cta);
  if (!warp.flow.here().ticket) {
    const uint32_t address = uint32_t(warp.uniform(in.ops[0], active, in.opcode));
    const uint32_t columns = uint32_t(warp.uniform(in.ops[1], active, in.opcode));
    if (other) require_peer_allocated(in, tensor, *other);
    tensor.deallocate(address, columns);
  }
  return join(warp, in, other,
              [&] { return TensorColumns(*other).deallocations() >= tensor.deallocations(); });
}

Step relinquish(Warp& warp, const Instr& in, uint32_t active) {
  warp.require_all(active, in.opcode);
  peer(warp, in);
  TensorColumns(warp.cta).relinquish();
  return Step::next;
}

}  // namespace

ptx::Exec bind_tcgen05_alloc(const Instr&, std::string&) { return alloc; }
ptx::Exec bind_tcgen05_dealloc(const Instr&, std::string&) { return dealloc; }
ptx::Exec bind_tcgen05_relinquish_alloc_permit(const Instr&, std::string&) { return relinquish; }

}  // namespace emu::ops
