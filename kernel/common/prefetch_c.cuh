// SPDX-License-Identifier: MIT
// Prefetches C to L2 while the sums of its tile are still being multiplied, on 10.x, and on 9.0
// with many tokens. It is a hint: C that is not prefetched takes longer to load.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/ptx/tma.cuh"

namespace nvfp4 {

// Rows m .. m_end-1 and columns n .. n_end-1 of a batch, all of which exist.
struct CRegion {
  uint32_t batch, m, m_end, n, n_end;
};

// Called by `threads` threads, each with its own number. A line is what is contiguous, a row or a
// column. Its first and last bytes are skipped if they share 16 bytes with data outside C.
template <typename Params>
__device__ void prefetch_c(const Params& p, CRegion region, uint32_t thread, uint32_t threads) {
  const EpilogueParams& e = p.epilogue;
  if (e.c_type == kTypeNone) return;
  ptx::griddepcontrol_wait();  // an earlier grid may write C, or beta
  const uint32_t type = type_of_c(e, beta_of(e));
  if (type == kTypeNone) return;
  const bool by_row = e.c_column == 1;
  const uint32_t rows = region.m_end - region.m, columns = region.n_end - region.n;
  const uint32_t lines = by_row ? rows : columns, length = by_row ? columns : rows;
  const int64_t step = by_row ? e.c_row : e.c_column;
  const int64_t first =
      region.batch * e.c_batch_stride + region.m * e.c_row + region.n * e.c_column;
  for (uint32_t line = thread; line < lines; line += threads) {
    const uint64_t at =
        reinterpret_cast<uint64_t>(e.c) + ((first + line * step) << log2_bytes(type));
    const uint64_t begin = (at + 15) & ~uint64_t{15};
    const uint64_t end = (at + (length << log2_bytes(type))) & ~uint64_t{15};
    if (begin >= end) continue;
    ptx::cp_async_bulk_prefetch_l2(reinterpret_cast<const void*>(begin),
                                   static_cast<uint32_t>(end - begin));
  }
}

}  // namespace nvfp4
