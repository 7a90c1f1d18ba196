// SPDX-License-Identifier: MIT
// The rules of nvfp4_gemm_desc, in the order of the header's list; check_gemm at the end is that
// list.
#include <cinttypes>

#include "host/check/fields.h"
#include "host/plan/variant.h"
#include "host/rule.h"

namespace nvfp4 {

namespace {

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxReferenceK = 1 << 20;             // its sums then fit 63 bits
constexpr int64_t kKernelK = 64;                        // one step of the tensor core
constexpr int64_t kAddressAlignment = 16;               // TMA and 16-byte stores
constexpr int64_t kOperandMultiple = 32;                // elements: 16 bytes, as tensor maps want
constexpr int64_t kMaxStride = (int64_t{1} << 41) - 1;  // elements: tensor maps take < 2^40 bytes

// ---- m, n, k, l --------------------------------------------------------------------------------

nvfp4_status check_k(int64_t k, Caller caller) {
  if (caller == Caller::reference) {
    NVFP4_TRY(rule_multiple(NVFP4_STATUS_INVALID_VALUE, "k", k, kScaleBlock, ""));
    return rule_range("k", k, kMaxReferenceK);
  }
  // No NVFP4 matrix has such a K, or one that this version's kernels do not take yet.
  const bool in_format = k % kScaleBlock == 0;
  return rule_multiple(in_format ? NVFP4_STATUS_NOT_SUPPORTED : NVFP4_STATUS_INVALID_VALUE, "k", k,
                       kKernelK, in_format ? ", which this version needs (the format: 16)" : "");
}

nvfp4_status check_sizes(const nvfp4_gemm_desc& g, Caller caller) {
  NVFP4_TRY(rule_range("m", g.m, kMaxSize));
  NVFP4_TRY(rule_range("n", g.n, kMaxSize));
  NVFP4_TRY(rule_range("k", g.k, kMaxSize));
  NVFP4_TRY(rule_range("l", g.l, kMaxSize));
  return check_k(g.k, caller);
}

// ---- tiles --------------------------------------------------------------------------------------

nvfp4_status check_tiles(const nvfp4_gemm_desc& g, const Variant* forced) {
  const Variant& v = variant_of_fewest_tiles(forced);
  int64_t matrix, all;
  if (count_tiles(g, v, &matrix, &all)) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_LIMIT,
              "ceil(m/%" PRIu32 ") * ceil(n/%" PRIu32 ") * l = %" PRId64 " * %" PRId64
              " tiles; at most %" PRId64,
              v.tile_tokens, v.tile_weights, matrix, g.l, kMaxTiles);
}

// ---- addresses ----------------------------------------------------------------------------------

// With K = 0 the inputs have no elements: only D is looked at.
nvfp4_status check_addresses(const nvfp4_gemm_desc& g, Caller caller) {
  enum class Need { never, always, if_k };
  const struct {
    const char* name;
    const void* address;
    Need need;
    uint64_t host_alignment;  // the CPU needs what the type needs
  } rows[] = {
      {"a", g.a, Need::if_k, 1},   {"a_scales", g.a_scales, Need::if_k, 1},
      {"b", g.b, Need::if_k, 1},   {"b_scales", g.b_scales, Need::if_k, 1},
      {"d", g.d, Need::always, 2}, {"workspace", g.workspace, Need::never, 1},
  };
  for (const auto& row : rows) {
    if (row.need == Need::if_k && g.k == 0) continue;
    if (row.need != Need::never) NVFP4_TRY(rule_not_null(row.name, row.address));
    const uint64_t bytes = caller == Caller::run ? kAddressAlignment : row.host_alignment;
    NVFP4_TRY(rule_aligned(row.name, row.address, bytes));
  }
  return NVFP4_SUCCESS;
}

// ---- leading dimensions and strides -------------------------------------------------------------

struct Operand {  // A or B, and its scales
  const char *name, *ld_name, *stride_name, *scales_name, *scales_stride_name;
  int64_t rows, k, l;
  const void *elements, *scales;
  int64_t ld, stride, scales_stride;
  int32_t layout;
};

Operand operand_a(const nvfp4_gemm_desc& g) {
  return {"a",
          "a_ld",
          "a_batch_stride",
          "a_scales",
          "a_scales_batch_stride_bytes",
          g.m,
          g.k,
          g.l,
          g.a,
          g.a_scales,
          g.a_ld,
          g.a_batch_stride,
          g.a_scales_batch_stride_bytes,
          g.a_scale_layout};
}

Operand operand_b(const nvfp4_gemm_desc& g) {
  return {"b",
          "b_ld",
          "b_batch_stride",
          "b_scales",
          "b_scales_batch_stride_bytes",
          g.n,
          g.k,
          g.l,
          g.b,
          g.b_scales,
          g.b_ld,
          g.b_batch_stride,
          g.b_scales_batch_stride_bytes,
          g.b_scale_layout};
}

nvfp4_status check_operand_ld(const Operand& x) {
  NVFP4_TRY(rule_at_least(x.ld_name, x.ld, "k", x.k));
  NVFP4_TRY(rule_range(x.ld_name, x.ld, kMaxStride));
  return rule_multiple(NVFP4_STATUS_MISALIGNED, x.ld_name, x.ld, kOperandMultiple, "");
}

nvfp4_status check_leading_dimensions(const nvfp4_gemm_desc& g) {
  if (g.k > 0) {
    NVFP4_TRY(check_operand_ld(operand_a(g)));
    NVFP4_TRY(check_operand_ld(operand_b(g)));
  }
  return rule_at_least("d_ld", g.d_ld, "n", g.n);
}

nvfp4_status check_operand_strides(const Operand& x) {
  if (x.l == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range(x.stride_name, x.stride, kMaxStride));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, x.stride_name, x.stride, kOperandMultiple, ""));
  NVFP4_TRY(rule_range(x.scales_stride_name, x.scales_stride, INT64_MAX));
  NVFP4_TRY(rule_multiple(NVFP4_STATUS_MISALIGNED, x.scales_stride_name, x.scales_stride,
                          kAddressAlignment, ""));
  int64_t bytes;
  if (!scale_bytes(x.rows, x.k, x.layout, &bytes)) return too_far(x.scales_name);
  if (x.scales_stride == 0) return NVFP4_SUCCESS;
  return rule_at_least(x.scales_stride_name, x.scales_stride, "nvfp4_scale_bytes()", bytes);
}

// Batches of D lie behind each other, or their rows interleave.
nvfp4_status check_d_stride(const nvfp4_gemm_desc& g) {
  if (g.l == 1) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_range("d_batch_stride", g.d_batch_stride, INT64_MAX));
  int64_t matrix, row;
  const bool behind = extent(g.m, g.d_ld, g.n, &matrix) && g.d_batch_stride >= matrix;
  const bool interleaved =
      g.d_batch_stride >= g.n && extent(g.l, g.d_batch_stride, g.n, &row) && g.d_ld >= row;
  if (behind || interleaved) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "d_batch_stride = %" PRId64
              " lets batches of D touch; at least (m-1) * d_ld + n, or rows "
              "that interleave: n <= d_batch_stride and d_ld = %" PRId64
              " >= (l-1) * d_batch_stride + n",
              g.d_batch_stride, g.d_ld);
}

nvfp4_status check_strides(const nvfp4_gemm_desc& g) {
  if (g.k > 0) {
    NVFP4_TRY(check_operand_strides(operand_a(g)));
    NVFP4_TRY(check_operand_strides(operand_b(g)));
  }
  return check_d_stride(g);
}

// ---- overlap ------------------------------------------------------------------------------------

// Units from the first to the last element of an [l][rows][columns] array.
bool array_extent(int64_t l, int64_t stride, int64_t rows, int64_t ld, int64_t columns,
                  int64_t* units) {
  int64_t matrix;
  if (!extent(rows, ld, columns, &matrix)) return false;
  return extent(l, l == 1 ? 0 : stride, matrix, units);
}

nvfp4_status check_apart(const char* name, const AddressRange& d, const Operand& x) {
  int64_t elements, one, scales;
  if (!array_extent(x.l, x.stride, x.rows, x.ld, x.k, &elements)) return too_far(x.name);
  if (!scale_bytes(x.rows, x.k, x.layout, &one) ||
      !extent(x.l, x.l == 1 ? 0 : x.scales_stride, one, &scales)) {
    return too_far(x.scales_name);
  }
  AddressRange range;
  NVFP4_TRY(rule_address_range(x.name, x.elements, elements / 2, &range));
  NVFP4_TRY(rule_apart(name, d, x.name, range));
  NVFP4_TRY(rule_address_range(x.scales_name, x.scales, scales, &range));
  return rule_apart(name, d, x.scales_name, range);
}

nvfp4_status range_of_d(const nvfp4_gemm_desc& g, AddressRange* range) {
  constexpr int64_t kBytesF16 = 2;
  int64_t elements, bytes;
  if (!array_extent(g.l, g.d_batch_stride, g.m, g.d_ld, g.n, &elements) ||
      !multiply(elements, kBytesF16, &bytes)) {
    return too_far("d");
  }
  return rule_address_range("d", g.d, bytes, range);
}

nvfp4_status check_overlap(const nvfp4_gemm_desc& g) {
  AddressRange d;
  NVFP4_TRY(range_of_d(g, &d));
  if (g.k == 0) return NVFP4_SUCCESS;
  NVFP4_TRY(check_apart("d", d, operand_a(g)));
  return check_apart("d", d, operand_b(g));
}

}  // namespace

nvfp4_status check_gemm(const nvfp4_gemm_desc* desc, Caller caller, CheckedGemm* checked) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(rule_struct_size(desc, desc->struct_size, sizeof *desc, "nvfp4_gemm_desc"));
  const nvfp4_gemm_desc& g = *desc;
  NVFP4_TRY(check_sizes(g, caller));
  NVFP4_TRY(check_enums(g, caller));
  NVFP4_TRY(check_switches(g));
  NVFP4_TRY(check_absent(g));
  checked->desc = desc;
  NVFP4_TRY(find_variant(g.variant, &checked->forced));
  checked->empty = g.m == 0 || g.n == 0 || g.l == 0;
  if (checked->empty) return NVFP4_SUCCESS;
  NVFP4_TRY(check_tiles(g, checked->forced));
  NVFP4_TRY(check_addresses(g, caller));
  NVFP4_TRY(check_leading_dimensions(g));
  NVFP4_TRY(check_strides(g));
  return check_overlap(g);
}

nvfp4_status check_workspace(const nvfp4_gemm_desc& desc, uint64_t bytes) {
  if (bytes == 0) return NVFP4_SUCCESS;
  NVFP4_TRY(rule_not_null("workspace", desc.workspace));
  if (desc.workspace_bytes < bytes) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                " that nvfp4_gemm_workspace_bytes() says",
                desc.workspace_bytes, bytes);
  }
  AddressRange workspace, d;
  NVFP4_TRY(
      rule_address_range("workspace", desc.workspace, static_cast<int64_t>(bytes), &workspace));
  NVFP4_TRY(range_of_d(desc, &d));
  NVFP4_TRY(rule_apart("workspace", workspace, "d", d));
  NVFP4_TRY(check_apart("workspace", workspace, operand_a(desc)));
  return check_apart("workspace", workspace, operand_b(desc));
}

nvfp4_status check_addresses_struct(const nvfp4_gemm_addresses& addresses) {
  NVFP4_TRY(rule_struct_size(&addresses, addresses.struct_size, sizeof addresses,
                             "nvfp4_gemm_addresses"));
  return check_absent_addresses(addresses);
}

nvfp4_status check_new_addresses(const nvfp4_gemm_desc& desc) {
  NVFP4_TRY(check_addresses(desc, Caller::run));
  return check_overlap(desc);
}

}  // namespace nvfp4
