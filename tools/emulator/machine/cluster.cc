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

}  // namespace

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
    : launch(l), id(where), async(settings().order, seed), barrier(*this) {
  uint32_t size = uint32_t(volume(launch.cluster));
  for (uint32_t rank = 0; rank < size; ++rank) {
    Dim3 in = cta_in_cluster(rank), c = launch.cluster;
    ctas.push_back(std::make_unique<Cta>(
        *this, rank, Dim3{id.x * c.x + in.x, id.y * c.y + in.y, id.z * c.z + in.z}));
  }
}

Dim3 Cluster::cta_in_cluster(uint32_t rank) const { return unflatten(rank, launch.cluster); }

Dim3 Cluster::block_of(uint32_t cluster, uint32_t rank) const {
  const Dim3 c = launch.cluster, g = launch.grid;
  const Dim3 at = unflatten(cluster, {g.x / c.x, g.y / c.y, g.z / c.z}), in = cta_in_cluster(rank);
  return {at.x * c.x + in.x, at.y * c.y + in.y, at.z * c.z + in.z};
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
    : clusters_{l.grid.x / l.cluster.x, l.grid.y / l.cluster.y, l.grid.z / l.cluster.z},
      count_(volume(clusters_)) {}

std::optional<Dim3> Supply::take() {
  uint64_t i = next_.fetch_add(1);
  if (i >= count_) return std::nullopt;
  return unflatten(i, clusters_);
}

}  // namespace emu
