// SPDX-License-Identifier: MIT
// Addresses of nvfp4_gemm_desc: aligned.
#include <cstddef>

#include "host/base/operand_format.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

int64_t bytes_of_type(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

bool has_no_address(const nvfp4_gemm_desc& g) {
  for (const GemmField& field : fields::gemm) {
    if (is_address(field.kind) && fields::address(&g, field) != nullptr) return false;
  }
  return true;
}

namespace {

// What the CPU needs for the elements of that field.
uint64_t host_alignment(const nvfp4_gemm_desc& g, size_t offset) {
  const auto bytes = [](int32_t type) { return static_cast<uint64_t>(bytes_of_type(type)); };
  switch (offset) {
    case offsetof(nvfp4_gemm_desc, a): return g.a_type == NVFP4_TYPE_NONE ? 1 : bytes(g.a_type);
    case offsetof(nvfp4_gemm_desc, c): return bytes(g.c_type);
    case offsetof(nvfp4_gemm_desc, d):
      return format_of_d(g.d_type) != nullptr ? 1 : bytes(g.d_type);
    default: return 1;
  }
}

template <Kind kKind>
inline uint64_t alignment(const nvfp4_gemm_desc& g, Caller caller, size_t offset) {
  if (kKind == Kind::vector) return static_cast<uint64_t>(bytes_of_type(g.bias_type));
  if (kKind == Kind::factor || kKind == Kind::maximum) return alignof(float);
  return caller == Caller::reference ? host_alignment(g, offset) : kAddressAlignment;
}

}  // namespace

// With K = 0 the operands have no elements and are not looked at.
nvfp4_status check_addresses(const nvfp4_gemm_desc& g, Caller caller) {
#define GEMM_FIELD(kind, name, ...)                                                           \
  if constexpr (is_address(Kind::kind)) {                                                     \
    constexpr bool kWithK = (fields::when_of(fields::gemm, #name) & fields::with_k) != 0;     \
    const uint64_t bytes = alignment<Kind::kind>(g, caller, offsetof(nvfp4_gemm_desc, name)); \
    if (!kWithK || g.k > 0) NVFP4_TRY(rule_aligned(#name, fields::address(g.name), bytes));   \
  }
#include "host/problem/fields.def"
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
