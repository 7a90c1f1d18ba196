// SPDX-License-Identifier: MIT
// Addresses of nvfp4_gemm_desc: given, aligned, inside the address space, without overlap.
#include <cinttypes>
#include <initializer_list>

#include "host/base/operand_format.h"
#include "host/problem/fields.h"
#include "host/problem/rule.h"

namespace nvfp4 {

namespace {

// ---- the bytes of an array ----------------------------------------------------------------------

// Units from the first to the last element of an [l][rows][columns] array.
bool array_extent(int64_t l, int64_t stride, int64_t rows, int64_t ld, int64_t columns,
                  int64_t* units) {
  int64_t matrix;
  if (!extent(rows, ld, columns, &matrix)) return false;
  return extent(l, l == 1 ? 0 : stride, matrix, units);
}

struct Named {
  const char* name;
  AddressRange range;
};

// Arrays that a product reads, in the order of the struct.
struct Inputs {
  Named of[16];
  int count;
};

nvfp4_status push(Inputs* inputs, const char* name, const void* first, int64_t bytes) {
  Named& input = inputs->of[inputs->count++];
  input.name = name;
  return rule_address_range(name, first, bytes, &input.range);
}

nvfp4_status push_operand(Inputs* inputs, const Operand& x) {
  int64_t elements, bytes, one, scales;
  if (!array_extent(x.l, x.stride, x.rows, x.ld, x.k, &elements)) return too_far(x.name);
  if (!x.quantized()) {
    if (!multiply(elements, bytes_of_type(x.type), &bytes)) return too_far(x.name);
    return push(inputs, x.name, x.elements, bytes);
  }
  if (!scale_bytes_of(x, x.layout, &one) ||
      !extent(x.l, x.l == 1 ? 0 : x.scales_stride, one, &scales)) {
    return too_far(x.scales_name);
  }
  NVFP4_TRY(push(inputs, x.name, x.elements, elements / 2));
  return push(inputs, x.scales_name, x.scales, scales);
}

// A NULL pointer has no bytes.
nvfp4_status push_floats(Inputs* inputs, const char* name, const float* first, int64_t count) {
  return push(inputs, name, first, first == nullptr ? 0 : count * int64_t{sizeof(float)});
}

nvfp4_status range_of_cd(const nvfp4_gemm_desc& g, const char* name, const void* first,
                         int32_t type, int64_t ld, int64_t stride, AddressRange* range) {
  const Lines lines = lines_of_cd(g);
  int64_t elements, bytes;
  if (!array_extent(g.l, stride, lines.count, ld, lines.length, &elements)) return too_far(name);
  if (format_of_d(type) != nullptr) return rule_address_range(name, first, elements / 2, range);
  if (!multiply(elements, bytes_of_type(type), &bytes)) return too_far(name);
  return rule_address_range(name, first, bytes, range);
}

nvfp4_status range_of_d(const nvfp4_gemm_desc& g, AddressRange* range) {
  return range_of_cd(g, "d", g.d, g.d_type, g.d_ld, g.d_batch_stride, range);
}

nvfp4_status range_of_d_scales(const nvfp4_gemm_desc& g, AddressRange* range) {
  const OperandFormat& format = *format_of_d(g.d_type);
  int64_t one, bytes;
  if (!scale_bytes_for(g.m, g.n, g.d_scale_layout, format.format, &one) ||
      !extent(g.l, g.l == 1 ? 0 : g.d_scales_batch_stride_bytes, one, &bytes)) {
    return too_far("d_scales");
  }
  return rule_address_range("d_scales", g.d_scales, bytes, range);
}

nvfp4_status range_of_c(const nvfp4_gemm_desc& g, AddressRange* range) {
  return range_of_cd(g, "c", g.c, g.c_type, g.c_ld, g.c_batch_stride, range);
}

// The outputs other than D and its scales.
nvfp4_status find_amax(const nvfp4_gemm_desc& g, Inputs* amax) {
  amax->count = 0;
  NVFP4_TRY(push_floats(amax, "d_amax", g.d_amax, 1));
  const bool groups = g.d_batch_stride == 0;  // they have rows of one D
  int64_t bytes = 0;
  if (g.d_row_amax != nullptr && !multiply(groups ? g.m : g.m * g.l, sizeof(float), &bytes)) {
    return too_far("d_row_amax");
  }
  return push(amax, "d_row_amax", g.d_row_amax, bytes);
}

// All inputs except C, which may be the same memory as D.
nvfp4_status find_inputs(const nvfp4_gemm_desc& g, Inputs* inputs) {
  inputs->count = 0;
  if (g.k > 0) {
    NVFP4_TRY(push_operand(inputs, operand_a(g)));
    NVFP4_TRY(push_operand(inputs, operand_b(g)));
    if (is_gated(g)) NVFP4_TRY(push_operand(inputs, operand_b2(g)));
  }
  const int64_t columns = g.b_tensor_scale_columns;
  const int64_t factors = columns == 0 ? 1 : ceil_div(g.n, columns);
  const int64_t rows = g.a_tensor_scale_rows == 0 ? 1 : g.l * g.m;
  NVFP4_TRY(push_floats(inputs, "a_tensor_scale", g.a_tensor_scale, rows));
  NVFP4_TRY(push_floats(inputs, "b_tensor_scale", g.b_tensor_scale, factors));
  NVFP4_TRY(push_floats(inputs, "b2_tensor_scale", g.b2_tensor_scale, factors));
  NVFP4_TRY(push_floats(inputs, "alpha_device", g.alpha_device, 1));
  NVFP4_TRY(push_floats(inputs, "alpha2_device", g.alpha2_device, 1));
  NVFP4_TRY(push_floats(inputs, "beta_device", g.beta_device, 1));
  NVFP4_TRY(push_floats(inputs, "d_tensor_scale", g.d_tensor_scale, 1));
  if (g.bias == nullptr) return NVFP4_SUCCESS;
  const int64_t values = g.bias_axis == NVFP4_BIAS_AXIS_COLUMN ? g.n : g.m;
  const int64_t bytes = values * bytes_of_type(g.bias_type);
  NVFP4_TRY(push(inputs, "bias", g.bias, bytes));
  return g.bias2 == nullptr ? NVFP4_SUCCESS : push(inputs, "bias2", g.bias2, bytes);
}

nvfp4_status apart_from_inputs(const char* name, const AddressRange& range, const Inputs& inputs) {
  for (int i = 0; i < inputs.count; ++i) {
    NVFP4_TRY(rule_apart(name, range, inputs.of[i].name, inputs.of[i].range));
  }
  return NVFP4_SUCCESS;
}

// C and D are the same memory element by element, so each element is read before it is written.
bool c_is_d(const nvfp4_gemm_desc& g) {
  return g.c == g.d && g.c_type == g.d_type && g.c_ld == g.d_ld &&
         (g.l == 1 || g.c_batch_stride == g.d_batch_stride);
}

}  // namespace

int64_t bytes_of_type(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

bool has_no_address(const nvfp4_gemm_desc& g) {
  const void* const addresses[] = {g.a,
                                   g.a_scales,
                                   g.a_tensor_scale,
                                   g.b,
                                   g.b_scales,
                                   g.c,
                                   g.b_tensor_scale,
                                   g.d,
                                   g.d_scales,
                                   g.d_tensor_scale,
                                   g.d_amax,
                                   g.d_row_amax,
                                   g.bias,
                                   g.alpha_device,
                                   g.beta_device,
                                   g.workspace,
                                   g.b2,
                                   g.b2_scales,
                                   g.b2_tensor_scale,
                                   g.bias2,
                                   g.alpha2_device};
  for (const void* address : addresses) {
    if (address != nullptr) return false;
  }
  return true;
}

// With K = 0 the operands have no elements and are not checked.
nvfp4_status check_addresses(const nvfp4_gemm_desc& g, Caller caller) {
  enum class Need { never, always, if_k };
  const bool quantized = g.a_type == NVFP4_TYPE_NONE;
  const uint64_t a_bytes = quantized ? 1 : static_cast<uint64_t>(bytes_of_type(g.a_type));
  const uint64_t c_bytes = static_cast<uint64_t>(bytes_of_type(g.c_type));
  const bool d_codes = format_of_d(g.d_type) != nullptr;
  const uint64_t d_bytes = d_codes ? 1 : static_cast<uint64_t>(bytes_of_type(g.d_type));
  const struct {
    const char* name;
    const void* address;
    Need need;
    uint64_t host_alignment;  // the alignment that the CPU needs for the type
  } rows[] = {
      {"a", g.a, Need::if_k, a_bytes},
      {"a_scales", g.a_scales, quantized ? Need::if_k : Need::never, 1},
      {"b", g.b, Need::if_k, 1},
      {"b_scales", g.b_scales, Need::if_k, 1},
      {"b2", g.b2, Need::never, 1},
      {"b2_scales", g.b2_scales, is_gated(g) ? Need::if_k : Need::never, 1},
      {"c", g.c, Need::never, c_bytes},
      {"d", g.d, Need::always, d_bytes},
      {"d_scales", g.d_scales, d_codes ? Need::always : Need::never, 1},
      {"workspace", g.workspace, Need::never, 1},
  };
  for (const auto& row : rows) {
    if (row.need == Need::if_k && g.k == 0) continue;
    if (row.need != Need::never) NVFP4_TRY(rule_not_null(row.name, row.address));
    const uint64_t bytes = caller == Caller::reference ? row.host_alignment : kAddressAlignment;
    NVFP4_TRY(rule_aligned(row.name, row.address, bytes));
  }
  NVFP4_TRY(rule_aligned("a_tensor_scale", g.a_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("b_tensor_scale", g.b_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("b2_tensor_scale", g.b2_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("d_tensor_scale", g.d_tensor_scale, alignof(float)));
  NVFP4_TRY(rule_aligned("d_amax", g.d_amax, alignof(float)));
  NVFP4_TRY(rule_aligned("d_row_amax", g.d_row_amax, alignof(float)));
  NVFP4_TRY(rule_aligned("alpha_device", g.alpha_device, alignof(float)));
  NVFP4_TRY(rule_aligned("alpha2_device", g.alpha2_device, alignof(float)));
  NVFP4_TRY(rule_aligned("beta_device", g.beta_device, alignof(float)));
  const auto bias_bytes = static_cast<uint64_t>(bytes_of_type(g.bias_type));
  NVFP4_TRY(rule_aligned("bias", g.bias, bias_bytes));
  return rule_aligned("bias2", g.bias2, bias_bytes);
}

nvfp4_status check_extents(const nvfp4_gemm_desc& g) {
  AddressRange range;
  Inputs inputs;
  NVFP4_TRY(range_of_d(g, &range));
  NVFP4_TRY(find_inputs(g, &inputs));
  return g.c_type == NVFP4_TYPE_NONE ? NVFP4_SUCCESS : range_of_c(g, &range);
}

// The maxima may not overlap D, its scales, an input (including C), or each other.
nvfp4_status check_amax_overlap(const nvfp4_gemm_desc& g, const Inputs& inputs) {
  if (g.d_amax == nullptr && g.d_row_amax == nullptr) return NVFP4_SUCCESS;
  AddressRange d, other;
  Inputs amax;
  NVFP4_TRY(range_of_d(g, &d));
  NVFP4_TRY(find_amax(g, &amax));
  for (const Named& one : {amax.of[0], amax.of[1]}) {
    NVFP4_TRY(rule_apart(one.name, one.range, "d", d));
    NVFP4_TRY(apart_from_inputs(one.name, one.range, inputs));
    if (format_of_d(g.d_type) != nullptr) {
      NVFP4_TRY(range_of_d_scales(g, &other));
      NVFP4_TRY(rule_apart(one.name, one.range, "d_scales", other));
    }
    if (!has_c(g, false)) continue;
    NVFP4_TRY(range_of_c(g, &other));
    NVFP4_TRY(rule_apart(one.name, one.range, "c", other));
  }
  return rule_apart("d_row_amax", amax.of[1].range, "d_amax", amax.of[0].range);
}

nvfp4_status check_overlap(const nvfp4_gemm_desc& g) {
  AddressRange d, c, scales;
  Inputs inputs;
  NVFP4_TRY(range_of_d(g, &d));
  NVFP4_TRY(find_inputs(g, &inputs));
  NVFP4_TRY(apart_from_inputs("d", d, inputs));
  NVFP4_TRY(check_amax_overlap(g, inputs));
  const bool with_c = has_c(g, false);
  if (with_c) NVFP4_TRY(range_of_c(g, &c));
  if (format_of_d(g.d_type) != nullptr) {
    NVFP4_TRY(range_of_d_scales(g, &scales));
    NVFP4_TRY(rule_apart("d_scales", scales, "d", d));
    NVFP4_TRY(apart_from_inputs("d_scales", scales, inputs));
    if (with_c) NVFP4_TRY(rule_apart("d_scales", scales, "c", c));
  }
  if (!with_c) return NVFP4_SUCCESS;
  return c_is_d(g) ? NVFP4_SUCCESS : rule_apart("d", d, "c", c);
}

nvfp4_status check_apart_from_d(const nvfp4_gemm_desc& g, const char* name, const void* first,
                                int64_t bytes) {
  AddressRange d, other;
  NVFP4_TRY(range_of_d(g, &d));
  NVFP4_TRY(rule_address_range(name, first, bytes, &other));
  Inputs amax;
  NVFP4_TRY(find_amax(g, &amax));
  NVFP4_TRY(apart_from_inputs(name, other, amax));
  return rule_apart("d", d, name, other);
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
  AddressRange workspace, other;
  Inputs inputs;
  NVFP4_TRY(
      rule_address_range("workspace", desc.workspace, static_cast<int64_t>(bytes), &workspace));
  NVFP4_TRY(range_of_d(desc, &other));
  NVFP4_TRY(rule_apart("workspace", workspace, "d", other));
  NVFP4_TRY(find_inputs(desc, &inputs));
  NVFP4_TRY(apart_from_inputs("workspace", workspace, inputs));
  NVFP4_TRY(find_amax(desc, &inputs));
  NVFP4_TRY(apart_from_inputs("workspace", workspace, inputs));
  if (format_of_d(desc.d_type) != nullptr) {
    NVFP4_TRY(range_of_d_scales(desc, &other));
    NVFP4_TRY(rule_apart("workspace", workspace, "d_scales", other));
  }
  if (!has_c(desc, false)) return NVFP4_SUCCESS;
  NVFP4_TRY(range_of_c(desc, &other));
  return rule_apart("workspace", workspace, "c", other);
}

}  // namespace nvfp4
