// SPDX-License-Identifier: MIT
// Quantization on the device: from checked arguments to one or two launches.
#pragma once

#include "host/plan/plan.h"
#include "host/problem/fields.h"
#include "host/problem/quantizer.h"
#include "host/run/device.h"
#include "kernel/common/groups.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Each function takes a desc that passed its check and is not empty.
nvfp4_status enqueue_quantize(const nvfp4_quantize_desc& desc, void* stream);
// `early`: the kernel may start before earlier work has finished. It waits itself.
nvfp4_status enqueue_quantize_on(const Site& site, const nvfp4_quantize_desc& desc, bool early,
                                 void* stream);
// Loads the kernel for fp32, so that nothing is enqueued unless everything can be.
nvfp4_status ready_quantize_f32(const Site& site);
nvfp4_status enqueue_dequantize(const nvfp4_quantize_desc& desc, void* stream);
nvfp4_status enqueue_fused_quantize(const nvfp4_fused_quantize_desc& desc, void* stream);
nvfp4_status enqueue_scale_convert(const void* src, int32_t src_layout, void* dst,
                                   int32_t dst_layout, int64_t rows, int64_t k, void* stream);

// Decodes `batches` quantized matrices to bf16 [batches][rows][k]. ready_decoding() does the same
// as ready_scale_tiling() below.
nvfp4_status ready_decoding(const Site& site, bool of_groups);
nvfp4_status enqueue_decoding(const Site& site, const Operand& from, int64_t batches, void* to,
                              void* stream);
// The same for one matrix, of which only the rows of groups are decoded.
nvfp4_status enqueue_group_decoding(const Site& site, const Operand& from,
                                    const GroupParams& groups, void* to, void* stream);

// Converts linear scales of `batches` matrices, with `scales` per row, to 128x4 tiles. The matrices
// are stored without gaps.
struct ScaleTiling {
  const void* from;
  void* to;
  int64_t rows, scales, batches;
  int64_t from_batch_bytes;
};
// Loads the kernels, so that nothing is enqueued unless everything can be.
nvfp4_status ready_scale_tiling(const Site& site, bool of_groups);
// `early`: the kernel follows one that lets it start early, and waits for that one itself.
nvfp4_status enqueue_scale_tiling(const Site& site, const ScaleTiling& tiling, bool early,
                                  void* stream);
// The same for one matrix with the rows of groups, each of which begins a tile.
nvfp4_status enqueue_group_tiling(const Site& site, const ScaleTiling& tiling,
                                  const GroupParams& groups, void* stream);

// finish.cc: the second kernel of a D that is made apart from its product (host/plan/apart.h). Its
// image is the quantizer's.
//
// Loads the kernel, so that nothing is enqueued unless everything can be.
nvfp4_status ready_finish(const Site& site, const nvfp4_gemm_desc& desc, const Plan& plan);
// Enqueues the kernel behind that of the product.
nvfp4_status enqueue_finish(const Site& site, const nvfp4_gemm_desc& desc, const Plan& plan,
                            CUstream stream);

// Loads every kernel of the quantizer, with its code, into the current context.
nvfp4_status ready_quantizer(const Site& site);

}  // namespace nvfp4
