// SPDX-License-Identifier: MIT
// Rules of the functions that work on host memory.
#include <cinttypes>

#include "host/base/formats.h"
#include "host/problem/check.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

nvfp4_status check_matrix(int64_t rows, int64_t k) {
  NVFP4_TRY(rule_range("rows", rows, INT64_MAX));
  NVFP4_TRY(rule_range("k", k, INT64_MAX));
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", k, kScaleBlock, "");
}

nvfp4_status scale_range(const char* name, const void* scales, int32_t layout, int64_t rows,
                         int64_t k, AddressRange* range) {
  NVFP4_TRY(rule_not_null(name, scales));
  int64_t bytes;
  if (!scale_bytes(rows, k, layout, &bytes)) return too_far(name);
  return rule_address_range(name, scales, bytes, range);
}

nvfp4_status check_buffers(const float* x, int64_t x_ld, int64_t rows, int64_t k, const void* codes,
                           int64_t codes_ld, const void* scales, int32_t scale_layout) {
  int64_t x_elements, x_bytes, code_elements;
  AddressRange x_range, code_range, scales_range;
  NVFP4_TRY(rule_not_null("x", x));
  NVFP4_TRY(rule_aligned("x", x, alignof(float)));
  if (!extent(rows, x_ld, k, &x_elements) || !multiply(x_elements, sizeof(float), &x_bytes)) {
    return too_far("x");
  }
  NVFP4_TRY(rule_address_range("x", x, x_bytes, &x_range));
  NVFP4_TRY(rule_not_null("codes", codes));
  if (!extent(rows, codes_ld, k, &code_elements)) return too_far("codes");
  NVFP4_TRY(rule_address_range("codes", codes, code_elements / 2, &code_range));
  NVFP4_TRY(scale_range("scales", scales, scale_layout, rows, k, &scales_range));
  NVFP4_TRY(rule_apart("codes", code_range, "x", x_range));
  NVFP4_TRY(rule_apart("scales", scales_range, "x", x_range));
  return rule_apart("scales", scales_range, "codes", code_range);
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
  AddressRange from, to;
  NVFP4_TRY(scale_range("src", src, src_layout, rows, k, &from));
  NVFP4_TRY(scale_range("dst", dst, dst_layout, rows, k, &to));
  return rule_apart("dst", to, "src", from);
}

}  // namespace nvfp4
