// SPDX-License-Identifier: MIT
// Checked problem and compute capability in, launch geometry out. Pure: no driver, no state.
#pragma once

#include "host/plan/checked.h"
#include "host/plan/variant.h"

namespace nvfp4 {

struct Plan {
  const Variant* variant;  // NULL: the problem is empty, and the rest is 0
  uint32_t arch_index;     // in kArchitectures
  uint32_t tiles_m, tiles_n;
  bool several;      // a CTA computes one tile after the other; no more CTAs than a device has SMs
  uint32_t split;    // CTAs that share a tile along K
  uint32_t whole;    // where split > 1: so many tiles come first, each by one CTA alone
  uint32_t cluster;  // CTAs of a cluster
  uint32_t grid;     // CTAs, flattened into grid.x; where none shares a tile, one for each tile
  uint64_t workspace_bytes;
  // Of the workspace, on an architecture whose kernels read tiles alone: the scales of A, then
  // those of B, converted before the product. 0 where they are no linear ones.
  uint64_t a_scales_bytes, b_scales_bytes;
  // Bytes that A takes in the workspace, decoded to bf16 before the product by a kernel of its own,
  // and its matrices: one, or one for each batch. 0: the kernel decodes A, or A is not quantized.
  uint64_t a_halves_bytes;
  int64_t a_halves_batches;
  // The activation pre-pass, which decodes tokens into the workspace before the product; 0: none.
  uint32_t prepass_ctas, prepass_threads;
  // The kernel that adds K partitions after the product, from the workspace; 0: none.
  uint32_t add_ctas, add_threads;
  uint32_t shared_bytes;  // of a CTA
  bool grouped;           // the rows of groups: tiles_m are the most token tiles that they can have
  bool gated;             // half of a tile's weights are rows of b, half of b2
  // The kernel waits by itself for the one before it (griddepcontrol.wait), so it may start early.
  bool waits;

  const Architecture& arch() const;
};

// The variant depends on the sizes (and on desc.variant) alone, the split and which tiles are whole
// on the sizes alone, so D has the same bits on every device of a capability. Looks at no
// workspace.
nvfp4_status make_plan(const CheckedGemm& checked, int32_t capability, Plan* plan);

// Where half of a tile's weights are rows of b2 a gated product is planned as one product, with all
// rows of b and b2. Any other problem is planned as it is.
nvfp4_gemm_desc planned_product(const nvfp4_gemm_desc& desc, const Architecture& arch);

// CTAs that are launched on a device of so many SMs.
uint32_t count_ctas(const Plan& plan, int32_t sm_count);

}  // namespace nvfp4
