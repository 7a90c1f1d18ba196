// SPDX-License-Identifier: MIT
#include "host/pack/enqueue.h"

#include <algorithm>

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/run/enqueue.h"
#include "kernel/quantize/params.h"

namespace nvfp4 {

namespace {

// Twelve CTAs with at most 40 registers per thread fit on an SM, so some wait for the others.
constexpr int64_t kCtasPerSm = 24;
constexpr int64_t kMostGridRows = 65535;

PackParams make_params(const nvfp4_pack_desc& d) {
  const OperandFormat& format = *find_operand_format(d.format);
  const Packing& packing = *find_packing(d.packing);
  const int64_t k_units = ceil_div(d.k, packing.k(format));
  PackParams p{};
  p.codes = static_cast<uint8_t*>(d.codes);
  p.codes_row_bytes = d.codes_ld / 2;
  p.codes_batch_bytes = d.l == 1 ? 0 : d.codes_batch_stride / 2;
  p.scales = static_cast<uint8_t*>(d.scales);
  p.scales_batch_bytes = d.l == 1 ? 0 : d.scales_batch_stride_bytes;
  p.packed = static_cast<uint8_t*>(d.packed) +
             d.first_row / packing.rows * k_units * packing.unit_bytes(format);
  p.packed_batch_bytes = d.l == 1 ? 0 : d.packed_batch_stride_bytes;
  p.rows = static_cast<uint32_t>(d.rows);
  p.k = static_cast<uint32_t>(d.k);
  p.batches = static_cast<uint32_t>(d.l);
  p.format = static_cast<uint32_t>(d.format);
  p.scales_are_tiles = d.scale_layout == NVFP4_SCALE_LAYOUT_128X4;
  p.swizzled = d.packing == NVFP4_PACKING_SM100_1;
  return p;
}

// A CTA takes at a time what a warp of it packs whole, a unit, or a k-block of them if they are
// swizzled: grid.x counts those along K, grid.y those along the rows of all matrices. Both loop.
Grid grid_of(const Site& site, const nvfp4_pack_desc& d) {
  const Packing& packing = *find_packing(d.packing);
  const int64_t most = int64_t{site.sm_count} * kCtasPerSm;
  const int64_t of_cta = packing.fixed_k != 0 ? packing.fixed_k : kPackedBlockK;
  const int64_t ctas = std::min(ceil_div(d.k, of_cta), most);
  const int64_t blocks = ceil_div(d.rows, packing.rows) * d.l;
  const int64_t rows = std::min({blocks, ceil_div(most, ctas), kMostGridRows});
  return {static_cast<uint32_t>(ctas), static_cast<uint32_t>(rows), kPackThreads, 0, 1, false};
}

nvfp4_status enqueue(const nvfp4_pack_desc& d, QuantizerEntry entry, void* stream) {
  Site site;
  uint32_t index;
  CUkernel kernel;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(site_architecture(site, &index));
  NVFP4_TRY(load_quantizer(*site.driver, index, entry, &kernel));
  NVFP4_TRY(check_stream(site, static_cast<CUstream>(stream)));
  const PackParams params = make_params(d);
  return launch(site, kernel, grid_of(site, d), &params, static_cast<CUstream>(stream));
}

}  // namespace

nvfp4_status enqueue_pack(const nvfp4_pack_desc& desc, void* stream) {
  return enqueue(desc, kQuantizer_pack_weights, stream);
}

nvfp4_status enqueue_unpack(const nvfp4_pack_desc& desc, void* stream) {
  return enqueue(desc, kQuantizer_unpack_weights, stream);
}

}  // namespace nvfp4
