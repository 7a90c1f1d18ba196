// SPDX-License-Identifier: MIT
// NVFP4 GEMM for Hopper (sm_90a): 4-bit weights decoded in registers, fp16 tensor cores,
// fp32 sums.
//
// CONTRACT
//   D[l][m][n] = fp16( alpha * sum_k  A[l][m][k] sa[l][m][k/16]  B[l][n][k] sb[l][n][k/16] )
//   or another epilogue of kernel/common/epilogue.h, if the host asks for it.
//   A cluster of `split` CTAs computes 128 or 64 columns n (weights, B) x kTokens rows m (tokens,
//   A) of one batch l. Each CTA has a K partition of k-blocks of 256; the first ranks have one more
//   if they do not divide evenly. An element times its scale is exact in fp16 (decode.cuh), so a
//   sum differs from Blackwell's only in the order and rounding of its additions. K is a multiple
//   of 16 and at least 16. Nothing outside the described elements influences D: rows beyond M and N
//   are not stored, and beyond K there are zero codes under zero scales.
//
// ROLES  (README.md has a drawing per family; tiles.def says which tile is which)
//   weight warp     starts before all else: barriers, then weights and their scales by TMA
//   consumer warps  in groups that alternate between k-blocks: decode, wgmma, then sums to D
//   token warps     decode tokens (up to 16 per tile); otherwise one thread copies the tokens that
//                   nvfp4_tokens_sm90 has decoded, or fp16 or bf16 tokens of A
#include "kernel/common/clocks.cuh"
#include "kernel/common/prefetch_c.cuh"
#include "kernel/common/some_entries.h"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/group_tokens.cuh"
#include "kernel/sm90/grouped.cuh"
#include "kernel/sm90/linear_scales.cuh"
#include "kernel/sm90/load.cuh"
#include "kernel/sm90/multiply.cuh"
#include "kernel/sm90/multiply_a16.cuh"
#include "kernel/sm90/multiply_packed.cuh"
#include "kernel/sm90/params.h"
#include "kernel/sm90/sums/even.cuh"
#include "kernel/sm90/sums/exchange.cuh"
#include "kernel/sm90/sums/fields.cuh"
#include "kernel/sm90/sums/gate_rows.cuh"
#include "kernel/sm90/sums/gated.cuh"
#include "kernel/sm90/sums/parts.cuh"
#include "kernel/sm90/sums/push.cuh"
#include "kernel/sm90/sums/reduce.cuh"
#include "kernel/sm90/sums/rows.cuh"
#include "kernel/sm90/sums/scaled.cuh"
#include "kernel/sm90/tile.h"
#include "kernel/sm90/tiny/tiny.cuh"
#include "kernel/sm90/tiny/tokens.cuh"
#include "kernel/sm90/token_warp.cuh"
#include "kernel/sm90/tokens_kernel.cuh"
#include "kernel/sm90/wide/tokens.cuh"

namespace nvfp4 {

// Calls f with the number of CTAs along K as a constant.
template <uint32_t kCtas>
struct Split {
  static constexpr uint32_t kValue = kCtas;
};
template <typename Tile, typename F>
__device__ void with_split(uint32_t split, const F& f) {
  if constexpr (Tile::kMaxSplit == 8) {
    if (split == 3) return f(Split<3>());
    if (split == 8) return f(Split<8>());
  }
  switch (split) {
    case 1: return f(Split<1>());
    case 2: return f(Split<2>());
    default: return f(Split<4>());
  }
}

// Barriers before the first wait: the weight warp has initialised the mbarriers, and consumers of
// tiny tiles have cleared memory. The weight warp has loads to issue and does not wait. There are
// two barriers because synccheck requires all threads of a barrier to use one instruction.
template <typename Tile>
struct Start {
  static constexpr uint32_t kInitThreads = 32 * (Tile::kConsumerWarps + 1);
  static constexpr uint32_t kClearThreads = Tile::kThreads - 32;  // all except the weight warp's

  static __device__ void weight_warp() { ptx::named_barrier_arrive<kInitBarrier, kInitThreads>(); }
  static __device__ void consumer_warp() {
    ptx::named_barrier_sync<kInitBarrier, kInitThreads>();
    ptx::named_barrier_arrive<kClearBarrier, kClearThreads>();
  }
  static __device__ void token_warp() { ptx::named_barrier_sync<kClearBarrier, kClearThreads>(); }
};

// CTAs that send each other sums synchronise first, so that the barriers of all exist. Every warp
// waits, and does so before its loop. Otherwise compute-sanitizer's tools do not end:
//   racecheck  if one warp waits before its loop, the others after theirs, or one leaves without
//   memcheck   if the weight warp waits after the loop of its one thread
template <typename Tile>
__device__ bool meets_cluster(const Cta90<Tile>& cta) {
  return Tile::kPushesSums && cta.p.split > 1;
}
template <typename Tile>
__device__ void arrive_at_cluster(const Cta90<Tile>& cta) {
  if (meets_cluster(cta)) ptx::cluster_arrive_relaxed();
}
template <typename Tile>
__device__ void wait_for_cluster(const Cta90<Tile>& cta) {
  if (meets_cluster(cta)) ptx::cluster_wait_acquire();
}

template <typename Tile>
__device__ void weight_warp(const Cta90<Tile>& cta, uint32_t lane) {
  const bool leads = ptx::elect_sync();
  if (leads) start_weights(cta);
  __syncwarp();
  Start<Tile>::weight_warp();
  arrive_at_cluster(cta);  // its barriers are initialised
  if (kStartsLinear<Tile> && has_linear_weight_scales<Tile>(cta.p)) start_linear_scales(cta, lane);
  wait_for_cluster(cta);
  if (has_linear_weight_scales<Tile>(cta.p)) {
    load_remaining_linear(cta, leads, lane);
  } else if (leads) {
    load_remaining_weights(cta);
  }
}

// Records that a consumer warp has stored everything.
__device__ inline void note_end(uint32_t lane) {
  if (lane != 0) return;
  note_last_clock(kClock_last_store);
  note_last_clock(kClock_end_ns);
}

// Prefetches C for a CTA's slice of a tile to L2 while the tile is multiplied. For the first tile
// an idle warp does this. With few tokens the prefetch took longer than it saved.
template <typename Tile>
__device__ void ask_for_c(const Cta90<Tile>& cta, uint32_t thread, uint32_t threads) {
  if (Tile::kPlain && !Tile::kFields) return;
  if (Tile::kGated || Tile::kTokens < (Tile::kFields ? 32 : kManyTokens)) return;
  const bool shared = cta.shared();
  const uint32_t n = cta.tile.weight_tile * Tile::kColumnsOfD;
  const uint32_t m = cta.tile.token_tile * Tile::kTokens +
                     (shared ? cta.rank * slice_of(Tile::kTokens, cta.p.split) : 0);
  const uint32_t m_end = min(m + (shared ? cta.own_tokens() : Tile::kTokens), cta.p.m);
  if (m >= m_end) return;
  const CRegion region{cta.tile.batch, m, m_end, n, min(n + Tile::kColumnsOfD, cta.p.n)};
  prefetch_c(cta.p, region, thread, threads);
}

// Prefetches what D's epilogue reads besides the sums.
template <typename Tile>
__device__ void ask_for_terms(const Cta90<Tile>& cta, uint32_t lane) {
  if constexpr (Tile::kGated && Tile::kPlain) {
    ask_for_gate_terms(cta, lane);
  } else {
    ask_for_column_terms(cta, lane);
  }
}

// ---- Wide tiles --------------------------------------------------------------------------------

// These functions store the sums, or return those that the general epilogue takes.

// Writes the sums of few tokens where they are added.
template <typename Tile>
__device__ void put_few_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                             const float (&sums)[Tile::kTokens / 2]) {
  if (!cta.shared()) {
    const uint32_t group = warp / Tile::kConsumersPerStage;
    return put_sums<Tile>(sums, cta.smem + Tile::kSumsAt + group * Tile::kPartialBytes, warp, lane);
  }
  with_split<Tile>(cta.p.split, [&](auto split) {
    if constexpr (split.kValue > 1) push_sums<Tile, split.kValue>(cta, warp, lane, sums);
  });
}

// Adds the sums of few tokens to those of other CTAs, or of the CTA's other groups, and stores
// them.
template <typename Tile>
__device__ SumRows exchange_few_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                     const float (&sums)[Tile::kTokens / 2]) {
  if constexpr (kGatesSums<Tile>) {
    put_few_sums(cta, warp, lane, sums);
    store_few_gated_sums(cta, warp, lane);
    return {};
  }
  const FourTerms<Tile> terms = terms_of_lane(cta, lane);
  if (cta.shared()) {
    SumRows rows;
    with_split<Tile>(cta.p.split, [&](auto split) {
      if constexpr (split.kValue > 1) {
        push_sums<Tile, split.kValue>(cta, warp, lane, sums);
        rows = store_pushed_sums<Tile, split.kValue>(cta, warp, lane, terms);
      }
    });
    return rows;
  }
  put_sums<Tile>(sums,
                 cta.smem + Tile::kSumsAt + warp / Tile::kConsumersPerStage * Tile::kPartialBytes,
                 warp, lane);
  return store_sums<Tile, 1>(cta, warp, lane, terms);
}

// Stores the sums of a group's slice of the tile's tokens, of which it has the complete sums; with
// split-K it adds those of other CTAs first. The general epilogue takes the sums from that place in
// the drained rings, including those of a CTA's last tile with unsplit sums.
template <typename Tile, uint32_t kSums>
__device__ SumRows exchange_group_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                       float (&sums)[kSums]) {
  if constexpr (!Tile::kWholeSums && Tile::kScaledD) {
    if (!splits_k<Tile>(cta.p)) {
      store_scaled_sums<Tile>(cta.p, cta.tile, cta.smem + Tile::kRowsAt, warp, lane, sums);
      return {};
    }
  } else if constexpr (!Tile::kWholeSums && !kGatesSums<Tile> && !Tile::kFields) {
    // With kWholeSums, unsplit sums have been stored.
    if (!splits_k<Tile>(cta.p) && !has_general_epilogue<Tile>(cta.p)) {
      store_rows<Tile>(cta.p, cta.tile, cta.smem + Tile::kRowsAt, warp, lane, sums);
      return {};
    }
  }
  const uint32_t token = warp / Tile::kConsumersPerStage * kSums * 2;
  put_sums<Tile>(sums, cta.smem + Tile::kSumsAt + token * Tile::kSumRowBytes, warp, lane);
  if constexpr (kGatesSums<Tile> && Tile::kPlain) {
    store_gated_slice(cta, warp, lane);
    return {};
  } else if constexpr (kGatesSums<Tile>) {
    if (!has_general_epilogue<Tile>(cta.p)) {
      store_gated_slice(cta, warp, lane);
      return {};
    }
  }
  if (Tile::kWholeSums ? has_general_epilogue<Tile>(cta.p) && !cta.shared()
                       : !splits_k<Tile>(cta.p)) {
    return rows_of_whole_sums<Tile>(cta, warp, lane);
  }
  const FourTerms<Tile> terms = terms_of_lane(cta, lane);
  SumRows rows;
  with_split<Tile>(cta.p.split, [&](auto split) {
    if constexpr (split.kValue > 1) rows = store_sums<Tile, split.kValue>(cta, warp, lane, terms);
  });
  return rows;
}

template <typename Tile>
__device__ SumRows exchange_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                 float (&sums)[Tile::kTokens / 2]) {
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();  // rings are drained
  if constexpr (Tile::kGroups == 1) {
    return exchange_group_sums(cta, warp, lane, sums);
  } else {
    float own[Tile::kTokens / 2 / Tile::kGroups];
    add_groups<Tile>(cta.smem, warp, lane, sums, own);
    return exchange_group_sums(cta, warp, lane, own);
  }
}

template <typename Tile>
__device__ void store_whole_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                 float (&sums)[Tile::kTokens / 2]) {
  const uint32_t rows = cta.smem + Tile::kRowsAt;
  if constexpr (Tile::kGated && !Tile::kPlain) {
    store_gated_rows<Tile>(cta.p, cta.tile, rows, warp, lane, sums);
  } else if constexpr (Tile::kScaledD) {
    store_scaled_sums<Tile>(cta.p, cta.tile, rows, warp, lane, sums);
  } else if constexpr (Tile::kFields) {
    store_fields_of_sums<Tile>(cta.p, cta.tile, rows, warp, lane, sums);
  } else if (!has_general_epilogue<Tile>(cta.p)) {
    store_rows<Tile>(cta.p, cta.tile, rows, warp, lane, sums);
  } else {
    store_general_rows<Tile>(cta.p, cta.tile, rows, warp, lane, sums);
  }
}

__device__ inline uint32_t warp_number() { return __shfl_sync(0xFFFFFFFF, threadIdx.x / 32, 0); }

// Rows of C that a thread loads at once. Few tokens' sums are one row, and code for more would only
// make the kernel longer to fetch.
template <typename Tile>
constexpr uint32_t kRowsOfC = Tile::kTokens < kManyTokens ? 1 : 4;

// Stores to D the sums that were added in shared memory.
template <typename Tile>
__device__ void store_met_sums(const Sm90Params& p, const SumRows& rows) {
  if constexpr (Tile::kGated) {
    store_gated_90<Tile>(p, rows);
  } else if constexpr (Tile::kScaledD) {
    store_scaled_rows<Tile>(p, rows);
  } else if constexpr (Tile::kFields && Tile::kPushesSums) {
    store_fields_of_one_row<Tile>(p, rows);
  } else if constexpr (Tile::kFields) {
    store_fields_of_rows<Tile>(p, rows);
  } else if constexpr (Tile::kPushesSums) {
    store_general_of_few<Tile>(p, rows);
  } else {
    store_general_90<Tile, kRowsOfC<Tile>>(p, rows);
  }
}

// Stores the sums of a tile to D. With kWholeSums the tile must be unsplit.
template <typename Tile>
__device__ void finish_tile(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                            float (&sums)[Tile::kTokens / 2]) {
  if constexpr (Tile::kWholeSums) {
    return store_whole_sums<Tile>(cta, warp, lane, sums);
  } else if constexpr (Tile::kPushesSums) {
    store_met_sums<Tile>(cta.p, exchange_few_sums(cta, warp, lane, sums));
  } else {
    store_met_sums<Tile>(cta.p, exchange_sums(cta, warp, lane, sums));
  }
}

template <typename Tile>
__device__ void multiply_natural(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                 WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  if constexpr (Tile::kPacked) {
    multiply_packed(cta, warp, lane, position, sums);
  } else {
    multiply_a16(cta, warp, lane, position, sums);
  }
}

// Computes the CTA's values anew after the loop over K, so that the loop can use their registers.
// If the loop decodes in the natural order of K, the numbers of warp and tile are computed anew,
// too.
template <typename Tile>
__device__ void consumer_warp(const Sm90Params& p, uint32_t smem, uint32_t warp, uint32_t lane) {
  WidePosition<Tile> position(warp / Tile::kConsumersPerStage);
  uint32_t index = first_tile<Tile>(p);
  uint32_t first = 0;  // first of the tile's k-blocks, counted from the CTA's first one
  [[maybe_unused]] OwnPart<Tile> part;
  for (;;) {
    float sums[Tile::kTokens / 2];
    if constexpr ((kTakesEvenShares<Tile> && kTakesUe8m0<Tile>) || Tile::kAddsOwnParts) {
      // ptxas would take the last tile's sums for operands of both loops, and wait for each wgmma.
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    const Cta90<Tile> cta = piece_of<Tile>(make_cta<Tile>(p, smem, index), part);
    if constexpr (Tile::kNaturalTokens) {
      multiply_natural(cta, warp, lane, position, sums);
      warp = warp_number();
      if (!Tile::kSeveralTiles) index = first_tile<Tile>(p);
    } else {
      multiply(cta, warp, lane, position, sums);
    }
    const Cta90<Tile> again = piece_of<Tile>(make_cta<Tile>(p, smem, index), part);
    if constexpr (Tile::kAddsOwnParts) {
      if (!part.completes_tile(again, sums)) continue;
    }
    if constexpr (kTakesEvenShares<Tile>) {
      if (again.has_part()) {
        const Part part(p, index, own_index<Tile>());
        const uint32_t next = next_tile<Tile>(p, index);
        if (!is_last_part<Tile>(p, part, next == kNoTile, sums)) {
          if (next == kNoTile) return;
          index = next;
          continue;
        }
        add_all_parts<Tile>(p, part, sums);
      }
    }
    if constexpr (Tile::kWholeSums) {
      // The last tile. If ptxas knows that before the sums are added, it keeps no registers for the
      // next tile.
      if (again.shared() ||
          (has_general_epilogue<Tile>(p) && next_tile<Tile>(p, index) == kNoTile)) {
        const SumRows rows = exchange_sums(again, warp, lane, sums);
        return store_met_sums<Tile>(p, rows);
      }
    }
    finish_tile(again, warp, lane, sums);
    if constexpr (!Tile::kSeveralTiles) return;
    index = next_tile<Tile>(p, index);
    if (index == kNoTile) return;
    ask_for_c(make_cta<Tile>(p, smem, index), 32 * warp + lane, 32 * Tile::kConsumerWarps);
    // Some lanes have asked: the loop over K of 128x128 would have no uniform registers.
    if constexpr (Tile::kFields) warp = warp_number();
    if constexpr (Tile::kGroups > 1) {
      __syncwarp();  // some lanes have stored
      // The place of the sums is free again, and no group reaches a k-block before another group
      // has used the previous contents of its stage, which the parity cannot show (wide/tile.h).
      ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
      first += again.count;
      position = WidePosition<Tile>::at(first, warp / Tile::kConsumersPerStage);
    }
  }
}

template <typename Tile>
__device__ void wide_roles(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  if (warp < Tile::kConsumerWarps) {
    ptx::setmaxnreg_inc<Tile::kConsumerRegisters>();
    if constexpr (Tile::kWorkspaceTokens) {
      clear_rows_beyond_m(cta, threadIdx.x, 32 * Tile::kConsumerWarps);
    }
    Start<Tile>::consumer_warp();
    arrive_at_cluster(cta);
    // After both arrivals: neither the copies of tokens nor the weight warp wait for it.
    if constexpr (Tile::kNaturalTokens) clear_rows_beyond_box(cta, threadIdx.x);
    wait_for_cluster(cta);
    consumer_warp<Tile>(cta.p, cta.smem, warp, lane);
    note_end(lane);
    return;
  }
  ptx::setmaxnreg_dec<Tile::kLoaderRegisters>();
  if (warp == Tile::kWeightWarp) {
    weight_warp(cta, lane);
  } else if constexpr (Tile::kDecodesTokens) {
    arrive_at_cluster(cta);      // before the wait: the weight warp fills its ring meanwhile
    ptx::griddepcontrol_wait();  // tokens, and other data that earlier grids write
    TokenWarp<WideTokens<Tile>> tokens(cta, warp - Tile::kFirstTokenWarp, lane);
    tokens.start();
    Start<Tile>::token_warp();
    wait_for_cluster(cta);
    if (warp == Tile::kFirstTokenWarp) ask_for_terms(cta, lane);
    tokens.run();
  } else {
    arrive_at_cluster(cta);
    Start<Tile>::token_warp();
    wait_for_cluster(cta);
    // A warp without loads leaves first. If code followed, ptxas would not know that the branch of
    // the single thread is the last one, and would move the addresses of its copies out of uniform
    // registers.
    if (warp == Tile::kFirstTokenWarp + 1) {
      ask_for_c(cta, lane, 32);
      return ask_for_terms(cta, lane);
    }
    if (warp == Tile::kFirstTokenWarp && ptx::elect_sync()) {
      ptx::griddepcontrol_wait();  // tokens or their pre-pass, and other data of earlier grids
      load_tokens(cta);
    }
  }
}

// ---- Grouped products --------------------------------------------------------------------------

// Works like consumer_warp(), for the tiles of a list. All of them have the same number of
// k-blocks.
template <typename Tile>
__device__ void grouped_consumer_warp(const Sm90Params& p, uint32_t smem, uint32_t lane) {
  for (uint32_t number = 0;; ++number) {
    float sums[Tile::kTokens / 2];
    Cta90<Tile> cta = grouped_cta<Tile>(p, smem);
    if (!await_listed(cta, number)) return;
    uint32_t warp = warp_number();
    auto position = WidePosition<Tile>::at(number * cta.count, warp / Tile::kConsumersPerStage);
    if constexpr (Tile::kNaturalTokens) {
      multiply_natural(cta, warp, lane, position, sums);
      warp = warp_number();
    } else {
      multiply(cta, warp, lane, position, sums);
    }
    Cta90<Tile> again = grouped_cta<Tile>(p, smem);
    read_listed(again, number);
    finish_tile(again, warp, lane, sums);
    if (!Tile::kWholeSums) ptx::fence_proxy_async_shared_cta();  // TMA writes tokens over the sums
    __syncwarp();
    give_back_listed(again, number);
    if constexpr (Tile::kGroups > 1) {
      ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();  // see consumer_warp
    }
  }
}

template <typename Tile>
__device__ void grouped_roles(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  if (warp < Tile::kConsumerWarps) {
    ptx::setmaxnreg_inc<Tile::kConsumerRegisters>();
    Start<Tile>::consumer_warp();
    grouped_consumer_warp<Tile>(cta.p, cta.smem, lane);
    note_end(lane);
    return;
  }
  ptx::setmaxnreg_dec<Tile::kLoaderRegisters>();
  if (warp == Tile::kWeightWarp) {
    if (ptx::elect_sync()) start_grouped(cta);
    __syncwarp();
    Start<Tile>::weight_warp();
    grouped_weight_warp(cta, lane);
  } else {
    const bool lists = warp == Tile::kFirstTokenWarp + 1;
    TileLister<Tile> lister{cta.p};
    if (lists) lister.begin();
    // One instruction for all warps: compute-sanitizer takes two for threads that diverge.
    Start<Tile>::token_warp();
    if (lists) {
      lister.run(cta.smem);
    } else if (warp == Tile::kFirstTokenWarp) {
      grouped_token_warp(cta, lane);
    }
  }
}

// ---- Tiny tiles --------------------------------------------------------------------------------

template <typename Tile>
__device__ SumRows store_shared_tiny_sums(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                          const FourTerms<Tile>& terms) {
  SumRows rows;
  if (cta.rank != 0) return rows;
  ptx::mbarrier_wait_cluster(cta.sums_full(), 0);
  with_split<Tile>(cta.p.split, [&](auto split) {
    if constexpr (split.kValue > 1)
      rows = store_tiny_sums<Tile, split.kValue>(cta, 0, warp, lane, terms);
  });
  return rows;
}

// All groups synchronise between writing and storing the sums. So a group that continues with the
// next tile finds that the others have used its stages' contents, and that the sums of the tile
// before the last are free.
template <typename Tile>
__device__ void tiny_consumer_warp(const Sm90Params& p, uint32_t smem, uint32_t warp,
                                   uint32_t lane) {
  uint32_t index = first_tile<Tile>(p);
  uint32_t first = 0;  // first of the tile's k-blocks, counted from the CTA's first one
  for (uint32_t tile = 0;; ++tile) {
    const Cta90<Tile> cta = make_cta<Tile>(p, smem, index);
    TinySums<Tile> sums;
    multiply_tiny(cta, first, warp, lane, sums);
    const uint32_t partial = cta.shared() ? cta.rank * Tile::kPartials : own_partial<Tile>(tile);
    put_tiny_sums<Tile>(cta, partial, warp, lane, sums);
    ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
    if constexpr (kGatesSums<Tile>) {
      store_tiny_gated_sums(cta, partial, warp, lane);
    } else {
      const FourTerms<Tile> terms = terms_of_lane(cta, lane);
      const SumRows rows = cta.shared() ? store_shared_tiny_sums(cta, warp, lane, terms)
                                        : store_tiny_sums<Tile, 1>(cta, partial, warp, lane, terms);
      if constexpr (Tile::kFields) {
        store_fields_of_one_row<Tile>(p, rows);
      } else {
        store_general_90<Tile, 1>(p, rows);
      }
    }
    index = next_tile<Tile>(p, index);
    if (index == kNoTile) return;
    first += cta.count;
    __syncwarp();  // some lanes have stored
  }
}

template <typename Tokens, typename Tile>
__device__ void tiny_token_warp(const Cta90<Tile>& cta, uint32_t number, uint32_t lane) {
  TokenWarp<Tokens> tokens(cta, number, lane);
  arrive_at_cluster(cta);
  ptx::griddepcontrol_wait();  // tokens, and other data that earlier grids write
  tokens.start();
  Start<Tile>::token_warp();
  wait_for_cluster(cta);
  if (number == 0) ask_for_terms(cta, lane);
  tokens.run();
}

template <typename Format, typename Tile>
__device__ void tiny_token_role(const Cta90<Tile>& cta, uint32_t number, uint32_t lane) {
  if (has_linear_token_scales<Tile>(cta.p)) {
    tiny_token_warp<TinyTokens<Tile, Format, true>>(cta, number, lane);
  } else {
    tiny_token_warp<TinyTokens<Tile, Format, false>>(cta, number, lane);
  }
}

template <typename Tile>
__device__ void tiny_roles(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane) {
  if (warp < Tile::kConsumerWarps) {
    clear_operands(cta, threadIdx.x, 32 * Tile::kConsumerWarps);
    Start<Tile>::consumer_warp();
    arrive_at_cluster(cta);
    wait_for_cluster(cta);
    tiny_consumer_warp<Tile>(cta.p, cta.smem, warp, lane);
    note_end(lane);
    return;
  }
  if (warp == Tile::kWeightWarp) {
    weight_warp(cta, lane);
  } else {
    const uint32_t number = warp - Tile::kFirstTokenWarp;
    if (has_ue8m0_scales<Tile>(cta.p)) {
      tiny_token_role<TinyUe8m0>(cta, number, lane);
    } else {
      tiny_token_role<TinyNvfp4>(cta, number, lane);
    }
  }
}

// ---- Dispatch ----------------------------------------------------------------------------------

template <typename Tile>
__device__ void gemm_sm90(const Sm90Params& p) {
  extern __shared__ __align__(1024) uint8_t shared[];
  const uint32_t warp = warp_number();
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t smem = ptx::shared_address(shared);
  if constexpr (Tile::kGrouped) {
    grouped_roles(grouped_cta<Tile>(p, smem), warp, lane);
  } else {
    const Cta90<Tile> cta = make_cta<Tile>(p, smem, first_tile<Tile>(p));
    if constexpr (Tile::kBlockSums) {
      tiny_roles(cta, warp, lane);
    } else {
      wide_roles(cta, warp, lane);
    }
  }
}

template <typename Tile>
using Sm90ParamsOf = typename Sm90Argument<Tile::kGrouped, Tile::kGated>::Params;

}  // namespace nvfp4

// An entry states a number of registers. With a bound on threads instead, ptxas would use every
// register.
#define ENTRY(label, operation)                                                          \
  NVFP4_ENTRY(sm90, label, operation,                                                    \
              __maxnreg__(nvfp4::Sm90_##operation<nvfp4::Sm90Tile_##label>::kRegisters), \
              nvfp4::Sm90ParamsOf<nvfp4::Sm90_##operation<nvfp4::Sm90Tile_##label>>,     \
              nvfp4::gemm_sm90<nvfp4::Sm90_##operation<nvfp4::Sm90Tile_##label>>(gemm_of(params)))
#include "kernel/sm90/entries.def"

extern "C" __global__ void __launch_bounds__(nvfp4::kTokenKernelThreads,
                                             nvfp4::kRegistersPerSm / nvfp4::kTokenKernelThreads /
                                                 nvfp4::kTokenKernelRegisters)
    nvfp4_tokens_sm90(const __grid_constant__ nvfp4::Sm90Params params) {
  nvfp4::decode_tokens_to_workspace(params);
}

extern "C" __global__ void __launch_bounds__(nvfp4::kTokenKernelThreads,
                                             nvfp4::kRegistersPerSm / nvfp4::kTokenKernelThreads /
                                                 nvfp4::kTokenKernelRegisters)
    nvfp4_group_tokens_sm90(const __grid_constant__ nvfp4::Sm90GroupedParams params) {
  nvfp4::decode_group_tokens(params.gemm, params.groups);
}
