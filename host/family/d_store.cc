// SPDX-License-Identifier: MIT
#include "host/family/d_store.h"

#include "host/base/operand_format.h"
#include "host/driver/tensor_map.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

constexpr int64_t kPieceBytes = 16;                 // a store clips lines to multiples of this
constexpr int64_t kStrideBytes = int64_t{1} << 40;  // strides of a tensor map are shorter

bool fits_map(int64_t elements, int64_t bytes) {
  return elements < kStrideBytes / bytes && elements * bytes % kPieceBytes == 0;
}

}  // namespace

// The header's rules make the address a multiple of 16 bytes.
const char* why_not_by_tma(const nvfp4_gemm_desc& g, const Plan& plan) {
  const int64_t bytes = bytes_of_type(g.d_type);
  if (plan.gated) return "D is of two products";
  if (plan.split > 1) return "CTAs share K";
  if (plan.grouped) return "a tile ends with its group";
  if (format_of_d(g.d_type) != nullptr) return "D has scales";
  if (!plan.variant->d_by_tma) return "the tile has few tokens";
  if (plan.variant->several_tiles && bytes > 2 && make_epilogue(g).kind == kEpilogueGeneral) {
    return "beside what C or an activation takes the tile has room for boxes of 2-byte types";
  }
  if (lines_of_cd(g).length * bytes % kPieceBytes != 0) return "lines of D end between 16 bytes";
  if (!fits_map(g.d_ld, bytes)) return "d_ld is no multiple of 16 bytes below 2^40";
  if (g.l > 1 && !fits_map(g.d_batch_stride, bytes)) {
    return "d_batch_stride is no multiple of 16 bytes below 2^40";
  }
  return nullptr;
}

nvfp4_status set_d_store(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         Sm100Params* p) {
  p->d_by_tma = why_not_by_tma(g, plan) == nullptr;
  if (p->d_by_tma == 0) return NVFP4_SUCCESS;
  const Lines lines = lines_of_cd(g);
  const DMatrices d{g.d,    bytes_of_type(g.d_type), lines.length, lines.count, g.l,
                    g.d_ld, g.d_batch_stride};
  const EpilogueParams e = make_epilogue(g);
  const bool halves = e.kind == kEpilogueGeneral || (plan.variant->several_tiles && d.bytes > 2);
  const uint32_t rows = halves ? kHalfBoxRows : kBoxSide;
  const bool by_row = e.d_column == 1;
  return encode_d_map(driver, d, by_row ? kBoxSide : rows, by_row ? rows : kBoxSide, &p->d_map);
}

}  // namespace nvfp4
