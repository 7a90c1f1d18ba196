// SPDX-License-Identifier: MIT
// What a finding says: both accesses, and what would have ordered them.
#include "tools/emulator/order/reporter.h"

#include <bit>

#include "tools/emulator/machine/report.h"

namespace emu::order {

namespace {

const char* verb(Use use) {
  return is_read(use) ? "reads" : use == Use::write ? "overwrites" : "updates";
}
const char* past(Use use) {
  return is_read(use) ? "read" : use == Use::write ? "write" : "strong or atomic access";
}

}  // namespace

std::string Reporter::missing(Reason reason, const Access& old) const {
  switch (reason) {
    case Reason::ordered:
    case Reason::earlier_grid: return "";  // found_earlier() has its words
    case Reason::weak_flag:
      return "strong loads poll this word, so its store must be .relaxed or stronger";
    case Reason::same_value:
    case Reason::unordered: return "no barrier, fence or wait orders the two";
    case Reason::relaxed_barrier:
      return "only a cluster barrier orders the two, and the arrival at it is .relaxed: .release "
             "is "
             "missing";
    case Reason::incomplete:
      return "it is not known to be complete: " + wait_for(operations_.issued(Operation(old.time)));
    case Reason::incomplete_far:
      return std::string(is_read(old.use) ? "the wait for its mbarrier or group"
                                          : "a cp.async.bulk.wait_group of its thread") +
             " is missing, and after it a barrier or fence that orders the two";
    case Reason::proxy:
      return "the async proxy sees ordinary stores only after a fence.proxy.async, which is "
             "missing on the way from the store";
    case Reason::proxy_overwrite:
      return "the async proxy may overtake the ordinary store: a fence.proxy.async is missing on "
             "the way";
    case Reason::copied_proxy:
      return "cp.async belongs to the generic proxy: a fence.proxy.async is missing on the way";
    case Reason::scope:
    case Reason::scope_of_store:
      return "the mbarrier that orders the two is in another CTA, and the arrival at it has the "
             "scope .cta: .release.cluster is missing";
    case Reason::narrow_wait:
      return "the wait that orders the two has the scope .cta, after which the SM may still have "
             "old bytes in its cache: .acquire.cluster is missing";
    case Reason::tensor_fence:
      return "a tcgen05.fence::before_thread_sync or ::after_thread_sync is missing on the way";
    case Reason::reused_columns:
      return "the manual orders cp before mma of one thread, not the other way: wait for a commit";
    case Reason::unfenced_flag:
      return "a thread of this CTA has updated the flag, and a fence is missing between that and "
             "this access, before or after the barrier";
    case Reason::stale_line:
      return "a thread of this CTA has updated the flag, and a fence is missing after that: the "
             "SM's "
             "cache may still have the line as a load of this CTA found it before";
    case Reason::fence_elsewhere:
      return "the fence that orders the two and the relaxed access to the flag are on two sides of "
             "a barrier: one thread must execute both";
    case Reason::narrow_scope:
      return "both are strong, but the scope of one does not include the other's thread, and "
             "nothing else orders them";
    case Reason::volatile_data:
      return "no barrier, fence or wait orders the two; that they are volatile gives them no order";
    case Reason::constant_stale:
      return "ld.global.nc may use a cache that does not see this store: memory that the grid "
             "writes must be read with a plain ld.global";
    case Reason::constant_overwritten:
      return "ld.global.nc may only read memory that the grid never writes, and this grid writes "
             "it";
    case Reason::collision:
      return "lanes of one instruction store different values, and no rule says which of them "
             "stays";
    case Reason::map_fence:
      return "a tensor map was edited in memory: the thread that uses it must first execute a "
             "fence.proxy.tensormap::generic.acquire";
    case Reason::released_apart:
      return "another lane of the earlier warp did the release: a bar.warp.sync is missing between "
             "the earlier access and that release";
    case Reason::waited_apart:
      return "only another lane of this warp has waited: a bar.warp.sync is missing after that "
             "wait";
    case Reason::lanes:
    case Reason::diverged_lanes:
      return "a bar.warp.sync is missing between the two lanes of one warp";
    case Reason::uninitialised_barrier:
      return "no barrier or fence orders the mbarrier.init before this use of the mbarrier";
    case Reason::relaxed_init:
      return "only a cluster barrier orders the two, and the arrival at it is .relaxed: a "
             "fence.mbarrier_init is missing before it";
    case Reason::used_load:
      return "a tcgen05.wait::ld is missing; ptxas adds a wait, because the registers have been "
             "used";
    case Reason::init_fence:
      return "the async proxy sees an mbarrier.init only after a fence.mbarrier_init or "
             "fence.proxy.async";
  }
  return "";
}

std::string Reporter::wait_for(const Issued& op) {
  switch (op.work) {
    case Work::mma:
    case Work::tensor_copy: return "wait for the mbarrier of its tcgen05.commit first";
    case Work::tensor_ld: return "a tcgen05.wait::ld is missing";
    case Work::tensor_st: return "a tcgen05.wait::st is missing";
    case Work::wgmma: return "a wgmma.wait_group is missing";
    case Work::copy:
    case Work::cp_async:
    case Work::store_async:
    case Work::commit:
    case Work::copy_arrive: break;
  }
  return op.read_agent != nobody ? "a cp.async.bulk.wait_group of its thread is missing"
                                 : "wait for its mbarrier or group first";
}

std::string Reporter::place(const Viewer& v, uint64_t index, uint16_t mask) const {
  const uint32_t first = uint32_t(std::countr_zero(uint32_t(mask)));
  if (v.space == Space::global) return now_.cluster.launch.memory.describe(index * 16 + first);
  const std::string of =
      v.cta == &now_.warp().cta ? "" : format(" of the CTA of rank %u", v.cta->rank);
  if (v.space == Space::tensor)
    return format("tensor memory column %u, lanes from %u", uint32_t(index), 16 * first) + of;
  const uint32_t address = uint32_t(index) * 16 + first;
  const std::string variable = report::shared_object(*v.cta, address);
  return format("shared address 0x%x", address) + of +
         (variable.empty() ? "" : ", " + variable + ",");
}

// ptxas repairs one of the reasons in reasons.def: it adds the missing fence of tensor memory.
const char* Reporter::left_to(Reason reason) const {
  const ptx::Module* const module = now_.cluster.launch.module;
  return module && reason == Reason::tensor_fence ? module->left_to_ptxas() : nullptr;
}

bool Reporter::has_exited(const Access& old, const Viewer& v) const {
  if (v.space == Space::global && old.cluster != now_.serial) return false;
  return now_.cluster.ctas[old.warp / now_.warps]->warps[old.warp % now_.warps]->exited & old.lanes;
}

void Reporter::found(Reason reason, const Access& old, const Viewer& v, uint64_t index) const {
  const Severity severity = severity_of(reason);
  if (!Findings::wanted(severity)) return;
  const uint64_t key = uint64_t(old.pc) << 32 | uint64_t(now_.pc()) << 8 | uint64_t(reason);
  if (now_.cluster.launch.findings->again(severity, key)) return;
  const uint32_t warp = old.warp, thread = (warp % now_.warps) * 32 + old.lane % every_lane;
  const Dim3 block = v.space == Space::global
                         ? now_.cluster.block_of(old.cluster, warp / now_.warps)
                         : now_.cluster.ctas[warp / now_.warps]->id;
  const auto& earlier = now_.cluster.launch.function->code[old.pc];
  const Dim3& here = now_.warp().cta.id;
  const std::string elsewhere = block.x == here.x && block.y == here.y && block.z == here.z
                                    ? ""
                                    : format(", block (%u,%u,%u)", block.x, block.y, block.z);
  std::string text =
      format("%s by thread %u %s %s after a %s by %s of thread %u%s, warp %u: ", now_.in().opcode,
             now_.warp().thread(v.lane % every_lane), verb(v.use),
             place(v, index, old.mask & v.mask).c_str(), past(old.use), earlier.opcode, thread,
             elsewhere.c_str(), warp % now_.warps);
  text += missing(reason, old);
  const bool nobody_released = reason == Reason::unordered || reason == Reason::released_apart;
  if (nobody_released && has_exited(old, v))
    text += "; that thread has exited since, but to exit does not release its stores";
  if (nobody_released && v.space != Space::tensor && v.space != Space::global)
    text += report::mbarriers_between(
        now_.warp(), *now_.cluster.ctas[warp / now_.warps]->warps[warp % now_.warps]);
  // Where it is the same instruction, its place is named once.
  if (&earlier != &now_.in())
    text += "\n  earlier: " + report::place(now_.cluster, earlier, severity);
  const Fault finding = report::located(Fault(FaultKind::ordering, text), now_.warp(), now_.in(),
                                        now_.active(), severity);
  now_.cluster.launch.findings->add(severity, {key, now_.in().pos.line}, name_of(reason),
                                    finding.text, left_to(reason));
}

}  // namespace emu::order
