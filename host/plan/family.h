// SPDX-License-Identifier: MIT
// One struct of functions for what differs between families of kernels. plan/ and run/ know nothing
// else about a family. Each row of families.def has a file host/family/NAME.cc, which defines
// kFamily_NAME.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/plan/plan.h"
#include "kernel/common/epilogue.h"
#include "kernel/common/groups.h"

namespace nvfp4 {

struct Driver;

// A variant for a problem, with the best split for it.
struct Choice {
  const Variant* variant;
  uint32_t split, cluster;
  bool several;
  int64_t tiles, whole, ctas;  // see Plan
  int64_t cost;                // in the planner's own unit, with the fast epilogue
  int64_t cost_of_d = 0;       // with D's own epilogue; 0 if the family makes no difference
  bool even = false;           // see Plan
  int64_t own_cost() const { return cost_of_d > 0 ? cost_of_d : cost; }
};

// The planner's costs of a D that is made in one launch and apart. 0: no kernel can.
struct ApartCosts {
  int64_t one, apart;
  bool
      by_sizes;  // a row's bits may not depend on M, so two launches are taken wherever they can be
  bool pays() const { return apart > 0 && (by_sizes || one == 0 || apart < one); }
};

constexpr size_t kReasonBytes = 160;

// Clock cycles of the SM that runs longest, by cause.
struct Clocks {
  int64_t stages, sums, ctas;
  int64_t all() const { return stages + sums + ctas; }
};

// The kernel's only argument. Only its family knows the type.
constexpr size_t kMostParamBytes = 1408;
class alignas(128) KernelParams {
 public:
  template <typename Params>
  Params* make() {
    static_assert(sizeof(Params) <= kMostParamBytes && alignof(Params) <= 128);
    *get<Params>() = {};
    return get<Params>();
  }
  template <typename Params>
  Params* get() {
    return reinterpret_cast<Params*>(bytes_);
  }
  template <typename Params>
  const Params* get() const {
    return reinterpret_cast<const Params*>(bytes_);
  }
  GroupParams* groups(const Plan& plan) {
    return reinterpret_cast<GroupParams*>(bytes_ + groups_at(plan));
  }
  const GroupParams* groups(const Plan& plan) const {
    return reinterpret_cast<const GroupParams*>(bytes_ + groups_at(plan));
  }

 private:
  static size_t groups_at(const Plan& plan);

  unsigned char bytes_[kMostParamBytes];
};

// host/family/NAME.cc assigns by name what differs from the default. No family lacks a function
// without a remark about NULL.
struct Family {
  // ---- planning ----
  // False if the problem has too many tiles of the variant.
  bool (*choose_split)(const nvfp4_gemm_desc& desc, const Architecture& arch,
                       const Variant& variant, Choice* choice) = nullptr;
  // Whether CTAs may share tiles of the variant evenly (Plan::even), and that choice for a problem:
  // false if the variant cannot share it so. NULL: no variant of the family can.
  bool (*takes_even_shares)(const Variant& variant) = nullptr;
  bool (*share_evenly)(const nvfp4_gemm_desc& desc, const Architecture& arch,
                       const Variant& variant, Choice* choice) = nullptr;
  // See adds_own_parts() in variant.h. NULL: no variant of the family can.
  bool (*adds_own_parts)(const nvfp4_gemm_desc& desc, const Variant& variant) = nullptr;
  // Completes a plan: sets its workspace, and the kernels that run before and after the product's.
  nvfp4_status (*complete)(const nvfp4_gemm_desc& desc, Plan* plan) = nullptr;
  // Costs of both ways to make D, of a problem and its product without an epilogue (apart.h). NULL:
  // D is made in one launch.
  ApartCosts (*apart_costs)(const nvfp4_gemm_desc& desc, const nvfp4_gemm_desc& sums,
                            const Architecture& arch) = nullptr;
  // Clock cycles of the second kernel, with what its sums cost the first. NULL: not known.
  int64_t (*finish_clocks)(const nvfp4_gemm_desc& desc, Apart way) = nullptr;
  // NULL if the planner's cost is not a time.
  Clocks (*predict)(const nvfp4_gemm_desc& desc, const Plan& plan) = nullptr;

  // ---- launching ----
  // Whether the kernels wait (griddepcontrol.wait) before they read anything that earlier work of
  // the stream may write. If they do, a launch may start before that work has finished.
  bool waits_for_earlier_work = false;
  nvfp4_status (*make_params)(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                              KernelParams* params) = nullptr;
  // `params` were made for `before`, which differs from `desc` only in addresses.
  nvfp4_status (*replace_addresses)(const Driver& driver, const nvfp4_gemm_desc& before,
                                    const nvfp4_gemm_desc& desc, const Plan& plan,
                                    KernelParams* params) = nullptr;
  // Draws the nonce of a run for the parameters of a plan with even shares. NULL: no variant of the
  // family has them.
  void (*set_nonce)(KernelParams* params) = nullptr;
  // The most specialised operation of the variant that takes the product.
  Operation (*operation)(const Plan& plan, const KernelParams& params) = nullptr;
  // The kernel that adds K partitions from the workspace. If there is none, the function or its
  // result is NULL.
  const char* (*add_entry)(const Architecture& arch, const Variant& variant) = nullptr;
  // The largest shared memory that a plan for the architecture may need. NULL: it needs as much as
  // the variant says.
  uint32_t (*most_shared_bytes)(const Architecture& arch, const Variant& variant) = nullptr;
  // Shared memory of a CTA if the launch may start before the previous one has ended. NULL: it
  // needs as much as the plan says.
  uint32_t (*shared_bytes_beside)(const Plan& plan, uint32_t ctas, int32_t sm_count) = nullptr;

  // ---- words ----
  // The planner's rule in one sentence, and the reason for a choice.
  void (*write_rule)(const Architecture& arch, char (&text)[kReasonBytes]) = nullptr;
  void (*write_choice)(const Choice& choice, char (&text)[kReasonBytes]) = nullptr;
  // Returns NULL if the plan's kernel stores D by TMA. Otherwise returns the reason why threads
  // store D. A family without this function never stores D by TMA.
  const char* (*why_not_by_tma)(const nvfp4_gemm_desc& desc, const Plan& plan) = nullptr;
  // The kernels have specialised code for this kind and for all kinds before it in the enum
  // EpilogueKind.
  EpilogueKind last_fast_epilogue{};
  // Whether kEpilogueScaled has specialised code, too. NULL: it never has.
  bool (*has_fast_scales)(const nvfp4_gemm_desc& desc, const Plan& plan) = nullptr;
  // The same for kEpilogueGeneral that is_of_fields() (host/problem/epilogue.h), of a product that
  // is neither grouped nor gated. NULL: it never has.
  bool (*has_fast_fields)(const nvfp4_gemm_desc& desc, const Plan& plan) = nullptr;

  // ---- grouped products ----
  // Offsets of GroupParams in the kernel's parameters: for grouped products that are not gated, and
  // for those that are. 0: no variant takes groups.
  size_t groups_at = 0, gated_groups_at = 0;
  // Whether a CTA computes several tiles of groups, one after the other, each over all of K.
  bool groups_iterate = false;
  // Whether its kernels find the 128x4 tile at which the scales of a group begin, of tokens and D.
  bool finds_group_scales = false;

  // ---- gated products ----
  // How a tile of a gated product holds its weights. True: the tile has one matrix of weights, of
  // which one half is rows of b and the other half rows of b2. False: the tile has two matrices of
  // weights, one with rows of b and one with rows of b2.
  bool gate_halves_tile = false;
  // Whether the variant's kernel for gated products of groups has a fast epilogue, too. NULL: none
  // has.
  bool (*gates_groups)(const Variant& variant) = nullptr;
  // Whether its kernels for plain gated products take this one. NULL: no variant of the family has
  // only such a kernel.
  bool (*is_plain_gate)(const nvfp4_gemm_desc& desc) = nullptr;

  // ---- operands with UE8M0 scales ----
  // Whether the family's variants with `ue8m0` take such operands on the architecture. NULL: they
  // do on every architecture.
  bool (*takes_ue8m0)(const Architecture& arch) = nullptr;
  // A pre-pass decodes tokens with such scales to bf16.
  bool decodes_tokens = false;

  // ---- packed operands ----
  // The order of packed weights (NVFP4_PACKING_..) that kernels read on GPUs whose family this is,
  // and that of packed tokens, which variants with an activation pre-pass read without it.
  int32_t packing = NVFP4_PACKING_NONE, token_packing = NVFP4_PACKING_NONE;
  // Whether each of the family's kernels reads both orders, so that packed weights have no entries
  // of their own.
  bool every_kernel_reads_packed = false;

  // ---- rows for older drivers (arch.def) ----
  // Whether a product may have K partitions by the row. NULL: on every row.
  bool (*splits_k)(const Architecture& arch) = nullptr;
};

// Whether images for GPUs of the family have entries for packed weights.
inline bool has_packed_entries(const Family& family) {
  return family.packing != NVFP4_PACKING_NONE && !family.every_kernel_reads_packed;
}

inline size_t KernelParams::groups_at(const Plan& plan) {
  const Family& family = *plan.variant->family;
  return plan.gated ? family.gated_groups_at : family.groups_at;
}

// The cheapest choice among the variants that serve the architecture. If the problem has too many
// tiles with each of them, the choice's variant is NULL. The variants of each token type are sorted
// from narrow to wide.
Choice cheapest(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant* variants,
                uint32_t count);

}  // namespace nvfp4
