// SPDX-License-Identifier: MIT
// Every rule of the header about arguments, in the header's order. Pure: looks at no driver.
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

enum class Caller {
  run,        // device pointers; what the kernels of this version can do
  question,   // the same; with no address at all, sizes and types alone
  reference,  // host pointers
};

// The rules of nvfp4_gemm_desc that come before its variant, and those after it. `known` is the
// caller's desc as this version knows it: what an older, shorter one does not have is 0.
nvfp4_status check_kind(const nvfp4_gemm_desc* desc, Caller caller, nvfp4_gemm_desc* known);
nvfp4_status check_operands(const nvfp4_gemm_desc& desc, Caller caller, bool sizes_alone);

// A question without any address: its rules about addresses are skipped.
bool asks_about_sizes(const nvfp4_gemm_desc& desc, Caller caller);

// The rules for the addresses that a plan is run with: struct_size and what is not there yet, then
// the rules that addresses alone can break, in a desc that passed check_gemm with others.
nvfp4_status check_addresses_struct(const nvfp4_gemm_addresses& addresses, bool grouped, bool gated,
                                    nvfp4_gemm_addresses* known);
nvfp4_status check_new_addresses(const nvfp4_gemm_desc& desc);

// The workspace of a problem that passed check_gemm and needs that many bytes of it: there, large
// enough, apart from D and from what is read.
nvfp4_status check_workspace(const nvfp4_gemm_desc& desc, uint64_t bytes);

nvfp4_status check_quantize(const float* x, int64_t x_ld, int64_t rows, int64_t k,
                            float tensor_scale, const void* codes, int64_t codes_ld,
                            const void* scales, int32_t scale_layout, bool* empty);
// nvfp4_quantize_desc for each function that takes one; of `workspace` numbers alone are looked at.
enum class QuantizerCall { workspace, quantize, dequantize, quantize_host, dequantize_host };
nvfp4_status check_quantizer(const nvfp4_quantize_desc* desc, QuantizerCall call, bool* empty);
// The format of quantized codes and the rule of their scales; whether all formats are there, or
// NVFP4 alone.
nvfp4_status check_format(int32_t format, int32_t scale_rule, bool all);
nvfp4_status check_fused(const nvfp4_fused_quantize_desc* desc, bool* empty);
// The rules of nvfp4_grouped_desc before its variant, and those after it. `gemm` is desc->gemm as
// the kernels take it: with l groups, and A, C and D without batches, whose strides are 0.
nvfp4_status check_grouped_kind(const nvfp4_grouped_desc* desc, Caller caller,
                                nvfp4_grouped_desc* known, nvfp4_gemm_desc* gemm);
nvfp4_status check_grouped_operands(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& gemm,
                                    Caller caller, bool sizes_alone);
// The rules for row ends that a plan is run with.
nvfp4_status check_row_ends(const nvfp4_gemm_desc& gemm, const int32_t* rows);
nvfp4_status check_scale_convert(const void* src, int32_t src_layout, const void* dst,
                                 int32_t dst_layout, int64_t rows, int64_t k, bool* empty);

}  // namespace nvfp4
