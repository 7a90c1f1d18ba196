// SPDX-License-Identifier: MIT
// Adds the sums of groups that alternate between k-blocks; each group has a partial sum of every
// token. Each group receives the complete sums of its slice of the tile's tokens. The partial sums
// of the others pass through the drained rings in register order, four sums of a lane at a time: a
// warp's 512 bytes hit all banks.
#pragma once

#include <cstdint>

#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/sums/add.cuh"

namespace nvfp4 {

// `own` receives the sums of the tokens from group * kTokens / kGroups on. They are added in the
// order of the groups, so that the bits of a token do not depend on its place in the tile.
template <typename Tile>
__device__ void add_groups(uint32_t at, uint32_t warp, uint32_t lane,
                           const float (&sums)[Tile::kTokens / 2],
                           float (&own)[Tile::kTokens / 2 / Tile::kGroups]) {
  constexpr uint32_t kOwn = Tile::kTokens / 2 / Tile::kGroups, kOthers = Tile::kGroups - 1;
  constexpr uint32_t kFourBytes = Tile::kConsumersPerStage * 512;  // for all warps of a group
  constexpr uint32_t kPartialBytes = kOwn / 4 * kFourBytes;
  static_assert(kOwn % 4 == 0 && Tile::kGroups * kOthers * kPartialBytes == Tile::kGroupSumsBytes);
  const uint32_t group = warp / Tile::kConsumersPerStage;
  const uint32_t mine = at + warp % Tile::kConsumersPerStage * 512 + lane * 16;
  float4 kept[kOwn / 4];
#pragma unroll
  for (uint32_t to = 0; to < Tile::kGroups; ++to) {
    const uint32_t slot = to * kOthers + (group < to ? group : group - 1);
#pragma unroll
    for (uint32_t i = 0; i < kOwn / 4; ++i) {
      const float* four = sums + to * kOwn + 4 * i;
      const float4 partial = make_float4(four[0], four[1], four[2], four[3]);
      if (to == group) {
        kept[i] = partial;
      } else {
        ptx::st_shared_v4_f32(mine + slot * kPartialBytes + i * kFourBytes, partial);
      }
    }
  }
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();  // sums are ready
#pragma unroll
  for (uint32_t i = 0; i < kOwn / 4; ++i) {
    float4 sum;
#pragma unroll
    for (uint32_t from = 0; from < Tile::kGroups; ++from) {
      const uint32_t slot = group * kOthers + (from < group ? from : from - 1);
      float4 partial = kept[i];
      if (from != group) {
        partial = ptx::ld_shared_v4_f32(mine + slot * kPartialBytes + i * kFourBytes);
      }
      sum = from == 0 ? partial : add(sum, partial);
    }
    own[4 * i] = sum.x;
    own[4 * i + 1] = sum.y;
    own[4 * i + 2] = sum.z;
    own[4 * i + 3] = sum.w;
  }
}

}  // namespace nvfp4
