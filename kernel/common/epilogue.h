// SPDX-License-Identifier: MIT
// Parameters of a kernel's epilogue besides alpha and D (params.def). Plain C++, no CUDA.
//
//   x = ((alpha * a_tensor_scale) * b_tensor_scale) * sum;  x = fma(beta, C, x);  x = x + bias
//   D = round(act(x))
//
// A missing tensor scale, C or bias takes no part.
#pragma once

#include <cstdint>

#include "kernel/common/groups.h"
#include "kernel/common/offset.h"

namespace nvfp4 {

// Same numbers as NVFP4_TYPE_ and NVFP4_ACTIVATION_ of the header (host/problem/epilogue.cc asserts
// it).
enum ElementType : uint32_t {
  kTypeNone,
  kTypeF16,
  kTypeBf16,
  kTypeF32,
  kTypeNvfp4,     // these are only for D: E2M1 with a UE4M3 scale per 16 columns,
  kTypeMxfp4,     // a UE8M0 scale per 32,
  kTypeE2m1Ue8m0  // a UE8M0 scale per 16
};
enum Activation : uint32_t {
  kActivationNone,
  kActivationRelu,
  kActivationGeluTanh,
  kActivationSilu,
  kActivationGeluErf,
  kActivationReluSquared
};
// Added to EpilogueParams::activation if D has maxima, so that one branch tests both.
constexpr uint32_t kTakesAmax = 0x100;

// The epilogues for which kernels have specialised code. D is row-major in all of them.
//   Plain    D in fp16 is the host's alpha times the sum
//   Bf16     the same in bf16
//   Columns  D in fp16 or bf16, with scalars on the device, tensor scales (also per row of A) or a
//            bias per column; in a gated product also with an activation
//   F32      any of these in fp32, except for gated products
//   Scaled   any of these in a type with scales, if each 16 columns begin at a multiple of 8 bytes;
//            a kernel without code for it uses the general epilogue
enum EpilogueKind : uint32_t {
  kEpiloguePlain,
  kEpilogueBf16,
  kEpilogueColumns,
  kEpilogueF32,
  kEpilogueGeneral,
  kEpilogueScaled
};

struct EpilogueParams {
  const float* alpha_device;    // NULL: alpha is a host value
  const float* beta_device;     // NULL: beta is a host value
  const float* a_tensor_scale;  // NULL: none
  const float* b_tensor_scale;  // NULL: none
  const void* c;
  const void* bias;
  int64_t c_batch_stride;     // in elements, like the next four
  int64_t c_row, c_column;    // distance from an element of C to the next row, to the next column
  int64_t d_row, d_column;    // the same for D
  float beta;                 // the host value
  uint32_t columns_a_factor;  // columns that share one of b_tensor_scale
  uint32_t c_type;            // kTypeNone: no C, or beta is known to be 0
  uint32_t d_type, bias_type;
  uint32_t activation;       // plus kTakesAmax if D has maxima
  uint16_t bias_per_row;     // 1: a value for each row of D, 0: for each column
  uint16_t a_scale_per_row;  // 1: a tensor scale for each row of A in each batch, 0: one
  uint32_t kind;             // EpilogueKind
  // The remaining fields are for a D with scales.
  uint8_t* d_scales;
  const float* d_tensor_scale;  // NULL: 1
  int64_t d_scales_batch_bytes;
  uint32_t d_scales_per_row;
  uint16_t d_scales_are_tiles;  // 128x4 tiles; otherwise linear
  uint16_t d_scale_floors;      // UE8M0 scales are rounded down; otherwise up
  // Receive the largest |act(x)| (amax.cuh). NULL: none.
  float* d_amax;      // one for D
  float* d_row_amax;  // one for each row of each batch
};
static_assert(sizeof(EpilogueParams) == 168 && NVFP4_OFFSET_IS(EpilogueParams, beta, 88) &&
              NVFP4_OFFSET_IS(EpilogueParams, d_scales, 120));

// Argument of the kernel for K = 0, whose sums are all +0 (empty_sum.cuh).
struct EmptySumParams {
  void* d;
  int64_t d_batch_stride;  // elements
  uint32_t m, n, batches;
  uint32_t row_ctas;  // CTAs of gridDim.y for one batch; the others take other batches
  float alpha;
  uint32_t batch_ctas;  // gridDim.y / row_ctas
  EpilogueParams epilogue;
  GroupParams groups;  // of a grouped product, which has one batch; count is 0 otherwise
};
static_assert(sizeof(EmptySumParams) == 272 && NVFP4_OFFSET_IS(EmptySumParams, epilogue, 40));

constexpr uint32_t kEmptySumThreads = 128;
constexpr uint32_t kEmptySumColumns = 128;                 // columns of a CTA: four per lane
constexpr uint32_t kEmptySumRows = kEmptySumThreads / 32;  // rows at once: one per warp

}  // namespace nvfp4
