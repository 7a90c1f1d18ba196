// SPDX-License-Identifier: MIT
// CTAs and clusters: construction, identity, shared-memory addresses across ranks.
#include <algorithm>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/machine/machine.h"

namespace emu {

namespace {

uint32_t round_up(uint32_t value, uint32_t to) { return to ? (value + to - 1) / to * to : value; }

uint64_t volume(const Dim3& d) { return uint64_t(d.x) * d.y * d.z; }

Dim3 unflatten(uint64_t i, const Dim3& d) {
  return {uint32_t(i % d.x), uint32_t(i / d.x % d.y), uint32_t(i / d.x / d.y)};
}

// The first block of the cluster with that %clusterid.
Dim3 first_block(const Launch& l, const Dim3& id) {
  return {id.x * l.cluster.x, id.y * l.cluster.y, id.z * l.cluster.z};
}

}  // namespace

uint64_t mix(uint64_t seed, const Dim3& id) {
  uint64_t z = seed ^ (id.x + 0x9E3779B97F4A7C15 * (id.y + 0x9E3779B97F4A7C15 * (id.z + 1ull)));
  z = (z ^ z >> 33) * 0xFF51AFD7ED558CCD;
  return z ^ z >> 33;
}

// Where the grid's edge has no room for a whole preferred cluster, clusters have the other size.
Dim3 Launch::cluster_of(const Dim3& at) const {
  const Dim3 &p = preferred, cell = {at.x / p.x, at.y / p.y, at.z / p.z};
  const bool whole =
      (cell.x + 1) * p.x <= grid.x && (cell.y + 1) * p.y <= grid.y && (cell.z + 1) * p.z <= grid.z;
  const bool larger = volume(p) > volume(cluster);
  return larger && whole && mix(settings().seed, cell) & 1 ? p : cluster;
}

void Counters::add(const Counters& other) {
#define EMU_COUNTER(name, text) name += other.name;
#include "tools/emulator/machine/counters.def"
#undef EMU_COUNTER
}

Cta::Cta(Cluster& owner, uint32_t r, Dim3 where)
    : cluster(owner),
      rank(r),
      id(where),
      barriers(*this),
      shared_(Cluster::shared_bytes(owner.launch), r),
      mbarrier_table_(r, &owner.actor) {
  uint64_t threads = volume(cluster.launch.block);
  for (uint64_t first = 0; first < threads; first += 32) {
    uint32_t n = uint32_t(std::min<uint64_t>(32, threads - first));
    warps.push_back(
        std::make_unique<Warp>(*this, uint32_t(first / 32), n == 32 ? ~0u : (1u << n) - 1));
  }
  live_warps = uint32_t(warps.size());
}

Cluster::Cluster(const Launch& l, Dim3 where, uint64_t seed)
    : launch(l),
      id(where),
      size(l.cluster_of(first_block(l, where))),
      async(settings().order, seed),
      barrier(*this) {
  const Dim3 first = first_block(launch, id);
  for (uint32_t rank = 0; rank < uint32_t(volume(size)); ++rank) {
    const Dim3 in = cta_in_cluster(rank);
    ctas.push_back(
        std::make_unique<Cta>(*this, rank, Dim3{first.x + in.x, first.y + in.y, first.z + in.z}));
  }
}

Dim3 Cluster::cta_in_cluster(uint32_t rank) const { return unflatten(rank, size); }

Dim3 Cluster::block_of(uint32_t cluster, uint32_t rank) const {
  const Dim3 c = launch.cluster, g = launch.grid;
  const Dim3 first = first_block(launch, unflatten(cluster, {g.x / c.x, g.y / c.y, g.z / c.z}));
  const Dim3 in = unflatten(rank, launch.cluster_of(first));
  return {first.x + in.x, first.y + in.y, first.z + in.z};
}

// Dynamic shared memory follows the static variables at its own alignment (measured: ptxas 13.0).
uint32_t Cluster::shared_bytes(const Launch& launch) {
  uint32_t fixed = launch.function->static_shared_bytes;
  if (!launch.dynamic_shared_bytes) return fixed;
  return round_up(fixed, launch.function->dynamic_shared_align) + launch.dynamic_shared_bytes;
}

Cta& Cluster::cta_of(uint32_t address, uint32_t* offset, const char* who) {
  uint32_t rank = address >> SharedMemory::rank_shift;
  if (rank >= ctas.size())
    throw Fault(
        FaultKind::illegal_address,
        format("%s at shared::cluster address 0x%08x: no CTA has rank %u in a cluster of %zu", who,
               address, rank, ctas.size()));
  *offset = address & ((1u << SharedMemory::rank_shift) - 1);
  return *ctas[rank];
}

Supply::Supply(const Launch& l)
    : launch_(l),
      clusters_{l.grid.x / l.cluster.x, l.grid.y / l.cluster.y, l.grid.z / l.cluster.z},
      count_(volume(clusters_)) {}

// Skips the ids that a preferred cluster covers beyond its first one.
std::optional<Dim3> Supply::take(const Dim3* wanted) {
  for (uint64_t i = next_; i < count_;) {
    const Dim3 id = unflatten(i, clusters_), first = first_block(launch_, id);
    const Dim3 size = launch_.cluster_of(first);
    const bool begins = first.x % size.x == 0 && first.y % size.y == 0 && first.z % size.z == 0;
    if (begins && wanted && volume(*wanted) != volume(size)) return std::nullopt;
    if (!next_.compare_exchange_weak(i, i + 1)) continue;
    if (begins) return id;
    i = next_;
  }
  return std::nullopt;
}

}  // namespace emu
