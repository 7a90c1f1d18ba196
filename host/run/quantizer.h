// SPDX-License-Identifier: MIT
// Quantization on the device: checked arguments in, one or two launches out.
#pragma once

#include "host/problem/fields.h"
#include "host/problem/quantizer.h"
#include "host/run/device.h"
#include "kernel/common/groups.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

// Each takes a desc that passed its check and is not empty.
nvfp4_status enqueue_quantize(const nvfp4_quantize_desc& desc, void* stream);
nvfp4_status enqueue_dequantize(const nvfp4_quantize_desc& desc, void* stream);
nvfp4_status enqueue_fused_quantize(const nvfp4_fused_quantize_desc& desc, void* stream);
nvfp4_status enqueue_scale_convert(const void* src, int32_t src_layout, void* dst,
                                   int32_t dst_layout, int64_t rows, int64_t k, void* stream);

// Decodes `batches` quantized matrices to bf16 [batches][rows][k]. ready_.. as below.
nvfp4_status ready_decoding(const Site& site);
nvfp4_status enqueue_decoding(const Site& site, const Operand& from, int64_t batches, void* to,
                              void* stream);

// Linear scales of `batches` matrices, each row of which has `scales`, become 128x4 tiles, one
// matrix right after the other.
struct ScaleTiling {
  const void* from;
  void* to;
  int64_t rows, scales, batches;
  int64_t from_batch_bytes;
};
// The kernels are loaded: nothing is enqueued then unless everything can be.
nvfp4_status ready_scale_tiling(const Site& site, bool of_groups);
// `early`: after another kernel that lets it start, for which it waits.
nvfp4_status enqueue_scale_tiling(const Site& site, const ScaleTiling& tiling, bool early,
                                  void* stream);
// The same of one matrix, whose rows are those of groups: each begins a tile.
nvfp4_status enqueue_group_tiling(const Site& site, const ScaleTiling& tiling,
                                  const GroupParams& groups, void* stream);

// Every kernel of it loaded, with its code in the current context.
nvfp4_status ready_quantizer(const Site& site);

}  // namespace nvfp4
