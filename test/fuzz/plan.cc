// SPDX-License-Identifier: MIT
// A problem and a device into checks, planner, explain and scale_bytes; every answer is held
// against 128-bit arithmetic.
#include "host/plan/plan.h"

#include <cinttypes>

#include "host/plan/checked.h"
#include "host/words/explain.h"
#include "test/host/plan_rules.h"
#include "tools/harness/problem.h"
#include "tools/testing/fuzz_input.h"

namespace {

using host_test::Wide;

// Half of the sizes are small, a quarter stand beside a power of two, a quarter are anything.
int64_t size(fuzz::Input& input) {
  const uint8_t how = input.byte();
  if (how < 128) return input.byte();
  if (how < 192) return int64_t((uint64_t{1} << (how % 64)) + input.byte() - 128);
  return input.number<int64_t>();
}

void* address(fuzz::Input& input) { return reinterpret_cast<void*>(input.number<uint64_t>() << 4); }
const float* floats(fuzz::Input& input) { return static_cast<const float*>(address(input)); }

// What an input that ends here leaves at its default.
void add_fields(fuzz::Input& input, nvfp4_gemm_desc& g) {
  const auto below = [&](int32_t count) { return int32_t(input.byte()) % count; };
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4 + below(2);
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4 + below(2);
  g.d_type = NVFP4_TYPE_F16 + below(3);
  g.c_type = below(4), g.bias_type = below(4), g.activation = below(support::kActivations);
  g.scalar_mode = below(2), g.cd_order = below(2), g.bias_axis = below(2);
  g.batch_invariant = below(2);
  if (below(4) == 1) {
    g.a_type = NVFP4_TYPE_F16 + below(2);
    g.a_scales = nullptr;
  }
  if (g.c_type != 0) g.c = address(input), g.beta = input.number<float>();
  g.c_ld = below(2) ? size(input) : g.d_ld, g.c_batch_stride = size(input);
  if (g.bias_type != 0) g.bias = address(input);
  g.b_tensor_scale_columns = 64 * below(3);
  if (below(2) || g.b_tensor_scale_columns != 0) g.b_tensor_scale = floats(input);
  if (below(2)) g.a_tensor_scale = floats(input);
  if (g.a_tensor_scale != nullptr) g.a_tensor_scale_rows = below(2);
  if (g.scalar_mode != NVFP4_SCALARS_HOST) {
    g.alpha_device = floats(input);
    if (g.c_type != 0) g.beta_device = floats(input);
  }
  if (g.a_type != NVFP4_TYPE_NONE || below(4) != 1) return;
  g.a_packing = NVFP4_PACKING_SM90_TOKENS_1;
  g.a_scales = nullptr, g.a_ld = 0, g.a_batch_stride = g.a_batch_stride / 256 * 256;
}

nvfp4_gemm_desc problem(fuzz::Input& input) {
  const char* const names[] = {nullptr, nvfp4::variant_at(0).name,
                               nvfp4::variant_at(nvfp4::kVariantCount - 1).name, "none"};
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  const bool dense = input.byte() % 4 != 0;
  g.m = size(input), g.n = size(input), g.l = size(input);
  g.k = size(input);
  if (dense) g.k = g.k / 32 * 32;
  g.variant = input.pick(names);
  g.pdl = input.byte() % 4;
  g.alpha = input.number<float>();
  g.a_ld = dense ? g.k : size(input), g.b_ld = dense ? g.k : size(input);
  g.d_ld = dense ? g.n : size(input);
  g.a_batch_stride = size(input), g.b_batch_stride = size(input), g.d_batch_stride = size(input);
  g.a_scales_batch_stride_bytes = size(input), g.b_scales_batch_stride_bytes = size(input);
  g.a = address(input), g.a_scales = address(input);
  g.b = address(input), g.b_scales = address(input), g.d = address(input);
  add_fields(input, g);
  return g;
}

// The bytes of scales, once more; the library's 0 stands for all that it refuses.
Wide wide_scale_bytes(int64_t rows, int64_t k, int32_t layout) {
  if (rows < 0 || k < 0 || k % 16 != 0) return 0;
  const Wide linear = Wide(rows) * Wide(k / 16);
  const Wide tiles = ((Wide(rows) + 127) / 128) * ((Wide(k) + 63) / 64) * 512;
  const Wide bytes = layout == NVFP4_SCALE_LAYOUT_LINEAR  ? linear
                     : layout == NVFP4_SCALE_LAYOUT_128X4 ? tiles
                                                          : 0;
  return bytes > INT64_MAX ? 0 : bytes;
}

// The last byte that the problem touches in D lies inside the address space, and so on for the
// rest: what the checks passed must be true in 128 bits.
void check_extents(const nvfp4_gemm_desc& g) {
  const Wide limit = Wide(1) << 64;
  const auto last = [&](const void* first, int64_t rows, int64_t ld, int64_t row, int64_t stride,
                        int bits) {
    const Wide elements =
        Wide(g.l - 1) * Wide(g.l == 1 ? 0 : stride) + Wide(rows - 1) * Wide(ld) + Wide(row);
    return Wide(reinterpret_cast<uint64_t>(first)) + elements * Wide(bits) / 8;
  };
  const bool by_row = g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  const int64_t lines = by_row ? g.m : g.n, length = by_row ? g.n : g.m;
  const int d_bits = g.d_type == NVFP4_TYPE_F32 ? 32 : 16;
  fuzz::expect(last(g.d, lines, g.d_ld, length, g.d_batch_stride, d_bits) <= limit,
               "D ends too far");
  if (g.k == 0) return;
  const bool packed = g.a_packing != NVFP4_PACKING_NONE;
  const int a_bits = g.a_type == NVFP4_TYPE_NONE && !packed ? 4 : 16;
  const int64_t a_row = packed ? (g.k + 255) / 256 * 256 : g.k;
  fuzz::expect(last(g.a, g.m, packed ? a_row : g.a_ld, a_row, g.a_batch_stride, a_bits) <= limit,
               "A ends too far");
  fuzz::expect(last(g.b, g.n, g.b_ld, g.k, g.b_batch_stride, 4) <= limit, "B ends too far");
}

// Tokens in fp16 beyond what their kernel takes, scales in tiles beyond 2^62 bytes, or more CTAs
// than a grid has where not the widest tile may be taken.
bool may_be_too_large(const nvfp4_gemm_desc& g, int32_t capability) {
  const Wide rows = (Wide(g.m) + 255) / 256 * 256, k = (Wide(g.k) + 255) / 256 * 256;
  if (g.a_type != NVFP4_TYPE_NONE || g.batch_invariant != 0) {
    return (Wide(g.m) + 7) / 8 * ((Wide(g.n) + 63) / 64) * Wide(g.l) * 8 > INT32_MAX;
  }
  if (capability == 90) return rows * k * 2 * Wide(g.l) > Wide(INT32_MAX) * 256 * 64;
  if (capability / 10 == 12) {
    return (Wide(g.m) + 127) / 128 * ((Wide(g.n) + 127) / 128) * Wide(g.l) > INT32_MAX;
  }
  const Wide tallest = (Wide(g.m > g.n ? g.m : g.n) + 127) / 128 * 128;
  return tallest * (k / 16) * Wide(g.l) > Wide(1) << 62;
}

void check_plan(const nvfp4_gemm_desc& g, int32_t capability) {
  nvfp4::Plan plan{}, again{};
  const nvfp4_status status = host_test::plan_of(g, capability, &plan);
  const bool served = nvfp4::find_architecture(capability, &again.arch_index) == NVFP4_SUCCESS;
  nvfp4::Asked asked{};
  const bool known = served && nvfp4::find_variant(g.variant, &asked) == NVFP4_SUCCESS;
  const nvfp4::Variant* const forced = asked.variant;
  const bool foreign = known && forced != nullptr && !nvfp4::serves(*forced, again.arch());
  const bool packed = g.a_packing != NVFP4_PACKING_NONE && g.k > 0;
  const bool excluded =
      forced != nullptr &&
      (forced->a_type != g.a_type || (g.batch_invariant != 0 && !forced->batch_invariant) ||
       (packed && !forced->workspace_tokens));
  const bool no_kernel = (g.a_type != NVFP4_TYPE_NONE || packed) && capability != 90;
  const bool huge = status == NVFP4_STATUS_LIMIT && may_be_too_large(g, capability);
  fuzz::expect(
      (status == NVFP4_SUCCESS) == (served && !foreign && !excluded && !no_kernel && !huge),
      "a legal problem without a plan");
  if (status != NVFP4_SUCCESS) return;
  const std::string wrong = host_test::complaint(g, plan);
  fuzz::expect(wrong.empty(), "a plan that is none", wrong.c_str());
  fuzz::expect(
      host_test::plan_of(g, capability, &again) == NVFP4_SUCCESS && host_test::same(plan, again),
      "the second answer differs");
}

// Whatever the room, what fits is written, ends in a NUL, and nothing lies after it.
void check_explain(const nvfp4_gemm_desc& g, int32_t capability, int32_t sms, uint16_t room) {
  static char whole[4096], part[4096 + 1];
  const nvfp4_status status = nvfp4_gemm_explain(&g, capability, sms, whole, sizeof whole);
  if (status != NVFP4_SUCCESS) return;
  const size_t length = strlen(whole);
  fuzz::expect(length < 2048, "2048 bytes are not plenty");
  const size_t bytes = room % sizeof whole;
  memset(part, 'x', sizeof part);
  const nvfp4_status cut = nvfp4_gemm_explain(&g, capability, sms, part, bytes);
  fuzz::expect((cut == NVFP4_SUCCESS) == (bytes > length), "a buffer taken or refused wrongly");
  fuzz::expect(part[bytes] == 'x', "explain writes after its buffer");
  if (bytes == 0) return;
  const size_t fits = bytes - 1 < length ? bytes - 1 : length;
  fuzz::expect(memcmp(part, whole, fits) == 0 && part[fits] == '\0',
               "explain cuts its text wrongly");
}

// ---- grouped products --------------------------------------------------------------------------

nvfp4_grouped_desc groups_of(fuzz::Input& input, const nvfp4_gemm_desc& g) {
  nvfp4_grouped_desc x = NVFP4_GROUPED_DESC_INIT;
  x.gemm = &g;
  x.rows_kind = NVFP4_ROWS_ENDS + int32_t(input.byte()) % 2;
  if (x.rows_kind == NVFP4_ROWS_COUNTS) x.capacity = size(input);
  x.rows = static_cast<const int32_t*>(address(input));
  if (input.byte() % 4 == 1) x.scale_rows = static_cast<const int32_t*>(address(input));
  if (input.byte() % 2) x.group_alpha = floats(input);
  if (input.byte() % 8 == 1) x.group_d_tensor_scale = floats(input);
  if (input.byte() % 2) x.bias_group_stride = size(input);
  x.rows_hint = int32_t(size(input));
  x.b_shared = input.byte() % 2;
  return x;
}

// CTAs of the most tiles that there can be, by the header's words.
Wide most_ctas(const nvfp4_grouped_desc& x, const nvfp4_plan_info& info) {
  const nvfp4_gemm_desc& g = *x.gemm;
  const Wide t = info.tile_m, groups = g.m < g.l ? g.m : g.l;
  const Wide rows = x.rows_kind == NVFP4_ROWS_COUNTS ? Wide(g.l) * ((Wide(x.capacity) + t - 1) / t)
                                                     : groups + (Wide(g.m) - groups) / t;
  return rows * ((Wide(g.n) + info.tile_n - 1) / info.tile_n) * info.k_partitions;
}

// Each function says the same of the product, and what is planned has room in a grid.
void check_groups(const nvfp4_grouped_desc& x, int32_t capability) {
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  uint64_t bytes = 0;
  const nvfp4_status status = nvfp4_grouped_supported(&x, capability);
  fuzz::expect(nvfp4_grouped_describe(&x, capability, 1 << 20, &info) == status,
               "describe differs");
  fuzz::expect(nvfp4_grouped_workspace_bytes(&x, capability, &bytes) == status, "bytes differ");
  if (status != NVFP4_SUCCESS || info.grid_ctas == 0) return;
  fuzz::expect(bytes == info.workspace_bytes, "two answers about the workspace");
  fuzz::expect(Wide(info.grid_ctas) <= most_ctas(x, info), "CTAs for no tile");
  fuzz::expect(most_ctas(x, info) <= INT32_MAX, "more CTAs than a grid has");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz::Input input(data, bytes);
  const int32_t capabilities[] = {100, 103, 90, 120, int32_t(input.number<uint16_t>()), -1};
  const int32_t capability = input.pick(capabilities);
  const int32_t sms = input.byte() < 250 ? int32_t(input.byte()) : input.number<int32_t>();
  const uint16_t room = input.number<uint16_t>();
  const int64_t rows = size(input), k = size(input);
  const int32_t layout = int32_t(input.byte()) % 4 - 1;
  fuzz::expect(nvfp4_scale_bytes(rows, k, layout) == wide_scale_bytes(rows, k, layout),
               "bytes of scales");

  const nvfp4_gemm_desc g = problem(input);
  nvfp4::CheckedGemm checked;
  const nvfp4_status status = nvfp4::check_gemm(&g, nvfp4::Caller::run, &checked);
  if (status == NVFP4_SUCCESS && !checked.empty) {
    check_extents(g);
    check_plan(g, capability);
  }
  check_explain(g, capability, sms, room);
  check_groups(groups_of(input, g), capability);
  return 0;
}
