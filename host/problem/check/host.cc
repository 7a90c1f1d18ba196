// SPDX-License-Identifier: MIT
// Rules of the functions that work on host memory.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/problem/check.h"
#include "host/problem/check/buffers.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int32_t kFormat = NVFP4_OPERAND_FORMAT_NVFP4;

nvfp4_status check_matrix(int64_t rows, int64_t k) {
  NVFP4_TRY(rule_range("rows", rows, INT64_MAX));
  NVFP4_TRY(rule_range("k", k, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", k, kScaleBlock, "");
}

nvfp4_status check_buffers(const float* x, int64_t x_ld, int64_t rows, int64_t k, const void* codes,
                           int64_t codes_ld, const void* scales, int32_t scale_layout) {
  constexpr Use kEither = Use::written;  // x is read where the others are written, or the reverse
  Buffers buffers;
  NVFP4_TRY(buffers.add_matrix("x", x, rows, x_ld, k, sizeof(float), kEither));
  NVFP4_TRY(buffers.add_codes(codes, rows, codes_ld, k, kEither));
  NVFP4_TRY(buffers.add_scales("scales", scales, rows, k, scale_layout, kFormat, kEither));
  return buffers.apart();
}

}  // namespace

nvfp4_status check_quantize(const float* x, int64_t x_ld, int64_t rows, int64_t k,
                            float tensor_scale, const void* codes, int64_t codes_ld,
                            const void* scales, int32_t scale_layout, bool* empty) {
  NVFP4_TRY(check_matrix(rows, k));
  // Compares bits: a caller that flushes subnormals would see them as 0.
  NVFP4_TRY(rule_tensor_scale(tensor_scale));
  NVFP4_TRY(rule_scale_layout("scale_layout", scale_layout));
  *empty = rows == 0 || k == 0;
  if (*empty) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_at_least("x_ld", x_ld, "k", k));
  NVFP4_TRY(rule_at_least("codes_ld", codes_ld, "k", k));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "codes_ld", codes_ld, 2, ""));
  return check_buffers(x, x_ld, rows, k, codes, codes_ld, scales, scale_layout);
}

nvfp4_status check_scale_convert(const void* src, int32_t src_layout, const void* dst,
                                 int32_t dst_layout, int64_t rows, int64_t k, bool* empty) {
  NVFP4_TRY(rule_scale_layout("src_layout", src_layout));
  NVFP4_TRY(rule_scale_layout("dst_layout", dst_layout));
  NVFP4_TRY(check_matrix(rows, k));
  *empty = rows == 0 || k == 0;
  if (*empty) return NVFP4_SUCCESS;
  Buffers buffers;
  NVFP4_TRY(buffers.add_scales("src", src, rows, k, src_layout, kFormat, Use::read));
  NVFP4_TRY(buffers.add_scales("dst", dst, rows, k, dst_layout, kFormat, Use::written));
  return buffers.apart();
}

}  // namespace nvfp4
