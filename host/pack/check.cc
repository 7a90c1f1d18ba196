// SPDX-License-Identifier: MIT
#include "host/pack/check.h"

#include <cinttypes>

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/problem/check/buffers.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxStride = (int64_t{1} << 41) - 1;  // that of b, as a tensor map has it
constexpr int64_t kCodesMultiple = 32;                  // 16 bytes

nvfp4_status check_numbers(const nvfp4_pack_desc& d) {
  NVFP4_TRY(rule_range("n", d.n, kMaxSize));
  NVFP4_TRY(rule_range("k", d.k, kMaxSize));
  NVFP4_TRY(rule_range("l", d.l, kMaxSize));
  NVFP4_TRY(rule_enumerator("packing", d.packing, Enumeration::packing,
                            every(Enumeration::packing) & ~only(NVFP4_PACKING_NONE) &
                                ~only(NVFP4_PACKING_SM90_TOKENS_1)));
  NVFP4_TRY(rule_enumerator("format", d.format, Enumeration::operand_format,
                            every(Enumeration::operand_format)));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", d.k,
                          find_operand_format(d.format)->block, ""));
  NVFP4_TRY(rule_scale_layout("scale_layout", d.scale_layout));
  return rule_reserved(d.reserved);
}

// The rows of the call end at those of the matrix, or at the end of a unit.
nvfp4_status check_rows(nvfp4_pack_desc* d) {
  const int64_t unit = find_packing(d->packing)->rows;
  NVFP4_TRY(rule_range("first_row", d->first_row, kMaxSize));
  NVFP4_TRY(rule_range("rows", d->rows, kMaxSize));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "first_row", d->first_row, unit, ""));
  if (d->first_row + d->rows > d->n) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "first_row + rows = %" PRId64 " + %" PRId64 " is more than n = %" PRId64,
                d->first_row, d->rows, d->n);
  }
  if (d->rows == 0) d->rows = d->n - d->first_row;
  if (d->first_row + d->rows == d->n) return NVFP4_SUCCESS;
  return rule_multiple(NVFP4_STATUS_INVALID_VALUE, "rows", d->rows, unit,
                       ", and does not end at n");
}

// An array of l matrices, `unit` bytes or elements at a time.
nvfp4_status check_stride(const char* name, int64_t stride, int64_t l, int64_t unit,
                          const char* what, int64_t matrix) {
  if (l == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range(name, stride, INT64_MAX));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, name, stride, unit, ""));
  return rule_at_least(name, stride, what, matrix);
}

nvfp4_status add_array(const char* name, const void* first, const nvfp4_pack_desc& d,
                       int64_t stride, int64_t matrix, bool on_host, Use use, Buffers* buffers) {
  int64_t bytes;
  if (!extent(d.l, d.l == 1 ? 0 : stride, matrix, &bytes)) return too_far(name);
  const uint64_t alignment = on_host ? 1 : static_cast<uint64_t>(kAddressAlignment);
  return buffers->add_aligned(name, first, bytes, alignment, use);
}

nvfp4_status check_arrays(const nvfp4_pack_desc& d, PackCall call) {
  NVFP4_TRY(rule_at_least("codes_ld", d.codes_ld, "k", d.k));
  NVFP4_TRY(rule_range("codes_ld", d.codes_ld, kMaxStride));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, "codes_ld", d.codes_ld, kCodesMultiple, ""));
  int64_t codes, scales, packed;
  if (!extent(d.rows, d.codes_ld, d.k, &codes)) return too_far("codes");
  if (!scale_bytes_for(d.rows, d.k, d.scale_layout, d.format, &scales)) return too_far("scales");
  if (!packed_bytes(d.n, d.k, d.packing, d.format, &packed)) return too_far("packed");
  const int64_t unit = find_packing(d.packing)->unit_bytes(*find_operand_format(d.format));
  NVFP4_TRY(check_stride("codes_batch_stride", d.codes_batch_stride, d.l, kCodesMultiple,
                         "(rows-1) * codes_ld + k", codes));
  NVFP4_TRY(check_stride("scales_batch_stride_bytes", d.scales_batch_stride_bytes, d.l,
                         kAddressAlignment, "nvfp4_scale_bytes_for()", scales));
  NVFP4_TRY(check_stride("packed_batch_stride_bytes", d.packed_batch_stride_bytes, d.l, unit,
                         "nvfp4_packed_bytes()", packed));
  const bool on_host = call == PackCall::pack_host || call == PackCall::unpack_host;
  const bool packs = call == PackCall::pack || call == PackCall::pack_host;
  const Use plain = packs ? Use::read : Use::written;
  Buffers buffers;
  NVFP4_TRY(add_array("codes", d.codes, d, d.codes_batch_stride / 2, codes / 2, on_host, plain,
                      &buffers));
  NVFP4_TRY(add_array("scales", d.scales, d, d.scales_batch_stride_bytes, scales, on_host, plain,
                      &buffers));
  NVFP4_TRY(add_array("packed", d.packed, d, d.packed_batch_stride_bytes, packed, on_host,
                      packs ? Use::written : Use::read, &buffers));
  return buffers.apart();
}

}  // namespace

nvfp4_status check_pack(const nvfp4_pack_desc* desc, PackCall call, nvfp4_pack_desc* known,
                        bool* empty) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(read_struct(*desc, sizeof *desc, "nvfp4_pack_desc", known));
  NVFP4_TRY(check_numbers(*known));
  *empty = known->n == 0 || known->k == 0 || known->l == 0;
  if (*empty) return NVFP4_SUCCESS;
  NVFP4_TRY(check_rows(known));
  *empty = known->rows == 0;
  return *empty ? NVFP4_SUCCESS : check_arrays(*known, call);
}

}  // namespace nvfp4
