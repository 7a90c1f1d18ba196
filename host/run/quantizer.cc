// SPDX-License-Identifier: MIT
#include "host/run/quantizer.h"

#include <algorithm>
#include <climits>

#include "host/base/f32.h"
#include "host/base/size.h"
#include "host/plan/family.h"
#include "host/problem/enumeration.h"
#include "host/run/enqueue.h"
#include "host/run/image.h"
#include "kernel/common/scale_tile.h"
#include "kernel/quantize/params.h"

namespace nvfp4 {

namespace {

// Twice as many CTAs as fit with 48 registers per thread, so that short CTAs make room while long
// ones run.
constexpr int64_t kCtasPerSm = 20;
// CTAs that take rows of groups, as many as run at once: each has a list of all groups.
constexpr int64_t kGroupCtasPerSm = 16;

// Entries follow the element types in the order of the enumeration.
QuantizerEntry entry_of(QuantizerEntry first, int32_t type) {
  return static_cast<QuantizerEntry>(first + (type - NVFP4_TYPE_F16));
}

bool multiple(const void* address, int64_t row_bytes, uint64_t of) {
  return (reinterpret_cast<uintptr_t>(address) | static_cast<uint64_t>(row_bytes)) % of == 0;
}

Grid grid_of(const QuantizerGrid& of, bool early) {
  return {of.ctas, of.rows, kQuantizeThreads, 0, 1, early};
}
Grid grid_of(const Site& site, int64_t rows, int64_t k, bool early) {
  return grid_of(quantizer_grid(rows, k, int64_t{site.sm_count} * kCtasPerSm), early);
}

uint32_t count_amax_ctas(const nvfp4_quantize_desc& desc) {
  const QuantizerGrid grid = amax_grid(desc);
  return grid.ctas * grid.rows;
}

QuantizeParams make_params(const nvfp4_quantize_desc& desc) {
  QuantizeParams p{};
  p.x = desc.x;
  p.x_ld = desc.x_ld;
  p.nvfp4.codes = static_cast<uint8_t*>(desc.codes);
  p.nvfp4.codes_row_bytes = desc.codes_ld / 2;
  p.nvfp4.scales = static_cast<uint8_t*>(desc.scales);
  p.nvfp4.rows = static_cast<uint32_t>(desc.rows);
  p.nvfp4.blocks = static_cast<uint32_t>(desc.k / kScaleBlock);
  p.nvfp4.scales_are_tiles = desc.scale_layout == NVFP4_SCALE_LAYOUT_128X4;
  p.nvfp4.vectors = multiple(desc.x, desc.x_ld % 16 * element_bytes(desc.x_type), 16) &&
                    multiple(desc.codes, desc.codes_ld / 2, 8);
  p.scale.device = desc.tensor_scale_device;
  p.scale.partial_amax = static_cast<float*>(desc.workspace);
  p.scale.amax_ctas = count_amax_ctas(desc);
  p.scale.value = desc.tensor_scale;
  p.scale.source = static_cast<uint32_t>(desc.tensor_scale_mode);
  p.format = static_cast<uint32_t>(desc.format);
  p.floor_rule = desc.scale_rule == NVFP4_SCALE_RULE_FLOOR;
  p.batches = 1;
  return p;
}

FusedParams make_params(const nvfp4_fused_quantize_desc& desc) {
  const int64_t element = element_bytes(desc.type);
  FusedParams p{};
  p.x = const_cast<void*>(desc.x);
  p.x_ld = desc.x_ld;
  p.y = desc.y;
  p.y_ld = desc.y_ld;
  p.weight = const_cast<void*>(desc.weight);
  p.nvfp4.codes = static_cast<uint8_t*>(desc.codes);
  p.nvfp4.codes_row_bytes = desc.codes_ld / 2;
  p.nvfp4.scales = static_cast<uint8_t*>(desc.scales);
  p.nvfp4.rows = static_cast<uint32_t>(desc.rows);
  p.nvfp4.blocks = static_cast<uint32_t>(desc.k / kScaleBlock);
  p.nvfp4.scales_are_tiles = desc.scale_layout == NVFP4_SCALE_LAYOUT_128X4;
  p.nvfp4.vectors = multiple(desc.x, desc.x_ld % 16 * element, 16) &&
                    (desc.y == nullptr || multiple(desc.y, desc.y_ld % 16 * element, 16)) &&
                    multiple(desc.weight, 0, 16) && multiple(desc.codes, desc.codes_ld / 2, 8);
  p.scale.device = desc.tensor_scale_device;
  p.scale.value = desc.tensor_scale;
  p.scale.source = static_cast<uint32_t>(desc.tensor_scale_mode);
  p.k = f32_from_bits(f32_from_integer(static_cast<int32_t>(desc.k)).bits);
  p.epsilon = desc.epsilon;
  p.format = static_cast<uint32_t>(desc.format);
  p.floor_rule = desc.scale_rule == NVFP4_SCALE_RULE_FLOOR;
  return p;
}

// The same, but without a second factor, for the kernel that computes a scale for each row.
FusedParams rows_params(const nvfp4_quantize_desc& desc) {
  const QuantizeParams params = make_params(desc);
  FusedParams p{};
  p.x = params.x;
  p.x_ld = params.x_ld;
  p.nvfp4 = params.nvfp4;
  p.scale = params.scale;
  return p;
}

// One CTA per row, with no more warps than there are blocks to keep.
Grid grid_of_rows(const Nvfp4Matrix& q, int32_t type, bool early) {
  const uint32_t kept = element_bytes(type) == 4 ? kKeptOfRow<4> : kKeptOfRow<2>;
  const uint32_t threads = ceil_div(ceil_div(q.blocks, kept), 32u) * 32;
  return {q.rows, 1, std::min(threads, kRowThreads), 0, 1, early};
}

// The most tiles that the groups can have, each of `tile_rows` rows and of as many blocks as a warp
// has lanes, but no more CTAs than run at once.
Grid grid_of_groups(const Site& site, const GroupParams& groups, int64_t rows, int64_t blocks,
                    int64_t tile_rows) {
  const int64_t most = std::min<int64_t>(groups.count, rows) + rows / tile_rows;
  const int64_t at_once = int64_t{site.sm_count} * kGroupCtasPerSm;
  const auto ctas = static_cast<uint32_t>(std::min(most * ceil_div(blocks, int64_t{32}), at_once));
  return {ctas, 1, kQuantizeThreads, 0, 1, false};
}

// Decodes to bf16, without a tensor scale.
QuantizeParams decoding_of(const Operand& from, int64_t batches, void* to) {
  QuantizeParams p{};
  p.x = to;
  p.x_ld = from.k;
  p.nvfp4.codes = static_cast<uint8_t*>(const_cast<void*>(from.elements));
  p.nvfp4.codes_row_bytes = from.ld / 2;
  p.nvfp4.scales = static_cast<uint8_t*>(const_cast<void*>(from.scales));
  p.nvfp4.rows = static_cast<uint32_t>(from.rows);
  p.nvfp4.blocks = static_cast<uint32_t>(from.k / kScaleBlock);
  p.nvfp4.scales_are_tiles = from.layout == NVFP4_SCALE_LAYOUT_128X4;
  p.nvfp4.vectors = 1;
  p.scale.value = 1;
  p.scale.source = kTensorScaleValue;
  p.format = static_cast<uint32_t>(from.format);
  p.codes_batch_bytes = from.stride / 2;
  p.scales_batch_bytes = from.scales_stride;
  p.batches = static_cast<uint32_t>(batches);
  return p;
}

// Kernels write and read the tokens that the GPU's own products take. Those for older drivers take
// none.
nvfp4_status check_packing(const Site& site, int32_t packing) {
  if (packing == NVFP4_PACKING_NONE) return NVFP4_SUCCESS;
  uint32_t index, newest;
  NVFP4_TRY(site_architecture(site, &index));
  if (kArchitectures[index].family->token_packing == packing) return NVFP4_SUCCESS;
  NVFP4_TRY(find_architecture(site.capability, &newest));
  const Architecture& newer = kArchitectures[newest];
  if (newer.family->token_packing == packing) {
    const int needed = driver_for_row(newer);
    if (needed == INT_MAX) return refuse_gpu(site.capability);
    return refuse_driver(site.driver->version, "packed tokens on this GPU need", needed);
  }
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "packing = %s: no kernel for compute capability %s writes or reads such tokens",
              enumerator_name(Enumeration::packing, packing),
              capability_text(site.capability).text);
}

nvfp4_status find_kernel(const Site& site, QuantizerEntry entry, CUkernel* kernel) {
  uint32_t index;
  NVFP4_TRY(site_architecture(site, &index));
  return load_quantizer(*site.driver, index, entry, kernel);
}

nvfp4_status enqueue(const Site& site, QuantizerEntry entry, const Grid& grid, const void* params,
                     void* stream) {
  CUkernel kernel;
  NVFP4_TRY(find_kernel(site, entry, &kernel));
  return launch(site, kernel, grid, params, static_cast<CUstream>(stream));
}

}  // namespace

static_assert(static_cast<int>(kTensorScaleValue) == NVFP4_TENSOR_SCALE_VALUE &&
              static_cast<int>(kTensorScalePointer) == NVFP4_TENSOR_SCALE_DEVICE &&
              static_cast<int>(kTensorScaleAmax) == NVFP4_TENSOR_SCALE_AMAX &&
              static_cast<int>(kTensorScaleRowAmax) == NVFP4_TENSOR_SCALE_ROW_AMAX &&
              static_cast<int>(kTensorScaleRows) == NVFP4_TENSOR_SCALE_ROWS &&
              static_cast<int>(kTensorScaleFromRowAmax) == NVFP4_TENSOR_SCALE_FROM_ROW_AMAX);

nvfp4_status enqueue_quantize(const nvfp4_quantize_desc& desc, void* stream) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(check_packing(site, desc.packing));
  return enqueue_quantize_on(site, desc, desc.pdl != NVFP4_PDL_OFF, stream);
}

nvfp4_status ready_quantize_f32(const Site& site) {
  CUkernel kernel;
  return find_kernel(site, kQuantizer_quantize_f32, &kernel);
}

nvfp4_status enqueue_quantize_on(const Site& site, const nvfp4_quantize_desc& desc, bool early,
                                 void* stream) {
  const bool four_over_six = desc.scale_rule == NVFP4_SCALE_RULE_4OVER6;
  const bool row_amax = desc.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX;
  if (row_amax && !four_over_six) {
    NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
    const FusedParams params = rows_params(desc);
    return enqueue(site, entry_of(kQuantizer_quantize_rows_f16, desc.x_type),
                   grid_of_rows(params.nvfp4, desc.x_type, early), &params, stream);
  }
  const QuantizeParams params = make_params(desc);
  const bool amax = desc.tensor_scale_mode == NVFP4_TENSOR_SCALE_AMAX;
  const QuantizerEntry second = entry_of(
      four_over_six ? kQuantizer_quantize_4over6_f16 : kQuantizer_quantize_f16, desc.x_type);
  CUkernel kernel;
  NVFP4_TRY(find_kernel(site, second, &kernel));  // before anything is enqueued
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  if (amax) {
    NVFP4_TRY(enqueue(site, entry_of(kQuantizer_amax_f16, desc.x_type),
                      grid_of(amax_grid(desc), early), &params, stream));
  }
  // The second kernel itself waits for the first.
  const Grid grid = row_amax ? Grid{params.nvfp4.rows, 1, kQuantizeThreads, 0, 1, early}
                             : grid_of(site, desc.rows, desc.k, early || amax);
  return enqueue(site, second, grid, &params, stream);
}

nvfp4_status enqueue_dequantize(const nvfp4_quantize_desc& desc, void* stream) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(check_packing(site, desc.packing));
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  const QuantizeParams params = make_params(desc);
  return enqueue(site, entry_of(kQuantizer_dequantize_f16, desc.x_type),
                 grid_of(site, desc.rows, desc.k, desc.pdl != NVFP4_PDL_OFF), &params, stream);
}

nvfp4_status enqueue_fused_quantize(const nvfp4_fused_quantize_desc& desc, void* stream) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(check_packing(site, desc.packing));
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  const FusedParams params = make_params(desc);
  const bool early = desc.pdl != NVFP4_PDL_OFF;
  if (desc.operation == NVFP4_FUSED_SILU_MUL &&
      desc.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX) {
    return enqueue(site, entry_of(kQuantizer_quantize_rows_f16, desc.type),
                   grid_of_rows(params.nvfp4, desc.type, early), &params, stream);
  }
  if (desc.operation == NVFP4_FUSED_SILU_MUL) {
    return enqueue(site, entry_of(kQuantizer_silu_mul_f16, desc.type),
                   grid_of(site, desc.rows, desc.k, early), &params, stream);
  }
  Grid grid{};
  grid.ctas = params.nvfp4.rows;
  grid.rows = grid.cluster = 1;
  grid.threads = kNormThreads;
  grid.early = early;
  return enqueue(site, entry_of(kQuantizer_rms_norm_f16, desc.type), grid, &params, stream);
}

nvfp4_status ready_decoding(const Site& site, bool of_groups) {
  CUkernel kernel;
  return find_kernel(site, of_groups ? kQuantizer_dequantize_groups : kQuantizer_dequantize_bf16,
                     &kernel);
}

nvfp4_status enqueue_decoding(const Site& site, const Operand& from, int64_t batches, void* to,
                              void* stream) {
  const QuantizeParams p = decoding_of(from, batches, to);
  return enqueue(site, kQuantizer_dequantize_bf16,
                 grid_of(site, from.rows * batches, from.k, false), &p, stream);
}

nvfp4_status enqueue_group_decoding(const Site& site, const Operand& from,
                                    const GroupParams& groups, void* to, void* stream) {
  const DequantizeGroupsParams p{decoding_of(from, 1, to), groups};
  const Grid grid =
      grid_of_groups(site, groups, from.rows, p.quantized.nvfp4.blocks, int64_t{kDequantizedRows});
  return enqueue(site, kQuantizer_dequantize_groups, grid, &p, stream);
}

nvfp4_status ready_scale_tiling(const Site& site, bool of_groups) {
  CUkernel kernel;
  if (of_groups) NVFP4_TRY(find_kernel(site, kQuantizer_scale_groups, &kernel));
  return find_kernel(site, kQuantizer_scale_convert, &kernel);
}

nvfp4_status enqueue_scale_tiling(const Site& site, const ScaleTiling& tiling, bool early,
                                  void* stream) {
  ScaleConvertParams params{};
  params.from = static_cast<const uint8_t*>(tiling.from);
  params.to = static_cast<uint8_t*>(tiling.to);
  params.from_batch_bytes = tiling.from_batch_bytes;
  const int64_t k = tiling.scales * kScaleBlock;                                  // as for NVFP4
  scale_bytes(tiling.rows, k, NVFP4_SCALE_LAYOUT_128X4, &params.to_batch_bytes);  // counted
  params.rows = static_cast<uint32_t>(tiling.rows);
  params.blocks = static_cast<uint32_t>(tiling.scales);
  params.batches = static_cast<uint32_t>(tiling.batches);
  params.to_tiles = 1;
  return enqueue(site, kQuantizer_scale_convert,
                 grid_of(site, tiling.rows * tiling.batches, k, early), &params, stream);
}

nvfp4_status enqueue_group_tiling(const Site& site, const ScaleTiling& tiling,
                                  const GroupParams& groups, void* stream) {
  ScaleGroupsParams params{};
  params.from = static_cast<const uint8_t*>(tiling.from);
  params.to = static_cast<uint8_t*>(tiling.to);
  params.groups = groups;
  params.blocks = static_cast<uint32_t>(tiling.scales);
  const Grid grid =
      grid_of_groups(site, groups, tiling.rows, tiling.scales, int64_t{kScaleTileRows});
  return enqueue(site, kQuantizer_scale_groups, grid, &params, stream);
}

nvfp4_status enqueue_scale_convert(const void* src, int32_t src_layout, void* dst,
                                   int32_t dst_layout, int64_t rows, int64_t k, void* stream) {
  Site site;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  ScaleConvertParams params{};
  params.from = static_cast<const uint8_t*>(src);
  params.to = static_cast<uint8_t*>(dst);
  params.rows = static_cast<uint32_t>(rows);
  params.blocks = static_cast<uint32_t>(k / kScaleBlock);
  params.batches = 1;
  params.from_tiles = src_layout == NVFP4_SCALE_LAYOUT_128X4;
  params.to_tiles = dst_layout == NVFP4_SCALE_LAYOUT_128X4;
  return enqueue(site, kQuantizer_scale_convert, grid_of(site, rows, k, false), &params, stream);
}

nvfp4_status ready_quantizer(const Site& site) {
  const RelaxedCapture relaxed(*site.driver);
  uint32_t arch;
  NVFP4_TRY(site_architecture(site, &arch));
  for (uint32_t i = 0; i < kQuantizerEntryCount; ++i) {
    const auto entry = static_cast<QuantizerEntry>(i);
    if (!has_quantizer_entry(arch, entry)) continue;
    CUkernel kernel;
    NVFP4_TRY(find_kernel(site, entry, &kernel));
    NVFP4_TRY(load_into_context(*site.driver, kernel));
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
