// SPDX-License-Identifier: MIT
// What a kernel computes. A row of a family's entries.def has an operation for a tile. A kernel's
// name ends in the operation's suffix. A product is called plain if the fast epilogue can store it.
// Plain C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

enum Operation : uint32_t {
  kOperation_any,        // every product, with one exception: on 10.x no D with scales
  kOperation_plain,      // plain products
  kOperation_invariant,  // plain products that are batch-invariant
  // Products whose D has scales: on 10.x all of them, on 9.0 those that are plain otherwise.
  kOperation_scaled,
  // Products that are plain except for C, an activation or maxima.
  kOperation_fields,
  kOperation_linear,  // products that are plain but for linear scales of NVFP4 operands
  // Plain products with MXFP4 weights; tiles of quantized tokens take such tokens with them.
  kOperation_mxfp4,
  kOperation_grouped,        // grouped products
  kOperation_grouped_plain,  // plain grouped products
  kOperation_gated,          // gated products
  kOperation_gated_plain,    // plain gated products
  kOperation_grouped_gated,  // grouped products that are also gated
  // The same with packed weights.
  kOperation_packed,  // every product that is neither grouped nor gated
  kOperation_packed_plain,
  kOperation_packed_invariant,
  kOperation_packed_mxfp4,
  kOperation_packed_grouped,
  kOperation_packed_gated,
  kOperation_packed_grouped_gated,
  kOperationCount
};

constexpr bool is_of_packed(uint32_t operation) {
  return operation >= kOperation_packed && operation <= kOperation_packed_grouped_gated;
}

}  // namespace nvfp4

#define NVFP4_SUFFIX_any
#define NVFP4_SUFFIX_plain _plain
#define NVFP4_SUFFIX_invariant _invariant
#define NVFP4_SUFFIX_scaled _scaled
#define NVFP4_SUFFIX_fields _fields
#define NVFP4_SUFFIX_linear _linear
#define NVFP4_SUFFIX_mxfp4 _mxfp4
#define NVFP4_SUFFIX_grouped _grouped
#define NVFP4_SUFFIX_grouped_plain _grouped_plain
#define NVFP4_SUFFIX_gated _gated
#define NVFP4_SUFFIX_gated_plain _gated_plain
#define NVFP4_SUFFIX_grouped_gated _grouped_gated
#define NVFP4_SUFFIX_packed _packed
#define NVFP4_SUFFIX_packed_plain _packed_plain
#define NVFP4_SUFFIX_packed_invariant _packed_invariant
#define NVFP4_SUFFIX_packed_mxfp4 _packed_mxfp4
#define NVFP4_SUFFIX_packed_grouped _packed_grouped
#define NVFP4_SUFFIX_packed_gated _packed_gated
#define NVFP4_SUFFIX_packed_grouped_gated _packed_grouped_gated
