// SPDX-License-Identifier: MIT
// Checked problem and compute capability in, launch geometry out. Pure: no driver, no state.
#pragma once

#include "host/plan/checked.h"
#include "host/plan/variant.h"
#include "kernel/sm90/params.h"

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

  const Architecture& arch() const;
};

// The variant depends on the sizes (and on desc.variant) alone, the split and which tiles are whole
// on the sizes alone, so D has the same bits on every device of a capability. Looks at no
// workspace.
nvfp4_status make_plan(const CheckedGemm& checked, int32_t capability, Plan* plan);

// CTAs that are launched on a device of so many SMs.
uint32_t count_ctas(const Plan& plan, int32_t sm_count);

// ---- what a family's planner answers: sm100.cc, sm90.cc -----------------------------------------

// A variant for a problem, with the split that suits it best.
struct Choice {
  const Variant* variant;
  uint32_t split, cluster;
  bool several;
  int64_t tiles, whole, ctas;  // see Plan
  int64_t cost;                // in the planner's own unit
};

constexpr size_t kReasonBytes = 160;

// Clocks of the longest running SM, by what takes them.
struct Clocks {
  int64_t stages, sums, ctas;
  int64_t all() const { return stages + sums + ctas; }
};

struct Planner {
  // False if the variant has too many tiles for the problem.
  bool (*choose_split)(const nvfp4_gemm_desc& desc, const Architecture& arch,
                       const Variant& variant, Choice* choice);
  nvfp4_status (*count_workspace)(const nvfp4_gemm_desc& desc, Plan* plan);
  // For explain: the rule in a sentence, and what it says of a choice.
  void (*write_rule)(const Architecture& arch, char (&text)[kReasonBytes]);
  void (*write_choice)(const Choice& choice, char (&text)[kReasonBytes]);
  // NULL: the planner's unit is no time.
  Clocks (*predict)(const nvfp4_gemm_desc& desc, const Plan& plan);
};
extern const Planner kPlannerSm100, kPlannerSm90;
const Planner& planner_of(Family family);

constexpr int64_t kMaxTokenBytes = kMaxTiles * kTokenKernelThreads * kTokenBytesPerThread;

}  // namespace nvfp4
