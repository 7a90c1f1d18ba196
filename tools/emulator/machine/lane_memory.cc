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

uint8_t* in_params(Warp& warp, uint64_t address, uint32_t bytes, const char* who) {
  const auto& params = warp.cta.cluster.launch.params;
  if (address > params.size() || bytes > params.size() - address)
    throw Fault(FaultKind::illegal_address,
                format("%s of %u bytes at parameter offset %llu; the block has %zu bytes", who,
                       bytes, LongLong(address), params.size()));
  return const_cast<uint8_t*>(params.data()) + address;  // read only; st refuses .param
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
    p.host_ = warp.global(address, bytes, bytes, who);
    p.cluster = &warp.cta.cluster;
    p.address = address;
    p.lane = lane;
    return p;
  }
  if (address % bytes) misaligned(address, bytes, who);
  Place p;
  if (space == Space::param) {
    p.space = space;
    p.host_ = in_params(warp, address, bytes, who);
    return p;
  }
  if (space != Space::local) {
    p = in_shared(warp, lane, space, address, who);
  } else {
    p.space = Space::local;
    p.local_ = &warp.local;
    p.offset = address;
  }
  p.lane = lane;
  return p;
} catch (Fault& fault) {
  fault.lane = lane;
  throw;
}

namespace {

Scope scope_of(const ptx::Instr& in) {
  if (in.has(Mod::cta)) return Scope::cta;
  return in.has(Mod::cluster) ? Scope::cluster : Scope::gpu;
}
// A plain access, or one of local memory, orders nothing.
bool synchronises(const Place& p) { return p.space == Space::global || p.cta; }

}  // namespace

namespace {

// ptxas refuses a store to .const; only this check sees one through a generic or global address.
void refuse_constant(const ptx::Module& module, uint64_t address, const char* who) {
  for (const uint32_t i : module.constants) {
    const ptx::Variable& v = module.variables[i];
    if (address - v.address < v.bytes)
      throw Fault(FaultKind::illegal_address,
                  format("%s writes to the .const variable %s: a kernel only reads those", who,
                         v.name.c_str()));
  }
}

}  // namespace

Bytes Place::open(const ptx::Instr& in, uint32_t bytes, Use use, const void* value) const {
  const Bytes opened(*this);
  if (space == Space::global) {
    if (!is_read(use)) refuse_constant(*cluster->launch.module, address, in.opcode);
    cluster->observers.access({nullptr, address, bytes, use, lane, false, value});
  } else if (space == Space::shared_cta) {
    const bool same = value && cta->shared(Teller{}).holds(uint32_t(offset), value, bytes);
    cluster->observers.access({cta, offset, bytes, use, lane, same, nullptr});
  }
  if (use == Use::atomic) opened.release(in);
  return opened;
}

void Bytes::release(const ptx::Instr& in) const {
  if (!synchronises(place_)) return;
  const bool relaxed = !in.has(Mod::release) && !in.has(Mod::acq_rel);
  const uint64_t at = place_.cta ? place_.offset : place_.address;
  place_.cluster->observers.tell(
      event::Released{place_.cta, at, place_.lane, scope_of(in), relaxed});
}

void Bytes::acquire(const ptx::Instr& in) const {
  if (!synchronises(place_)) return;
  const bool relaxed = !in.has(Mod::acquire) && !in.has(Mod::acq_rel);
  const uint64_t at = place_.cta ? place_.offset : place_.address;
  place_.cluster->observers.tell(
      event::Acquired{place_.cta, at, place_.lane, scope_of(in), relaxed});
}

uint8_t* Bytes::global(uint32_t at, uint32_t bytes, const char* who) const {
  if (place_.space == Space::global) {
    const GlobalMemory& memory = place_.cluster->launch.memory.get(Teller{});
    if (memory.blank().any()) memory.require_values(place_.address + at, bytes, who);
  }
  return place_.host(Teller{}) + at;
}

uint64_t Bytes::read(uint32_t at, uint32_t bytes, const char* who) const try {
  uint64_t value = 0;
  if (place_.space == Space::global) return read_global(global(at, bytes, who), bytes);
  if (place_.space == Space::param)
    memcpy(&value, global(at, bytes, who), bytes);
  else if (place_.space == Space::local)
    place_.local(Teller{})->read(place_.lane, place_.offset + at, &value, bytes, 1);
  else
    place_.cta->shared(Teller{}).read(uint32_t(place_.offset + at), &value, bytes, 1, who);
  return value;
} catch (Fault& fault) {
  fault.lane = place_.lane;
  throw;
}

void Bytes::write(uint32_t at, uint32_t bytes, uint64_t value, const char* who) const try {
  if (place_.space == Space::global) {
    write_global(place_.host(Teller{}) + at, bytes, value);
    return place_.cluster->launch.memory.get(Teller{}).blank().remove(place_.address + at, bytes);
  }
  if (place_.space == Space::param)
    throw Fault(FaultKind::illegal_address, format("%s writes to a kernel parameter", who));
  if (place_.space == Space::local)
    place_.local(Teller{})->write(place_.lane, place_.offset + at, &value, bytes, 1);
  else
    place_.cta->shared(Teller{}).write(uint32_t(place_.offset + at), &value, bytes, 1, who);
} catch (Fault& fault) {
  fault.lane = place_.lane;
  throw;
}

bool Bytes::has_value(uint32_t at, uint32_t bytes, const char* who) const try {
  if (place_.cta) {  // true for an mbarrier: read() has the Fault that says so
    const SharedMemory& shared = place_.cta->shared(Teller{});
    const uint32_t there = uint32_t(place_.offset + at);
    return shared.has_value(there, bytes, who) || shared.is_mbarrier(there);
  }
  if (place_.space == Space::global) {
    const BlankBytes& blank = place_.cluster->launch.memory.get(Teller{}).blank();
    return !blank.any() || blank.within(place_.address + at, bytes).empty();
  }
  return place_.space != Space::local ||
         place_.local(Teller{})->holds(place_.lane, place_.offset + at, bytes);
} catch (Fault& fault) {
  fault.lane = place_.lane;
  throw;
}

void Bytes::forget(uint32_t at, uint32_t bytes, const char* who, std::string why) const try {
  const uint32_t there = uint32_t(place_.offset + at);
  if (place_.cta) return place_.cta->shared(Teller{}).forget(there, bytes, who, std::move(why));
  if (place_.space == Space::global)
    return place_.cluster->launch.memory.get(Teller{}).blank().add(
        {place_.address + at, bytes, std::move(why)});
  place_.local(Teller{})->forget(place_.lane, place_.offset + at, bytes);
} catch (Fault& fault) {
  fault.lane = place_.lane;
  throw;
}

std::string Bytes::why_none(uint32_t at, uint32_t bytes) const {
  if (!place_.cta) {
    const GlobalMemory& memory = place_.cluster->launch.memory.get(Teller{});
    const auto none = memory.blank().within(place_.address + at, bytes);
    return none.empty() ? "" : none[0].why;
  }
  return place_.cta->shared(Teller{}).why_none(uint32_t(place_.offset + at));
}

void Bytes::store_word(Cta& cta, uint32_t address, uint32_t word, const char* who) {
  cta.cluster.observers.access(
      {&cta, address, sizeof word, Use::write, every_lane, false, nullptr});
  cta.shared(Teller{}).write(address, &word, sizeof word, sizeof word, who);
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
