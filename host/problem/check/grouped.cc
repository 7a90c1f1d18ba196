// SPDX-License-Identifier: MIT
// The rules of nvfp4_grouped_desc, in the order of the header's list.
#include <cinttypes>
#include <cstddef>

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/problem/enumeration.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

nvfp4_status not_there(const char* what) {
  return fail(NVFP4_STATUS_NOT_SUPPORTED,
              "%s: grouped products do not have that in version %d.%d.%d", what,
              NVFP4_VERSION_MAJOR, NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH);
}

// The rows of l groups, `capacity` rows each, must be among the m that exist.
nvfp4_status check_capacity(const nvfp4_grouped_desc& d, const nvfp4_gemm_desc& g) {
  if (d.rows_kind == NVFP4_ROWS_ENDS) {
    if (d.capacity == 0) return NVFP4_SUCCESS;
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "capacity = %" PRId64 " must be 0 where rows_kind = NVFP4_ROWS_ENDS", d.capacity);
  }
  int64_t rows;
  if (g.l == 0 || g.m == 0) return NVFP4_SUCCESS;
  if (d.capacity == 0) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "capacity = 0 must be at least 1 where rows_kind = NVFP4_ROWS_COUNTS");
  }
  if (multiply(d.capacity, g.l, &rows) && rows <= g.m) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "capacity * l = %" PRId64 " * %" PRId64 " is more than m = %" PRId64, d.capacity, g.l,
              g.m);
}

// A stride of 0 repeats one matrix, which is a mistake unless b_shared says so.
nvfp4_status check_group_stride(const nvfp4_grouped_desc& d, const char* name, int64_t stride) {
  if (d.b_shared == 0 && stride == 0) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "%s = 0 with l = %" PRId64 " groups: set b_shared = 1 if all groups use one B",
                name, d.gemm->l);
  }
  if (d.b_shared == 0 || stride == 0) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "%s = %" PRId64 " must be 0 where b_shared = 1", name,
              stride);
}

nvfp4_status check_shared(const nvfp4_grouped_desc& d, const nvfp4_gemm_desc& g) {
  if (g.l == 1 || g.k == 0) return NVFP4_SUCCESS;
  NVFP4_TRY(check_group_stride(d, "b_batch_stride", g.b_batch_stride));
  if (g.b_packing != NVFP4_PACKING_NONE) return NVFP4_SUCCESS;
  return check_group_stride(d, "b_scales_batch_stride_bytes", g.b_scales_batch_stride_bytes);
}

nvfp4_status check_group_alpha(const char* name, const float* alphas, const nvfp4_gemm_desc& g) {
  if (alphas == nullptr || g.scalar_mode == NVFP4_SCALARS_HOST) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "%s = %p must be NULL where scalar_mode = NVFP4_SCALARS_DEVICE", name,
              static_cast<const void*>(alphas));
}

nvfp4_status check_group_alphas(const float* alpha, const float* alpha2, const nvfp4_gemm_desc& g) {
  NVFP4_TRY(check_group_alpha("group_alpha", alpha, g));
  if (alpha2 == nullptr || is_gated(g)) return check_group_alpha("group_alpha2", alpha2, g);
  return fail(NVFP4_STATUS_INVALID_VALUE, "group_alpha2 = %p must be NULL where b2 is NULL",
              static_cast<const void*>(alpha2));
}

// They are for scales in 128x4 tiles: those of A, or of D if A has none.
nvfp4_status check_scale_rows(const int32_t* scale_rows, const nvfp4_gemm_desc& g) {
  const bool of_d = format_of_d(g.d_type) != nullptr && g.a_type != NVFP4_TYPE_NONE;
  const int32_t layout = of_d ? g.d_scale_layout : g.a_scale_layout;
  if (scale_rows == nullptr || layout == NVFP4_SCALE_LAYOUT_128X4) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "scale_rows = %p must be NULL where %s = %s",
              static_cast<const void*>(scale_rows), of_d ? "d_scale_layout" : "a_scale_layout",
              enumerator_name(Enumeration::scale_layout, layout));
}

// A tensor scale for each group, where D has one at all.
nvfp4_status check_group_d_scale(const float* scales, const nvfp4_gemm_desc& g) {
  if (scales == nullptr || g.d_type == NVFP4_TYPE_NVFP4) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "group_d_tensor_scale = %p must be NULL where d_type = %s",
              static_cast<const void*>(scales), enumerator_name(Enumeration::type, g.d_type));
}

// A bias per row belongs to the rows of all groups, whatever their group is.
nvfp4_status check_bias_stride(int64_t stride, const nvfp4_gemm_desc& g) {
  NVFP4_TRY(rule_range("bias_group_stride", stride, INT64_MAX));
  const bool there = g.bias_type != NVFP4_TYPE_NONE;
  if (stride == 0) return NVFP4_SUCCESS;
  if (there && g.bias_axis == NVFP4_BIAS_AXIS_COLUMN) {
    return rule_at_least("bias_group_stride", stride, "n", g.n);
  }
  return fail(NVFP4_STATUS_INVALID_VALUE, "bias_group_stride = %" PRId64 " must be 0 where %s = %s",
              stride, there ? "bias_axis" : "bias_type",
              there ? enumerator_name(Enumeration::bias_axis, g.bias_axis)
                    : enumerator_name(Enumeration::type, g.bias_type));
}

// The rows of a packed matrix lie k-block by k-block, those of groups begin anywhere.
nvfp4_status check_grouped_gemm(const nvfp4_gemm_desc& g) {
  if (has_packed_tokens(g)) {
    return fail(NVFP4_STATUS_NOT_SUPPORTED,
                "a_packing = %s: grouped products do not have that in version %d.%d.%d",
                enumerator_name(Enumeration::packing, g.a_packing), NVFP4_VERSION_MAJOR,
                NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH);
  }
  return g.k == 0 && is_gated(g) ? not_there("b2 with k = 0") : NVFP4_SUCCESS;
}

}  // namespace

nvfp4_status check_grouped_kind(const nvfp4_grouped_desc* desc, Caller caller,
                                nvfp4_grouped_desc* known, nvfp4_gemm_desc* gemm) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(read_struct(*desc, sizeof *desc, "nvfp4_grouped_desc", known));
  NVFP4_TRY(rule_not_null("gemm", known->gemm));
  NVFP4_TRY(rule_enumerator("rows_kind", known->rows_kind, Enumeration::rows,
                            only(NVFP4_ROWS_ENDS) | only(NVFP4_ROWS_COUNTS)));
  NVFP4_TRY(rule_range("capacity", known->capacity, INT32_MAX));
  NVFP4_TRY(rule_range("rows_hint", known->rows_hint, INT32_MAX));
  NVFP4_TRY(rule_switch("b_shared", known->b_shared));
  NVFP4_TRY(rule_reserved(known->reserved));
  NVFP4_TRY(check_kind(known->gemm, caller, gemm));
  gemm->a_batch_stride = gemm->a_scales_batch_stride_bytes = 0;
  gemm->c_batch_stride = gemm->d_batch_stride = 0;
  if (format_of_d(gemm->d_type) != nullptr) gemm->d_scales_batch_stride_bytes = 0;
  NVFP4_TRY(check_grouped_gemm(*gemm));
  NVFP4_TRY(check_capacity(*known, *gemm));
  NVFP4_TRY(check_group_alphas(known->group_alpha, known->group_alpha2, *gemm));
  NVFP4_TRY(check_scale_rows(known->scale_rows, *gemm));
  NVFP4_TRY(check_group_d_scale(known->group_d_tensor_scale, *gemm));
  return check_bias_stride(known->bias_group_stride, *gemm);
}

// Arrays with 4 bytes for each group.
nvfp4_status check_group_arrays(const nvfp4_gemm_desc& gemm, const GroupArrays& groups) {
  NVFP4_TRY(check_group_alphas(groups.alpha, groups.alpha2, gemm));
  NVFP4_TRY(check_scale_rows(groups.scale_rows, gemm));
  NVFP4_TRY(check_group_d_scale(groups.d_tensor_scale, gemm));
  NVFP4_TRY(rule_not_null("rows", groups.rows));
  NVFP4_TRY(rule_aligned("rows", groups.rows, 4));
  NVFP4_TRY(rule_aligned("scale_rows", groups.scale_rows, 4));
  NVFP4_TRY(rule_aligned("group_alpha", groups.alpha, 4));
  NVFP4_TRY(rule_aligned("group_alpha2", groups.alpha2, 4));
  return rule_aligned("group_d_tensor_scale", groups.d_tensor_scale, 4);
}

GroupArrays group_arrays(const nvfp4_grouped_desc& desc) {
  return {desc.rows,
          desc.scale_rows,
          desc.group_alpha,
          desc.group_alpha2,
          desc.group_d_tensor_scale,
          desc.capacity,
          desc.bias_group_stride};
}

nvfp4_status check_grouped_operands(const nvfp4_grouped_desc& desc, const nvfp4_gemm_desc& g,
                                    Caller caller, bool sizes_alone) {
  const GroupArrays groups = group_arrays(desc);
  NVFP4_TRY(check_companions(g, sizes_alone));
  if (!sizes_alone) NVFP4_TRY(check_addresses(g, caller));
  NVFP4_TRY(check_leading_dimensions(g, sizes_alone));
  NVFP4_TRY(check_input_strides(g, sizes_alone));
  NVFP4_TRY(check_shared(desc, g));
  NVFP4_TRY(check_scaled_d(g, 1));  // it has the rows of all groups
  if (sizes_alone) return check_extents(g, &groups);
  NVFP4_TRY(check_group_arrays(g, groups));
  return check_overlap(g, &groups, 0);
}

}  // namespace nvfp4
