// SPDX-License-Identifier: MIT
// What a product reads and writes: one list for single, grouped and gated products, with or without
// a workspace. Arrays end within the address space, and nothing that is written shares a byte with
// another array.
#include <cinttypes>

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/problem/check/buffers.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

// Units from the first to the last element of an [l][rows][columns] array.
bool array_extent(int64_t l, int64_t stride, int64_t rows, int64_t ld, int64_t columns,
                  int64_t* units) {
  int64_t matrix;
  if (!extent(rows, ld, columns, &matrix)) return false;
  return extent(l, l == 1 ? 0 : stride, matrix, units);
}

// Bytes of the scales of A or D of all groups. Each group begins a new tile of 128x4 scales, so the
// number of tiles depends on row counts in device memory. This is the most.
bool scale_bytes_of_groups(const GroupArrays& groups, int64_t rows, int64_t count, int64_t k,
                           int32_t layout, int32_t format, int64_t* bytes) {
  int64_t one;
  if (groups.capacity == 0 || layout != NVFP4_SCALE_LAYOUT_128X4) {
    return grouped_scale_bytes(rows, count, k, layout, format, bytes);
  }
  return scale_bytes_for(groups.capacity, k, layout, format, &one) && multiply(one, count, bytes);
}

// Bytes of the scales of all batches, padding included.
bool all_scale_bytes(const Operand& x, const GroupArrays* token_groups, int64_t* bytes) {
  int64_t one;
  if (token_groups != nullptr) {
    return scale_bytes_of_groups(*token_groups, x.rows, x.l, x.k, x.layout, x.format, bytes);
  }
  return scale_bytes_of(x, x.layout, &one) &&
         extent(x.l, x.l == 1 ? 0 : x.scales_stride, one, bytes);
}

// Units of all matrices.
nvfp4_status add_packed(const Operand& x, Buffers* buffers) {
  const Packing& packing = *find_packing(x.packing);
  int64_t matrix, bytes;
  if (!packed_bytes(x.rows, x.k, x.packing, x.format, &matrix) ||
      !extent(x.l, x.l == 1 ? 0 : packing.stride_bytes(x.stride, x.format), matrix, &bytes)) {
    return too_far(x.name);
  }
  return buffers->add(x.name, x.elements, bytes, Use::read);
}

nvfp4_status add_operand(const Operand& x, const GroupArrays* token_groups, Buffers* buffers) {
  if (x.packed()) return add_packed(x, buffers);
  int64_t elements, bytes;
  if (!array_extent(x.l, x.stride, x.rows, x.ld, x.k, &elements)) return too_far(x.name);
  if (!x.quantized()) {
    if (!multiply(elements, bytes_of_type(x.type), &bytes)) return too_far(x.name);
    return buffers->add(x.name, x.elements, bytes, Use::read);
  }
  if (!all_scale_bytes(x, token_groups, &bytes)) return too_far(x.scales_name);
  NVFP4_TRY(buffers->add(x.name, x.elements, elements / 2, Use::read));
  return buffers->add(x.scales_name, x.scales, bytes, Use::read);
}

nvfp4_status add_words(const char* name, const void* first, int64_t count, Use use,
                       Buffers* buffers) {
  constexpr int64_t kWord = 4;  // of fp32 and int32
  int64_t bytes;
  if (first == nullptr) return NVFP4_SUCCESS;
  return multiply(count, kWord, &bytes) ? buffers->add(name, first, bytes, use) : too_far(name);
}

// C or D.
nvfp4_status add_matrix(const nvfp4_gemm_desc& g, const char* name, const void* first, int32_t type,
                        int64_t ld, int64_t stride, Use use, Buffers* buffers) {
  const Lines lines = lines_of_cd(g);
  int64_t elements, bytes;
  if (!array_extent(g.l, stride, lines.count, ld, lines.length, &elements)) return too_far(name);
  if (format_of_d(type) != nullptr) return buffers->add(name, first, elements / 2, use);
  if (!multiply(elements, bytes_of_type(type), &bytes)) return too_far(name);
  return buffers->add(name, first, bytes, use);
}

// C and D are the same memory element by element, so each element is read before it is written.
bool c_is_d(const nvfp4_gemm_desc& g) {
  return g.c == g.d && g.c_type == g.d_type && g.c_ld == g.d_ld &&
         (g.l == 1 || g.c_batch_stride == g.d_batch_stride);
}

nvfp4_status add_factors(const nvfp4_gemm_desc& g, const GroupArrays* groups, Buffers* buffers) {
  const int64_t columns = g.b_tensor_scale_columns;
  const int64_t factors = columns == 0 ? 1 : ceil_div(g.n, columns);
  const int64_t batches = groups != nullptr ? 1 : g.l;  // of A
  const int64_t rows = g.a_tensor_scale_rows == 0 ? 1 : batches * g.m;
  const struct {
    const char* name;
    const float* first;
    int64_t count;
  } arrays[] = {
      {"a_tensor_scale", g.a_tensor_scale, rows},
      {"b_tensor_scale", g.b_tensor_scale, factors},
      {"b2_tensor_scale", g.b2_tensor_scale, factors},
      {"alpha_device", g.alpha_device, 1},
      {"alpha2_device", g.alpha2_device, 1},
      {"beta_device", g.beta_device, 1},
      {"d_tensor_scale", g.d_tensor_scale, 1},
  };
  for (const auto& array : arrays) {
    NVFP4_TRY(add_words(array.name, array.first, array.count, Use::read, buffers));
  }
  return NVFP4_SUCCESS;
}

// Each group may have biases of its own.
nvfp4_status add_biases(const nvfp4_gemm_desc& g, const GroupArrays* groups, Buffers* buffers) {
  const int64_t one = g.bias_axis == NVFP4_BIAS_AXIS_COLUMN ? g.n : g.m;
  const bool several = groups != nullptr && groups->bias_stride > 0;
  int64_t values, bytes;
  if (!extent(several ? g.l : 1, several ? groups->bias_stride : 0, one, &values) ||
      !multiply(values, bytes_of_type(g.bias_type), &bytes)) {
    return too_far("bias");
  }
  NVFP4_TRY(buffers->add_if_given("bias", g.bias, bytes, Use::read));
  return buffers->add_if_given("bias2", g.bias2, bytes, Use::read);
}

nvfp4_status add_groups(const nvfp4_gemm_desc& g, const GroupArrays& groups, Buffers* buffers) {
  NVFP4_TRY(add_words("rows", groups.rows, g.l, Use::read, buffers));
  NVFP4_TRY(add_words("scale_rows", groups.scale_rows, g.l, Use::read, buffers));
  NVFP4_TRY(add_words("group_alpha", groups.alpha, g.l, Use::read, buffers));
  NVFP4_TRY(add_words("group_alpha2", groups.alpha2, g.l, Use::read, buffers));
  return add_words("group_d_tensor_scale", groups.d_tensor_scale, g.l, Use::read, buffers);
}

nvfp4_status add_inputs(const nvfp4_gemm_desc& g, const GroupArrays* groups, bool sizes_alone,
                        Buffers* buffers) {
  if (g.k > 0) {
    NVFP4_TRY(add_operand(operand_a(g), groups, buffers));
    NVFP4_TRY(add_operand(operand_b(g), nullptr, buffers));
    if (is_gated(g)) NVFP4_TRY(add_operand(operand_b2(g), nullptr, buffers));
  }
  NVFP4_TRY(add_factors(g, groups, buffers));
  NVFP4_TRY(add_biases(g, groups, buffers));
  if (groups != nullptr) NVFP4_TRY(add_groups(g, *groups, buffers));
  if (!has_c(g, sizes_alone) || (c_is_d(g) && !sizes_alone)) return NVFP4_SUCCESS;
  return add_matrix(g, "c", g.c, g.c_type, g.c_ld, g.c_batch_stride, Use::read, buffers);
}

bool scale_bytes_of_d(const nvfp4_gemm_desc& g, const GroupArrays* groups, int32_t format,
                      int64_t* bytes) {
  int64_t one;
  if (groups != nullptr) {
    return scale_bytes_of_groups(*groups, g.m, g.l, g.n, g.d_scale_layout, format, bytes);
  }
  return scale_bytes_for(g.m, g.n, g.d_scale_layout, format, &one) &&
         extent(g.l, g.l == 1 ? 0 : g.d_scales_batch_stride_bytes, one, bytes);
}

nvfp4_status add_d_scales(const nvfp4_gemm_desc& g, const GroupArrays* groups, Buffers* buffers) {
  const OperandFormat* const format = format_of_d(g.d_type);
  if (format == nullptr) return NVFP4_SUCCESS;
  int64_t bytes;
  if (!scale_bytes_of_d(g, groups, format->format, &bytes)) return too_far("d_scales");
  return buffers->add("d_scales", g.d_scales, bytes, Use::written);
}

nvfp4_status add_outputs(const nvfp4_gemm_desc& g, const GroupArrays* groups, Buffers* buffers) {
  NVFP4_TRY(add_matrix(g, "d", g.d, g.d_type, g.d_ld, g.d_batch_stride, Use::written, buffers));
  NVFP4_TRY(add_d_scales(g, groups, buffers));
  NVFP4_TRY(add_words("d_amax", g.d_amax, 1, Use::written, buffers));
  const int64_t rows = groups != nullptr ? g.m : g.m * g.l;  // groups have rows of one D
  return add_words("d_row_amax", g.d_row_amax, rows, Use::written, buffers);
}

nvfp4_status list(const nvfp4_gemm_desc& g, const GroupArrays* groups, bool sizes_alone,
                  Buffers* buffers) {
  NVFP4_TRY(add_inputs(g, groups, sizes_alone, buffers));
  return add_outputs(g, groups, buffers);
}

nvfp4_status add_workspace(const nvfp4_gemm_desc& g, const GroupArrays* groups, uint64_t bytes,
                           Buffers* buffers) {
  NVFP4_TRY(rule_not_null("workspace", g.workspace));
  if (g.workspace_bytes < bytes) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                " that nvfp4_%s_workspace_bytes() says",
                g.workspace_bytes, bytes, groups != nullptr ? "grouped" : "gemm");
  }
  return buffers->add("workspace", g.workspace, static_cast<int64_t>(bytes), Use::written);
}

}  // namespace

nvfp4_status check_extents(const nvfp4_gemm_desc& g, const GroupArrays* groups) {
  Buffers buffers;
  return list(g, groups, true, &buffers);
}

nvfp4_status check_overlap(const nvfp4_gemm_desc& g, const GroupArrays* groups,
                           uint64_t workspace_bytes) {
  Buffers buffers;
  NVFP4_TRY(list(g, groups, false, &buffers));
  if (workspace_bytes > 0) NVFP4_TRY(add_workspace(g, groups, workspace_bytes, &buffers));
  return buffers.apart();
}

nvfp4_status check_workspace(const nvfp4_gemm_desc& g, const GroupArrays* groups, uint64_t bytes) {
  if (bytes == 0) return NVFP4_SUCCESS;
  Buffers buffers;
  NVFP4_TRY(list(g, groups, false, &buffers));
  NVFP4_TRY(add_workspace(g, groups, bytes, &buffers));
  return buffers.last_apart();
}

}  // namespace nvfp4
