// SPDX-License-Identifier: MIT
// What a family of kernels does in its own way, as one struct of functions. plan/ and run/ know no
// more of a family than this. Each row of families.def has a file host/family/NAME.cc, which
// defines kFamily_NAME.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/plan/plan.h"
#include "kernel/common/epilogue.h"
#include "kernel/common/groups.h"

namespace nvfp4 {

struct Driver;

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

// The kernel's one argument. Its family alone knows the type.
constexpr size_t kMostParamBytes = 1280;
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
  GroupParams* groups(size_t at) { return reinterpret_cast<GroupParams*>(bytes_ + at); }
  const GroupParams* groups(size_t at) const {
    return reinterpret_cast<const GroupParams*>(bytes_ + at);
  }

 private:
  unsigned char bytes_[kMostParamBytes];
};

struct Family {
  // ---- planning ----
  // False if the variant has too many tiles for the problem.
  bool (*choose_split)(const nvfp4_gemm_desc& desc, const Architecture& arch,
                       const Variant& variant, Choice* choice);
  // Workspace, and what is launched beside the product, of a plan that has everything else.
  nvfp4_status (*complete)(const nvfp4_gemm_desc& desc, Plan* plan);
  // NULL: the planner's unit is no time.
  Clocks (*predict)(const nvfp4_gemm_desc& desc, const Plan& plan);

  // ---- launching ----
  nvfp4_status (*make_params)(const Driver& driver, const nvfp4_gemm_desc& desc, const Plan& plan,
                              KernelParams* params);
  // `params` were made for `before`, which differs from `desc` in addresses alone.
  nvfp4_status (*replace_addresses)(const Driver& driver, const nvfp4_gemm_desc& before,
                                    const nvfp4_gemm_desc& desc, const Plan& plan,
                                    KernelParams* params);
  // The most specialised kernel of the variant that computes the product on `ctas` CTAs. If the
  // variant does not have it, the launch takes the entry before it.
  Entry (*entry)(const Plan& plan, uint32_t ctas, const KernelParams& params);
  // The kernel that adds K partitions which meet in the workspace; NULL, or no function: none does.
  const char* (*add_entry)(const Architecture& arch, const Variant& variant);
  // That a plan for the architecture asks for at most. No function: what the variant says.
  uint32_t (*most_shared_bytes)(const Architecture& arch, const Variant& variant);

  // ---- words ----
  // The planner's rule in a sentence, and what it says of a choice.
  void (*write_rule)(const Architecture& arch, char (&text)[kReasonBytes]);
  void (*write_choice)(const Choice& choice, char (&text)[kReasonBytes]);
  // NULL where the kernel stores such a D by TMA, else why threads do. No function: they always do.
  const char* (*why_not_by_tma)(const nvfp4_gemm_desc& desc, const Plan& plan);
  // Up to this one each kind of epilogue has code of its own.
  EpilogueKind last_fast_epilogue;
  // And kEpilogueScaled, where this says so; NULL: nowhere.
  bool (*has_fast_scales)(const nvfp4_gemm_desc& desc, const Plan& plan);

  // ---- grouped products ----
  // Where in the parameters GroupParams are. 0: no variant takes groups.
  size_t groups_at;

  // ---- gated products ----
  // A tile's weights are half rows of b, half of b2; else it has those of both beside each other.
  bool gate_halves_tile;
};

// The cheapest choice among the variants that serve the architecture. Its variant is NULL if each
// has too many tiles. The variants of each type of tokens stand from narrow to wide.
Choice cheapest(const nvfp4_gemm_desc& desc, const Architecture& arch, const Variant* variants,
                uint32_t count);

}  // namespace nvfp4
