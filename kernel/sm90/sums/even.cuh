// SPDX-License-Identifier: MIT
// Even shares on Hopper (cta.cuh): the parts of a tile meet in the workspace, and the CTA that
// brings the last one adds them in the order of K. No CTA waits for another.
//
// CTA i and tile t, counted from whole_tiles, have place i + t for the sums of their part. No two
// parts have the same place: where CTA i reaches tile t + 1, CTA i + 1 has no k-block of tile t.
//
// A tile's word of `arrivals` holds the run's nonce and a bit for each part that has arrived. A
// word with another nonce, which is what the workspace contained before, counts as one without any
// bit. Whoever completes the mask writes 0, so a graph can run again with its nonce.
#pragma once

#include <cstdint>

#include "kernel/ptx/atomic.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/sums/add.cuh"

namespace nvfp4 {

// The CTA that has a k-block in its share.
__device__ inline uint32_t owner_of(const Sm90Params& p, uint32_t block) {
  const uint32_t longer = p.even_more * (p.even_each + 1);  // k-blocks of the CTAs with one more
  if (block < longer) return block / (p.even_each + 1);
  return p.even_more + (block - longer) / p.even_each;
}

// A CTA's part of a tile, among all parts of that tile in the order of K.
struct Part {
  uint32_t tile;   // counted from whole_tiles
  uint32_t first;  // CTA of the tile's first part
  uint32_t own, count;

  __device__ Part(const Sm90Params& p, uint32_t index, uint32_t cta) : tile(index - p.whole_tiles) {
    const uint32_t stages = stages_of_k(p);
    first = owner_of(p, tile * stages);
    own = cta - first;
    count = owner_of(p, (tile + 1) * stages - 1) - first + 1;
  }
  __device__ uint64_t bit() const { return 1ull << own; }
  __device__ uint64_t all() const { return (1ull << count) - 1; }
};

// Where a thread has its sums of part i: four of each 8 tokens, two weights, 8 apart, of two
// tokens.
template <typename Tile>
__device__ float4* sums_of_part(const Sm90Params& p, const Part& part, uint32_t i) {
  constexpr uint32_t kFours = Tile::kTokens / 8 * Tile::kConsumerWarps * 32;
  return reinterpret_cast<float4*>(p.parts) +
         (static_cast<uint64_t>(part.first) + i + part.tile) * kFours + threadIdx.x;
}

// Sets the part's bit, beginning with a guess of the word. True if no other bit was missing: the
// word is then 0.
__device__ inline bool arrive(const Sm90Params& p, const Part& part, uint64_t guess) {
  uint64_t seen = guess;
  for (;;) {
    const bool ours = seen >> kSm90NonceShift == p.nonce >> kSm90NonceShift;
    const uint64_t mask = (ours ? seen ^ p.nonce : 0) | part.bit();
    const bool last = mask == part.all();
    const uint64_t old =
        ptx::atom_global_cas_b64(p.arrivals + part.tile, seen, last ? 0 : p.nonce | mask);
    if (old == seen) return last;
    seen = old;
  }
}

// True if all other parts have arrived: the word is then 0. Otherwise nothing changes.
__device__ inline bool all_others_are_there(const Sm90Params& p, const Part& part) {
  const uint64_t others = p.nonce | (part.all() ^ part.bit());
  return ptx::atom_global_cas_b64(p.arrivals + part.tile, others, 0) == others;
}

template <typename Tile>
__device__ void store_part(const Sm90Params& p, const Part& part,
                           const float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  float4* const to = sums_of_part<Tile>(p, part, part.own);
#pragma unroll
  for (uint32_t b = 0; b < Tile::kTokens / 8; ++b) {
    to[b * kThreads] = make_float4(sums[4 * b], sums[4 * b + 1], sums[4 * b + 2], sums[4 * b + 3]);
  }
}

// Adds what the workspace has of part i. The loads for 64 tokens are in flight together, or for 32
// where an entry would spill.
template <typename Tile>
__device__ void add_part(const Sm90Params& p, const Part& part, uint32_t i,
                         float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  constexpr bool kHasRegisters = Tile::kPlain && !(Tile::kScaledD && Tile::kTokens > 128);
  constexpr uint32_t kAtOnce = kHasRegisters ? 8 : 4;
  static_assert(Tile::kTokens % (8 * kAtOnce) == 0);
  const float4* const from = sums_of_part<Tile>(p, part, i);
#pragma unroll
  for (uint32_t first = 0; first < Tile::kTokens / 8; first += kAtOnce) {
    float4 other[kAtOnce];
#pragma unroll
    for (uint32_t b = 0; b < kAtOnce; ++b) {
      other[b] = from[(first + b) * kThreads];
    }
#pragma unroll
    for (uint32_t b = 0; b < kAtOnce; ++b) {
      float* const four = sums + (first + b) * 4;
      const float4 sum = add(make_float4(four[0], four[1], four[2], four[3]), other[b]);
      four[0] = sum.x;
      four[1] = sum.y;
      four[2] = sum.z;
      four[3] = sum.w;
    }
  }
}

// Makes the last part's sums those of the tile. A sum of two does not depend on which is first, so
// the first two parts remain in their registers while the others are added. A later part has to
// wait in the workspace for those before it; each thread reads back what it has stored itself.
template <typename Tile>
__device__ void add_all_parts(const Sm90Params& p, const Part& part,
                              float (&sums)[Tile::kTokens / 2]) {
  const bool remains = part.own < 2;
  if (!remains) {
    store_part<Tile>(p, part, sums);
#pragma unroll
    for (float& sum : sums) sum = -0.0f;  // adding it changes nothing
  }
#pragma unroll 1
  for (uint32_t i = 0; i < part.count; ++i) {
    if (!remains || i != part.own) add_part<Tile>(p, part, i, sums);
  }
}

// A value that is the same in all lanes. If ptxas did not know that, the loop over K would have no
// uniform registers.
__device__ inline bool uniform(bool same) {
  return __shfl_sync(0xFFFFFFFF, static_cast<uint32_t>(same), 0) != 0;
}

// Brings a CTA's part of a tile. True if it is the last one: it is then not in the workspace. All
// consumer warps take part. A part that ends its CTA's share is often the last one, so the CTA asks
// before it stores the sums, which nobody would read. An earlier part seldom is.
template <typename Tile>
__device__ bool is_last_part(const Sm90Params& p, const Part& part, bool ends_share,
                             const float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kThreads = Tile::kConsumerWarps * 32;
  ptx::griddepcontrol_wait();  // earlier grids may use the workspace
  bool last = false;
  if (ends_share) {
    if (threadIdx.x == 0) last = all_others_are_there(p, part);
    __syncwarp();
    if (uniform(ptx::named_barrier_or<kConsumerBarrier, kThreads>(last))) return true;
  }
  store_part<Tile>(p, part, sums);
  ptx::named_barrier_sync<kConsumerBarrier, kThreads>();  // all sums are stored
  if (threadIdx.x == 0) last = arrive(p, part, 0);
  __syncwarp();
  return uniform(ptx::named_barrier_or<kConsumerBarrier, kThreads>(last));
}

}  // namespace nvfp4
