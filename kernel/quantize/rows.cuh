// SPDX-License-Identifier: MIT
// A tensor scale for each row, made from the row itself: t = amax / 2688 over its finite elements.
// A CTA takes a row of x or of silu(x) * y. A thread keeps its first blocks in registers; those of
// a longer row are computed again, from cache.
#pragma once

#include "kernel/ptx/sync.cuh"
#include "kernel/quantize/fused.cuh"
#include "kernel/quantize/matrix.cuh"

namespace nvfp4 {

// The elements to quantize: x, or silu(x) * y if there is a y.
template <typename Type>
__device__ void load_row_block(const FusedParams& p, uint32_t row, uint32_t block,
                               float (&z)[kBlock]) {
  const bool vectors = p.nvfp4.vectors != 0;
  Words<Type> x;
  x.load(block_at<Type>(p.x, p.x_ld, row, block), vectors);
  if (p.y == nullptr) return x.values(z);
  Words<Type> y;
  y.load(block_at<Type>(p.y, p.y_ld, row, block), vectors);
#pragma unroll
  for (uint32_t i = 0; i < kBlock; ++i) z[i] = __fmul_rn(silu(x.value(i)), y.value(i));
}

template <typename Type>
__device__ void quantize_rows(const FusedParams& p) {
  ptx::griddepcontrol_launch_dependents();
  const uint32_t row = blockIdx.x, blocks = p.nvfp4.blocks;
  ptx::griddepcontrol_wait();
  constexpr uint32_t kKept = kKeptOfRow<Type::kBytes>;
  float kept[kKept][kBlock] = {};  // zeros beyond K
  uint32_t largest = 0;
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * blockDim.x;
    if (block < blocks) load_row_block<Type>(p, row, block, kept[i]);
  }
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    if (threadIdx.x + i * blockDim.x < blocks) largest = largest_finite_of(kept[i], largest);
  }
  const uint32_t others = threadIdx.x + kKept * blockDim.x;
  for (uint32_t block = others; block < blocks; block += blockDim.x) {
    float z[kBlock];
    load_row_block<Type>(p, row, block, z);
    largest = largest_finite_of(z, largest);
  }
  const TensorScale t = make_scale_of_row(p.scale, row, largest);
  const uint32_t written = written_blocks(p.nvfp4);
#pragma unroll
  for (uint32_t i = 0; i < kKept; ++i) {
    const uint32_t block = threadIdx.x + i * blockDim.x;
    if (block < written) store_block(p.nvfp4, row, block, quantize_block(kept[i], t));
  }
  for (uint32_t block = others; block < written; block += blockDim.x) {
    float z[kBlock] = {};
    if (block < blocks) load_row_block<Type>(p, row, block, z);
    store_block(p.nvfp4, row, block, quantize_block(z, t));
  }
}

}  // namespace nvfp4
