// SPDX-License-Identifier: MIT
// Turns a checked problem and a compute capability into launch geometry. The functions are pure:
// they use no driver and keep no state.
#pragma once

#include "host/plan/apart.h"
#include "host/plan/checked.h"
#include "host/plan/variant.h"

namespace nvfp4 {

struct Plan {
  const Variant* variant;  // NULL: the problem is empty, and the other members are 0
  uint32_t arch_index;     // index in kArchitectures
  uint32_t tiles_m, tiles_n;
  // A CTA computes several tiles; the grid then has at most this many CTAs per SM.
  bool several;
  uint32_t ctas_per_sm;
  uint32_t split;    // CTAs that share a tile along K
  uint32_t whole;    // if split > 1: the first `whole` tiles are not split
  uint32_t own_parts;  // K partitions that a CTA adds alone, as a cluster would; 0: it has none
  bool even;         // the CTAs share the tiles from `whole` on evenly; split is then 1
  uint32_t cluster;  // CTAs of a cluster
  uint32_t grid;     // CTAs, flattened into grid.x; one per tile where no tile is split
  uint64_t workspace_bytes;
  uint64_t parts_bytes;  // bytes at its end where parts of even shares meet
  // Bytes of the workspace for the converted scales of A, and then of B. Linear scales are
  // converted before the product on architectures whose kernels read only 128x4 scales. 0 for
  // scales that are not converted.
  uint64_t a_scales_bytes, b_scales_bytes;
  // Bytes of the workspace for A decoded to bf16 by a pre-pass, and the number of its matrices:
  // one, or one per batch. 0 if the kernel decodes A, or A is not quantized.
  uint64_t a_halves_bytes;
  int64_t a_halves_batches;
  // The kernel that decodes tokens into the workspace before the product, called the activation
  // pre-pass; 0: none.
  uint32_t prepass_ctas, prepass_threads;
  // The kernel that adds parts of K from the workspace after the product; 0: none.
  uint32_t add_ctas, add_threads;
  // Who makes D. Unless it is the product's kernel, everything else here is about the product
  // without its epilogue (product_of), whose D has the first sums_bytes of the workspace.
  Apart apart;
  uint64_t sums_bytes;
  uint32_t shared_bytes;  // of a CTA
  bool grouped;           // tiles_m is the largest number of token tiles that the groups can have
  uint32_t usual_rows;    // of a usual group
  int64_t group_rows;     // rows of groups that the workspace has a place for; others need none
  bool gated;             // the kernel multiplies with b2
  bool packed;            // the weights are packed
  // The kernel itself waits for earlier grids (griddepcontrol.wait), so it may start early.
  bool waits;

  const Architecture& arch() const;
  // The kernel that takes every product of the plan's kind; of gated ones maybe only plain ones.
  const Entry& entry() const;
};

// Makes the plan from the problem and the capability alone. Neither the number of SMs nor any other
// property of a device matters, so D has the same bits on every device of a capability. The
// workspace is not checked.
nvfp4_status make_plan(const CheckedGemm& checked, int32_t capability, Plan* plan);

// Bytes of workspace for the plan of a question. A question without addresses does not know whether
// D has maxima. If not all kernels for gated products can find them, the plan with maxima may be
// another one, and the larger workspace counts.
uint64_t workspace_of_question(const CheckedGemm& checked, const Plan& plan);

// The same for a row of kArchitectures. Two rows of one capability give other bits.
nvfp4_status make_plan_on(const CheckedGemm& checked, uint32_t arch_index, Plan* plan);

// Whether the architecture has a variant for the problem: the forced one, with as many K partitions
// as desc.variant names, if there is one.
bool is_served(const CheckedGemm& checked, const Architecture& arch);

// The problem that the planner sees. In some families one half of the weights in a tile of a gated
// product are rows of b2 (gate_halves_tile in family.h). These families plan a gated product as one
// product with the rows of b and b2. Any other problem is planned unchanged.
nvfp4_gemm_desc planned_product(const nvfp4_gemm_desc& desc, const Architecture& arch);

// The problem of the plan's kernel: the caller's, or without its epilogue.
nvfp4_gemm_desc product_of(const nvfp4_gemm_desc& desc, const Plan& plan);

// Refuses a problem for which desc.variant is NULL and all kernels are only assembled (proof.h).
// The planner never chooses such a kernel by itself. The message suggests the variant `such` for
// desc.variant.
nvfp4_status refuse_assembled(const Architecture& arch, const Variant& such);

// Refuses packed weights that no kernel of the architecture reads in such a product.
nvfp4_status check_packing(const nvfp4_gemm_desc& desc, const Architecture& arch, bool grouped);

// Number of CTAs that are launched on a device with sm_count SMs.
uint32_t count_ctas(const Plan& plan, int32_t sm_count);

}  // namespace nvfp4
