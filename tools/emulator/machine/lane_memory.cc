// SPDX-License-Identifier: MIT
// One lane's access to memory of any state space.
#include "tools/emulator/machine/lane_memory.h"

#include <cstring>

namespace emu {

using ptx::Mod;
using ptx::Space;

namespace {

using LongLong = unsigned long long;

[[noreturn]] void misaligned(uint64_t address, uint32_t bytes, const char* who) {
  throw Fault(FaultKind::misaligned_address,
              format("%s of %u bytes at 0x%llx, which is no multiple of its size", who, bytes,
                     LongLong(address)));
}

Place in_shared(Warp& warp, uint32_t lane, Space space, uint64_t address, const char* who) {
  if (address >> 32)
    throw Fault(FaultKind::illegal_address,
                format("%s at 0x%llx, which is no shared address", who, LongLong(address)));
  uint32_t offset = 0;
  Cta& cta = warp.cta.cluster.cta_of(uint32_t(address), &offset, who);
  if (space == Space::shared_cta && &cta != &warp.cta)
    throw Fault(FaultKind::illegal_address,
                format("%s through .shared::cta at 0x%08x, which lies in the CTA of rank %u; this "
                       "one has rank %u",
                       who, uint32_t(address), cta.rank, warp.cta.rank));
  if (cta.ended())
    throw Fault(FaultKind::illegal_address,
                format("%s at 0x%08x in shared memory of the CTA of rank %u, which has ended", who,
                       uint32_t(address), cta.rank));
  Place p;
  p.space = Space::shared_cta;
  p.cta = &cta;
  p.cluster = &warp.cta.cluster;
  p.offset = offset;
  p.lane = lane;
  return p;
}

Place in_params(Warp& warp, uint64_t address, uint32_t bytes, const char* who) {
  const auto& params = warp.cta.cluster.launch.params;
  if (address > params.size() || bytes > params.size() - address)
    throw Fault(FaultKind::illegal_address,
                format("%s of %u bytes at parameter offset %llu; the block has %zu bytes", who,
                       bytes, LongLong(address), params.size()));
  Place p;
  p.space = Space::param;
  p.host = const_cast<uint8_t*>(params.data()) + address;  // read only; st refuses .param
  return p;
}

void read_shared(const Cta& cta, uint32_t address, void* to, uint32_t bytes, const char* who) {
  cta.shared.read(address, to, bytes, 1, who);
}
void write_shared(Cta& cta, uint32_t address, const void* from, uint32_t bytes, const char* who) {
  cta.shared.write(address, from, bytes, 1, who);
}

template <class T>
T load(const uint8_t* p) {
  return __atomic_load_n(reinterpret_cast<const T*>(p), __ATOMIC_ACQUIRE);
}
template <class T>
void store(uint8_t* p, uint64_t v) {
  __atomic_store_n(reinterpret_cast<T*>(p), T(v), __ATOMIC_RELEASE);
}

uint64_t read_global(const uint8_t* p, uint32_t bytes) {
  switch (bytes) {
    case 1: return load<uint8_t>(p);
    case 2: return load<uint16_t>(p);
    case 4: return load<uint32_t>(p);
    default: return load<uint64_t>(p);
  }
}

void write_global(uint8_t* p, uint32_t bytes, uint64_t v) {
  switch (bytes) {
    case 1: return store<uint8_t>(p, v);
    case 2: return store<uint16_t>(p, v);
    case 4: return store<uint32_t>(p, v);
    default: return store<uint64_t>(p, v);
  }
}

}  // namespace

Place locate(Warp& warp, uint32_t lane, Space space, uint64_t address, uint32_t bytes,
             const char* who) try {
  if (space == Space::generic) {
    space = address::space_of(address);
    address = address::from_generic(space, address);
  }
  if (space == Space::global || space == Space::constant) {
    Place p;
    p.host = warp.global(address, bytes, bytes, who);
    p.cluster = &warp.cta.cluster;
    p.address = address;
    p.lane = lane;
    return p;
  }
  if (address % bytes) misaligned(address, bytes, who);
  if (space == Space::param) return in_params(warp, address, bytes, who);
  Place p;
  if (space != Space::local) {
    p = in_shared(warp, lane, space, address, who);
  } else {
    p.space = Space::local;
    p.local = &warp.local;
    p.offset = address;
  }
  p.lane = lane;
  return p;
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

void Place::note(uint32_t bytes, Use use, const void* value) const {
  if (space == Space::global) {
    cluster->observers.access({nullptr, address, bytes, use, lane, false, value});
    return;
  }
  if (space != Space::shared_cta) return;
  const bool same = value && cta->shared.holds(uint32_t(offset), value, bytes);
  cluster->observers.access({cta, offset, bytes, use, lane, same, nullptr});
}

namespace {

Scope scope_of(const ptx::Instr& in) {
  if (in.has(Mod::cta)) return Scope::cta;
  return in.has(Mod::cluster) ? Scope::cluster : Scope::gpu;
}
// Of what a plain access, or one of local memory, orders: nothing.
bool synchronises(const Place& p) { return p.space == Space::global || p.cta; }

}  // namespace

void Place::release(const ptx::Instr& in) const {
  if (!synchronises(*this)) return;
  const bool relaxed = !in.has(Mod::release) && !in.has(Mod::acq_rel);
  const uint64_t at = cta ? offset : address;
  cluster->observers.tell(event::Released{cta, at, lane, scope_of(in), relaxed});
}

void Place::acquire(const ptx::Instr& in) const {
  if (!synchronises(*this)) return;
  const bool relaxed = !in.has(Mod::acquire) && !in.has(Mod::acq_rel);
  const uint64_t at = cta ? offset : address;
  cluster->observers.tell(event::Acquired{cta, at, lane, scope_of(in), relaxed});
}

uint64_t Place::read(uint32_t at, uint32_t bytes, const char* who) const try {
  uint64_t value = 0;
  if (space == Space::global) return read_global(host + at, bytes);
  if (space == Space::param)
    memcpy(&value, host + at, bytes);
  else if (space == Space::local)
    local->read(lane, offset + at, &value, bytes, 1);
  else
    read_shared(*cta, uint32_t(offset + at), &value, bytes, who);
  return value;
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

void Place::write(uint32_t at, uint32_t bytes, uint64_t value, const char* who) const try {
  if (space == Space::global) return write_global(host + at, bytes, value);
  if (space == Space::param)
    throw Fault(FaultKind::illegal_address, format("%s writes to a kernel parameter", who));
  if (space == Space::local)
    local->write(lane, offset + at, &value, bytes, 1);
  else
    write_shared(*cta, uint32_t(offset + at), &value, bytes, who);
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

bool Place::has_value(uint32_t at, uint32_t bytes, const char* who) const try {
  if (cta) {  // of an mbarrier the read says what it is
    const uint32_t place = uint32_t(offset + at);
    return cta->shared.has_value(place, bytes, who) || cta->shared.is_mbarrier(place);
  }
  return space != Space::local || local->holds(lane, offset + at, bytes);
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

void Place::forget(uint32_t at, uint32_t bytes, const char* who) const try {
  if (cta) return cta->shared.forget(uint32_t(offset + at), bytes, who);
  local->forget(lane, offset + at, bytes);
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

Space space_named(const ptx::Instr& in) {
  if (in.has(Mod::global)) return Space::global;
  if (in.has(Mod::shared) || in.has(Mod::shared_cta)) return Space::shared_cta;
  if (in.has(Mod::shared_cluster)) return Space::shared_cluster;
  if (in.has(Mod::param)) return Space::param;
  if (in.has(Mod::local)) return Space::local;
  return in.has(Mod::const_) ? Space::constant : Space::generic;
}

}  // namespace emu
