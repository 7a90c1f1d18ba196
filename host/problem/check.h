// SPDX-License-Identifier: MIT
// Every rule of the header about arguments, in the header's order. Pure functions that need no
// driver.
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// The arrays that a grouped product has beside those of its nvfp4_gemm_desc. Functions that take a
// pointer to them get NULL for a single product.
struct GroupArrays {
  const int32_t *rows, *scale_rows;
  const float *alpha, *alpha2, *d_tensor_scale;
  int64_t capacity;     // of nvfp4_grouped_desc; 0: ENDS
  int64_t bias_stride;  // elements from a group's bias to the next; 0: all groups have one
};

enum class Caller {
  run,        // device pointers; accepts what the kernels of this version can do
  question,   // the same, but if no address is given at all only sizes and types are checked
  reference,  // host pointers
};

// Rules of nvfp4_gemm_desc that come before its variant, and those that come after it. `known` is
// the caller's desc with 0 in every field that an older, shorter struct does not have.
nvfp4_status check_kind(const nvfp4_gemm_desc* desc, Caller caller, nvfp4_gemm_desc* known);
nvfp4_status check_operands(const nvfp4_gemm_desc& desc, Caller caller, bool sizes_alone);

// True for a question without any address. The rules about addresses are skipped then.
bool asks_about_sizes(const nvfp4_gemm_desc& desc, Caller caller);

// The rules for the addresses that a plan is run with: struct_size, those that the plan has no use
// for, then the rules about addresses. The desc has passed check_gemm with other addresses; its
// product needs that much workspace.
nvfp4_status check_addresses_struct(const nvfp4_gemm_addresses& addresses,
                                    const nvfp4_gemm_desc& plan, bool grouped, bool gated,
                                    nvfp4_gemm_addresses* known);
nvfp4_status check_new_addresses(const nvfp4_gemm_desc& desc, const GroupArrays* groups,
                                 uint64_t workspace_bytes);

// The workspace of a problem that passed check_gemm and needs that many bytes: given, large enough,
// apart from everything that the product reads or writes. These others are not compared again.
nvfp4_status check_workspace(const nvfp4_gemm_desc& desc, const GroupArrays* groups,
                             uint64_t bytes);

nvfp4_status check_quantize(const float* x, int64_t x_ld, int64_t rows, int64_t k,
                            float tensor_scale, const void* codes, int64_t codes_ld,
                            const void* scales, int32_t scale_layout, bool* empty);
// Rules of nvfp4_quantize_desc for each function that takes one. `workspace` checks only the
// numbers.
enum class QuantizerCall { workspace, quantize, dequantize, quantize_host, dequantize_host };
nvfp4_status check_quantizer(const nvfp4_quantize_desc* desc, QuantizerCall call, bool* empty);
// Format of quantized codes and rule of their scales.
nvfp4_status check_format(int32_t format, int32_t scale_rule);
// Whether the format takes the tensor scale.
nvfp4_status check_second_level(int32_t format, int32_t tensor_scale_mode, float tensor_scale);
nvfp4_status check_fused(const nvfp4_fused_quantize_desc* desc, bool* empty);
// Rules of nvfp4_grouped_desc before its variant, and those after it. `gemm` becomes desc->gemm as
// the kernels take it: l groups, while A, C and D have no batches and stride 0.
nvfp4_status check_grouped_kind(const nvfp4_grouped_desc* desc, Caller caller,
                                nvfp4_grouped_desc* known, nvfp4_gemm_desc* gemm);
nvfp4_status check_grouped_operands(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& gemm,
                                    Caller caller, bool sizes_alone);
GroupArrays group_arrays(const nvfp4_grouped_desc& desc);
nvfp4_status check_scale_convert(const void* src, int32_t src_layout, const void* dst,
                                 int32_t dst_layout, int64_t rows, int64_t k, bool* empty);

}  // namespace nvfp4
