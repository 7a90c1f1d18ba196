// SPDX-License-Identifier: MIT
// The sums of groups that have taken turns with the stages: a part of each from every group. Of the
// tile's tokens each group gets its share, whole. The parts of the others go through the drained
// rings as they lie in registers, four sums of a lane at a time: a warp's 512 bytes hit all banks.
#pragma once

#include <cstdint>

#include "cta_sm90.cuh"
#include "epilogue_sm90.cuh"
#include "ptx_sync.cuh"

namespace nvfp4 {

// own: the sums of tokens group * kTokens / kGroups and on. Its own part first, then the others'.
template <typename Tile>
__device__ void add_groups(uint32_t at, uint32_t warp, uint32_t lane,
                           const float (&sums)[Tile::kTokens / 2],
                           float (&own)[Tile::kTokens / 2 / Tile::kGroups]) {
  constexpr uint32_t kOwn = Tile::kTokens / 2 / Tile::kGroups, kOthers = Tile::kGroups - 1;
  constexpr uint32_t kFourBytes = Tile::kConsumersPerStage * 512;  // of all warps of a group
  constexpr uint32_t kPartBytes = kOwn / 4 * kFourBytes;
  static_assert(kOwn % 4 == 0 && Tile::kGroups * kOthers * kPartBytes == Tile::kGroupSumsBytes);
  const uint32_t group = warp / Tile::kConsumersPerStage;
  const uint32_t mine = at + warp % Tile::kConsumersPerStage * 512 + lane * 16;
#pragma unroll
  for (uint32_t to = 0; to < Tile::kGroups; ++to) {
    const float* part = sums + to * kOwn;
    if (to == group) {
#pragma unroll
      for (uint32_t i = 0; i < kOwn; ++i) own[i] = part[i];
      continue;
    }
    const uint32_t from = group < to ? group : group - 1;
#pragma unroll
    for (uint32_t i = 0; i < kOwn; i += 4) {
      ptx::st_shared_v4_f32(mine + (to * kOthers + from) * kPartBytes + i / 4 * kFourBytes,
                            make_float4(part[i], part[i + 1], part[i + 2], part[i + 3]));
    }
  }
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();  // all parts are there
#pragma unroll
  for (uint32_t from = 0; from < kOthers; ++from) {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; i += 4) {
      const float4 part =
          ptx::ld_shared_v4_f32(mine + (group * kOthers + from) * kPartBytes + i / 4 * kFourBytes);
      own[i] = __fadd_rn(own[i], part.x);
      own[i + 1] = __fadd_rn(own[i + 1], part.y);
      own[i + 2] = __fadd_rn(own[i + 2], part.z);
      own[i + 3] = __fadd_rn(own[i + 3], part.w);
    }
  }
}

}  // namespace nvfp4
