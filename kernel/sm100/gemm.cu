// SPDX-License-Identifier: MIT
// NVFP4 GEMM for Blackwell (sm_100a; the same PTX for the family sm_100f).
//
// CONTRACT
//   D[l][m][n] = fp16( alpha * sum_k  A[l][m][k] sa[l][m][k/16]  B[l][n][k] sb[l][n][k/16] )
//   or another epilogue of kernel/common/epilogue.h, where the host asks for it.
//   One CTA computes 128 columns n (weights, B) x kTokens rows m (tokens, A) of one batch l over
//   all of K. With split-K, 2 or 4 CTAs of a cluster take consecutive K partitions, whose sums are
//   added in that order (split.cuh). A pair of CTAs computes tiles of 256 columns, one tile after
//   the other (pair.cuh).
//   K is a multiple of 16 and at least 16. Nothing outside A, B and their scales influences D. TMA
//   fills rows beyond M and N with zeros. The MMA multiplies these rows by whatever scales the
//   padding holds, but their sums are never stored. The last k-block has only as many steps of 64
//   as K needs. If K ends inside the last step, TMA fills the missing codes with zeros, and
//   k_tail.cuh clears the missing scales.
//
// PIPELINE
//   Warps have three roles. Inside the loop over k-blocks they synchronise by mbarriers alone. s is
//   a stage of the ring, and r counts the rounds through the ring.
//
//   TMA warp   --- bytes --->  full[s]  phase r  --->  MMA thread
//   (1 thread) <-- commit ---  empty[s] phase r  <---  (1 thread)  --- commit ---> accumulator_full
//                                                                                        |
//                                   epilogue warps 2..9  <---  phase 0  <----------------+
//
//   full[s] counts 1 arrival (expect_tx) and the stage's bytes. empty[s] counts 1 arrival, by
//   tcgen05.commit. If a stage is not filled again, no commit arrives at its empty[s].
//   accumulator_full counts 1 arrival, by the last commit.
//   The thread that initialises the barriers loads the first k-block of every stage (round r = 0)
//   before anything else happens, and waits for no empty barrier: full[0], the loads of stage 0,
//   all other barriers, the other stages. In round r >= 1 it first waits for phase r - 1 of
//   empty[s].
#include "kernel/common/clocks.cuh"
#include "kernel/common/some_entries.h"
#include "kernel/ptx/cluster.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tcgen05.cuh"
#include "kernel/ptx/tma.cuh"
#include "kernel/sm100/cta.cuh"
#include "kernel/sm100/k_tail.cuh"
#include "kernel/sm100/load.cuh"
#include "kernel/sm100/mma.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/store.cuh"
#include "kernel/sm100/tile.h"

namespace nvfp4 {

// ---- A CTA --------------------------------------------------------------------------------------

// Prefetches every tensor map. Without this, the first load through a map would stall until the map
// is cached. A thread that has nothing else to do yet does it as the CTA's first instruction.
template <typename Tile>
__device__ void prefetch_maps(const Sm100Params& p) {
  ptx::prefetch_tensormap(&p.weights);
  ptx::prefetch_tensormap(&p.tokens);
  if (Tile::kGated) ptx::prefetch_tensormap(&gated_params(p).weights2);
  if (Tile::kCtas == 2) {
    ptx::prefetch_tensormap(&p.weight_scale_map);
    ptx::prefetch_tensormap(&p.token_scale_map);
  }
}

// Whether one thread issues the first loads before all else: it initialises one barrier before, and
// finds its tile without the other lanes.
template <typename Tile>
constexpr bool kLoadsFirst = !Tile::kAllBarriersFirst && !Tile::kGrouped;

// Prefetches the tensor maps, initialises the first barrier and, if nothing else has to come before
// them, issues the first loads. The order of the two conditions saves clocks: the election and the
// thread's number arrive together.
template <typename Tile>
__device__ void begin(const Sm100Params& p, uint32_t smem) {
  const uint32_t thread = threadIdx.x;
  const bool loads = ptx::elect_sync() && thread / 32 == Tile::kProducerWarp;
  if (loads) {
    note_clock(kClock_begin_ns);
    note_clock(kClock_start);
    if constexpr (!Tile::kAllBarriersFirst) {
      init_first_barrier(Addresses<Tile>{smem});
      publish_barriers();
    }
    if constexpr (kLoadsFirst<Tile>) load_first_k_blocks(make_cta<Tile>(p, smem));
  } else if (thread == Tile::kThreads - 1) {
    prefetch_maps<Tile>(p);
  }
}

// Makes the list of a grouped product. An earlier grid may still be writing the rows of the groups.
template <typename Tile>
__device__ void list_groups(const Sm100Params& p, uint32_t smem, uint32_t warp) {
  ptx::griddepcontrol_wait();
  if (warp == Tile::kMmaWarp) group_list<Tile>(p, {smem}).make();
  __syncthreads();
}

// Initialises the barriers, issues the first loads unless begin() has done so, allocates tensor
// memory and returns its address. On return, barriers and tensor memory are ready in every CTA of
// the cluster.
template <typename Tile>
__device__ uint32_t set_up(const Cta<Tile>& cta, uint32_t warp) {
  if constexpr (Tile::kAllBarriersFirst) {
    if (warp == Tile::kProducerWarp && ptx::elect_sync()) {
      init_first_barrier(cta.at);
      init_other_barriers(cta);
      publish_barriers();
    }
  }
  // The peer's loads and commits signal barriers of this CTA. So neither CTA of a pair continues
  // before the barriers of both are initialised. Past this point both CTAs are running. This
  // matters for tcgen05.alloc: it may wait until both CTAs execute it, and now that wait is short.
  if constexpr (Tile::kCtas == 2) {
    __syncwarp();
    ptx::cluster_sync_relaxed();
  }
  if (warp == Tile::kProducerWarp) {
    if (!kLoadsFirst<Tile> && ptx::elect_sync()) load_first_k_blocks(cta);
  } else if (warp == Tile::kMmaWarp) {
    ptx::tcgen05_alloc<Tile::kCtaGroup, Tile::kColumnsAllocated>(cta.at.tmem_address());
    ptx::tcgen05_relinquish_alloc_permit<Tile::kCtaGroup>();
    ptx::tcgen05_fence_before_thread_sync();
  }
  __syncthreads();  // publishes the barriers and the tensor memory address
  // Waits until the barriers of every CTA exist (fence.mbarrier_init has published them), so that
  // CTAs may signal each other. After this, both CTAs of a pair also have their tensor memory. The
  // arrival is relaxed: it orders no memory access (PTX ISA 9.7.16.6.3), and release semantics
  // would make each warp wait for its CTA's loads.
  if (cta.in_cluster()) ptx::cluster_sync_relaxed();
  ptx::tcgen05_fence_after_thread_sync();
  return ptx::ld_shared_b32(cta.at.tmem_address());
}

// Each role does its part of the CTA's tiles, one tile after the other. A role may be ahead of the
// others, as far as the barriers permit.
template <typename Tile, bool kGeneral, bool kScales>
__device__ void run_role(Cta<Tile> cta, uint32_t tmem, uint32_t warp, uint32_t lane) {
  if constexpr (Tile::kSeveralTiles && !Tile::kGrouped) {
    cta.walk.iterations = iterations_of<Tile>(cta.p.tiles);
  }
  const KTail<Tile> end{cta};
  if (warp == Tile::kProducerWarp) {
    // Lets the dependent grid start, now that this CTA has its tensor memory. A CTA of that grid on
    // this SM might otherwise allocate all columns of tensor memory first, and keep them while it
    // waits for this grid to end: a deadlock.
    if (ptx::elect_sync()) ptx::griddepcontrol_launch_dependents();
    do {
      if (ptx::elect_sync()) load_remaining_k_blocks(cta);
      __syncwarp();
      if (end.exists()) end.clear(lane);
    } while (cta.go_on());
  } else if (warp == Tile::kMmaWarp) {
    if (!cta.leads() || !ptx::elect_sync()) return;
    do {
      multiply_tile(cta, tmem);
    } while (cta.go_on());
  } else {
    do {
      store_tile<Tile, kGeneral, kScales>(cta, tmem + cta.walk.accumulator_at(), warp, lane);
    } while (cta.go_on());
  }
}

template <typename Tile>
__device__ void tear_down(const Cta<Tile>& cta, uint32_t tmem, uint32_t warp) {
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();  // the accumulator has been read
  // No CTA ends while another may still read its sums or operands, or signal it. With split-K the
  // cluster barrier needs release semantics: this CTA has signalled mbarriers of other CTAs, and a
  // relaxed barrier would not wait for these signals. In a pair a relaxed barrier is enough: each
  // CTA has already waited for every load and signal that it receives, and its stores of D need not
  // have finished.
  if (cta.shares_tile()) ptx::cluster_sync();
  if (Tile::kCtas == 2) ptx::cluster_sync_relaxed();
  if (warp != Tile::kMmaWarp) return;
  note_last_clock(kClock_last_store);
  note_last_clock(kClock_end_ns);
  ptx::tcgen05_fence_after_thread_sync();
  ptx::tcgen05_dealloc<Tile::kCtaGroup, Tile::kColumnsAllocated>(tmem);
}

template <typename Entry>
__device__ void gemm_sm100(const Sm100Params& p) {
  using Tile = typename Entry::Tile;
  extern __shared__ __align__(1024) uint8_t shared[];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const uint32_t smem = ptx::shared_address(shared);
  begin<Tile>(p, smem);
  if constexpr (Tile::kGrouped) list_groups<Tile>(p, smem, warp);
  const Cta<Tile> cta = make_cta<Tile>(p, smem);
  if (!cta.has_tile()) return;
  const uint32_t tmem = set_up(cta, warp);
  run_role<Tile, Entry::kGeneral, Entry::kScales>(cta, tmem, warp, lane);
  tear_down(cta, tmem, warp);
}

template <typename Entry>
using Sm100ParamsOf = typename Sm100Argument<Entry::kGrouped, Entry::kGated>::Params;

}  // namespace nvfp4

#define ENTRY(label, operation)                                                          \
  NVFP4_ENTRY(                                                                           \
      sm100, label, operation, __launch_bounds__(nvfp4::Sm100Tile_##label::kThreads, 1), \
      nvfp4::Sm100ParamsOf<nvfp4::Sm100_##operation<nvfp4::Sm100Tile_##label>>,          \
      nvfp4::gemm_sm100<nvfp4::Sm100_##operation<nvfp4::Sm100Tile_##label>>(gemm_of(params)))
#include "kernel/sm100/entries.def"
