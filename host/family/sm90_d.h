// SPDX-License-Identifier: MIT
// Compute capability 9.0: clock cycles that D's epilogue takes beyond the fast one, in one launch
// and apart (host/plan/apart.h).
#pragma once

#include "host/plan/family.h"

namespace nvfp4 {

// Whether the variant has an entry for such a batch-invariant product.
bool sm90_adds_own_parts(const nvfp4_gemm_desc& desc, const Variant& variant);

// Whether the variant has an entry for a D with scales of such operands, if such a D is plain
// otherwise.
bool sm90_has_scaled_entry(const nvfp4_gemm_desc& desc, const Variant& variant);

// Whether the entry for gated products of groups has the fast epilogue (gates_groups in
// kernel/sm90/cta.cuh).
bool sm90_gates_groups(const Variant& variant);

// Whether the entries for plain gated products take this one.
bool sm90_is_plain_gate(const nvfp4_gemm_desc& desc);

// Whether the variant has an entry for such a product with C, an activation or maxima.
bool sm90_has_fast_fields(const nvfp4_gemm_desc& desc, const Variant& variant);

// In the kernel of the product, for the choice of its variant and split.
int64_t sm90_epilogue_clocks(const nvfp4_gemm_desc& desc, const Architecture& arch,
                             const Choice& choice);

// In the second kernel, with what sums in fp32 cost the first.
int64_t sm90_finish_clocks(const nvfp4_gemm_desc& desc, Apart way);

ApartCosts sm90_apart_costs(const nvfp4_gemm_desc& desc, const nvfp4_gemm_desc& sums,
                            const Architecture& arch);

}  // namespace nvfp4
