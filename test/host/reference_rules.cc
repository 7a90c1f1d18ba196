// SPDX-License-Identifier: MIT
// Rules of the fields that the reference takes and kernels do not take yet, and questions without
// addresses.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;

// Two batches of 3 x 70 with everything: memory that is there, in one piece, so that a rule that is
// not kept shows as a success. C is as long as 70 columns of it 70 apart.
struct Everything {
  alignas(64) uint8_t a[2 * 3 * 16] = {}, b[2 * 70 * 16] = {}, scales[256] = {};
  alignas(64) float d[600] = {}, c[2500] = {}, bias[70] = {};
  float a_scale = 1, b_scale[2] = {1, 1}, alpha = 1, beta = 1;
  Desc g = NVFP4_GEMM_DESC_INIT;

  Everything() {
    g.m = 3, g.n = 70, g.k = 16, g.l = 2;
    g.a = a, g.b = b, g.a_scales = scales, g.b_scales = scales;
    g.a_ld = g.b_ld = 32, g.a_batch_stride = 96, g.b_batch_stride = 2240;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.d = d, g.d_type = NVFP4_TYPE_F32, g.d_ld = 72, g.d_batch_stride = 216;
    g.c = c, g.c_type = NVFP4_TYPE_F16, g.c_ld = 70, g.c_batch_stride = 0;
    g.bias = bias, g.bias_type = NVFP4_TYPE_BF16;
    g.alpha = g.beta = 1;
    g.a_tensor_scale = &a_scale, g.b_tensor_scale = b_scale, g.b_tensor_scale_columns = 64;
  }
};

struct Rule {
  const char* name;
  std::function<void(Everything&, Desc&)> change;
  nvfp4_status status;
  const char* sentence;
};

const void* plus(const void* address, int bytes) {
  return static_cast<const uint8_t*>(address) + bytes;
}

void by_pointer(Everything& x, Desc& g) {
  g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = &x.alpha, g.beta_device = &x.beta;
}

const Rule kRules[] = {
    {"unchanged", [](Everything&, Desc&) {}, NVFP4_SUCCESS, ""},
    {"batch_invariant", [](Everything&, Desc& g) { g.batch_invariant = 1; }, NVFP4_SUCCESS, ""},
    {"a_type with scales", [](Everything&, Desc& g) { g.a_type = NVFP4_TYPE_BF16; },
     NVFP4_STATUS_INVALID_VALUE, "must be NULL where a_type = NVFP4_TYPE_BF16"},
    {"d_type", [](Everything&, Desc& g) { g.d_type = NVFP4_TYPE_NVFP4; }, NVFP4_STATUS_NULL_POINTER,
     "d_scales is NULL and is required here"},
    {"d_tensor_scale", [](Everything& x, Desc& g) { g.d_tensor_scale = &x.beta; },
     NVFP4_STATUS_INVALID_VALUE, "must be NULL where d_type = NVFP4_TYPE_F32"},

    // what goes together
    {"c without a type", [](Everything&, Desc& g) { g.c_type = 0; }, NVFP4_STATUS_INVALID_VALUE,
     "must be NULL where c_type = NVFP4_TYPE_NONE"},
    {"beta without a C", [](Everything&, Desc& g) { g.c_type = 0, g.c = nullptr; },
     NVFP4_STATUS_INVALID_VALUE, "beta = 1 must be 0 where c_type = NVFP4_TYPE_NONE"},
    {"no C", [](Everything&, Desc& g) { g.c_type = 0, g.c = nullptr, g.beta = 0, g.c_ld = -1; },
     NVFP4_SUCCESS, ""},
    {"a type without c", [](Everything&, Desc& g) { g.c = nullptr; }, NVFP4_STATUS_NULL_POINTER,
     "c is NULL"},
    {"a type without c and beta 0", [](Everything&, Desc& g) { g.c = nullptr, g.beta = -0.0f; },
     NVFP4_SUCCESS, ""},
    {"bias without a type", [](Everything&, Desc& g) { g.bias_type = 0; },
     NVFP4_STATUS_INVALID_VALUE, "must be NULL where bias_type = NVFP4_TYPE_NONE"},
    {"a type without bias", [](Everything&, Desc& g) { g.bias = nullptr; },
     NVFP4_STATUS_NULL_POINTER, "bias is NULL"},
    {"alpha_device by value", [](Everything& x, Desc& g) { g.alpha_device = &x.alpha; },
     NVFP4_STATUS_INVALID_VALUE, "must be NULL where scalar_mode = NVFP4_SCALARS_HOST"},
    {"beta_device by value", [](Everything& x, Desc& g) { g.beta_device = &x.beta; },
     NVFP4_STATUS_INVALID_VALUE, "beta_device = 0x"},
    {"scalars by pointer", by_pointer, NVFP4_SUCCESS, ""},
    {"no alpha_device", [](Everything& x, Desc& g) { by_pointer(x, g), g.alpha_device = nullptr; },
     NVFP4_STATUS_NULL_POINTER, "alpha_device is NULL"},
    {"no beta_device", [](Everything& x, Desc& g) { by_pointer(x, g), g.beta_device = nullptr; },
     NVFP4_STATUS_NULL_POINTER, "beta_device is NULL"},
    {"beta_device without C",
     [](Everything& x, Desc& g) { by_pointer(x, g), g.c_type = 0, g.c = nullptr; },
     NVFP4_STATUS_INVALID_VALUE, "beta_device = 0x"},
    {"columns without b_tensor_scale", [](Everything&, Desc& g) { g.b_tensor_scale = nullptr; },
     NVFP4_STATUS_NULL_POINTER, "b_tensor_scale is NULL"},

    // alignment: what the type needs
    {"d", [](Everything&, Desc& g) { g.d = const_cast<void*>(plus(g.d, 2)); },
     NVFP4_STATUS_MISALIGNED, "is not 4-byte aligned"},
    {"d of 2 bytes",
     [](Everything&, Desc& g) {
       g.d_type = NVFP4_TYPE_BF16, g.d = const_cast<void*>(plus(g.d, 2));
     },
     NVFP4_SUCCESS, ""},
    {"c", [](Everything&, Desc& g) { g.c = plus(g.c, 1); }, NVFP4_STATUS_MISALIGNED, "c = 0x"},
    {"bias", [](Everything&, Desc& g) { g.bias = plus(g.bias, 1); }, NVFP4_STATUS_MISALIGNED,
     "bias = 0x"},
    {"b_tensor_scale",
     [](Everything&, Desc& g) {
       g.b_tensor_scale = static_cast<const float*>(plus(g.b_tensor_scale, 2));
     },
     NVFP4_STATUS_MISALIGNED, "b_tensor_scale = 0x"},

    // leading dimensions and strides
    {"c_ld", [](Everything&, Desc& g) { g.c_ld = 69; }, NVFP4_STATUS_INVALID_VALUE,
     "c_ld = 69 is less than n = 70"},
    {"c_batch_stride", [](Everything&, Desc& g) { g.c_batch_stride = -1; },
     NVFP4_STATUS_INVALID_VALUE, "c_batch_stride = -1 is negative"},
    {"column-major",
     [](Everything&, Desc& g) {
       g.cd_order = 1, g.c_ld = 3, g.d_ld = 4, g.d_batch_stride = 69 * 4 + 3;
     },
     NVFP4_SUCCESS, ""},
    {"column-major, c_ld",
     [](Everything&, Desc& g) {
       g.cd_order = 1, g.c_ld = 2, g.d_ld = 4, g.d_batch_stride = 69 * 4 + 3;
     },
     NVFP4_STATUS_INVALID_VALUE, "c_ld = 2 is less than m = 3"},
    {"column-major, d_ld", [](Everything&, Desc& g) { g.cd_order = 1, g.d_ld = 2; },
     NVFP4_STATUS_INVALID_VALUE, "d_ld = 2 is less than m = 3"},
    {"column-major, batches touch",
     [](Everything&, Desc& g) { g.cd_order = 1, g.d_ld = 4, g.d_batch_stride = 69 * 4 + 2; },
     NVFP4_STATUS_INVALID_VALUE, "at least (n-1) * d_ld + m, or columns that interleave: m <= "},
    {"column-major, columns interleave",
     [](Everything&, Desc& g) { g.cd_order = 1, g.d_batch_stride = 3, g.d_ld = 6; }, NVFP4_SUCCESS,
     ""},

    // overlap; D has 216 + 2 * 72 + 70 = 430 elements of 4 bytes, C 2 * 70 + 70 of 2
    {"C after D", [](Everything&, Desc& g) { g.c = plus(g.d, 430 * 4); }, NVFP4_SUCCESS, ""},
    {"C in the end of D", [](Everything&, Desc& g) { g.c = plus(g.d, 430 * 4 - 2); },
     NVFP4_STATUS_OVERLAP, "overlaps c = "},
    {"C is D of another type",
     [](Everything&, Desc& g) { g.c = g.d, g.c_ld = g.d_ld, g.c_batch_stride = g.d_batch_stride; },
     NVFP4_STATUS_OVERLAP, "overlaps c = "},
    {"C is D",
     [](Everything&, Desc& g) {
       g.c = g.d, g.c_type = g.d_type, g.c_ld = g.d_ld, g.c_batch_stride = g.d_batch_stride;
     },
     NVFP4_SUCCESS, ""},
    {"C is D of another stride",
     [](Everything&, Desc& g) { g.c = g.d, g.c_type = g.d_type, g.c_ld = g.d_ld; },
     NVFP4_STATUS_OVERLAP, "overlaps c = "},
    {"bias in D", [](Everything&, Desc& g) { g.bias = plus(g.d, 428 * 4); }, NVFP4_STATUS_OVERLAP,
     "overlaps bias = "},
    {"the last factor in D", [](Everything& x, Desc& g) { g.b_tensor_scale = x.d - 1, g.d = x.d; },
     NVFP4_STATUS_OVERLAP, "overlaps b_tensor_scale = "},
    {"the only factor in front of D",
     [](Everything& x, Desc& g) {
       g.d = x.d + 1, g.b_tensor_scale = x.d, g.b_tensor_scale_columns = 0;
     },
     NVFP4_SUCCESS, ""},
    {"a_tensor_scale in D", [](Everything& x, Desc& g) { g.a_tensor_scale = x.d + 71; },
     NVFP4_STATUS_OVERLAP, "overlaps a_tensor_scale = "},
    {"the last row's factor in D",
     [](Everything& x, Desc& g) {
       g.a_tensor_scale_rows = 1, g.a_tensor_scale = x.d - (g.l * g.m - 1), g.d = x.d;
     },
     NVFP4_STATUS_OVERLAP, "overlaps a_tensor_scale = "},
    {"alpha in D", [](Everything& x, Desc& g) { by_pointer(x, g), g.alpha_device = x.d; },
     NVFP4_STATUS_OVERLAP, "overlaps alpha_device = "},
    {"beta in D", [](Everything& x, Desc& g) { by_pointer(x, g), g.beta_device = x.d; },
     NVFP4_STATUS_OVERLAP, "overlaps beta_device = "},
    {"c_ld overflows", [](Everything&, Desc& g) { g.c_ld = INT64_MAX; }, NVFP4_STATUS_LIMIT,
     "the last byte of c"},
};

}  // namespace

TEST_CASE("Every rule of C and bias and scalars holds just inside and refuses just outside") {
  for (const Rule& rule : kRules) {
    Everything x;
    rule.change(x, x.g);
    INFO(rule.name);
    const nvfp4_status status = nvfp4_gemm_reference(&x.g);
    INFO((status == NVFP4_SUCCESS ? "accepted" : nvfp4_last_error()));
    CHECK(std::string(nvfp4_status_name(status)) == nvfp4_status_name(rule.status));
    if (rule.status == NVFP4_SUCCESS) continue;
    CHECK(std::string(nvfp4_last_error()).find(rule.sentence) != std::string::npos);
    for (float element : x.d) REQUIRE(element == 0);
  }
}

TEST_CASE("A question without any address is about sizes and types alone") {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 512, g.n = 384, g.k = 256, g.l = 2;
  g.a_ld = g.b_ld = 256, g.d_ld = 384;
  g.a_batch_stride = 512 * 256, g.b_batch_stride = 384 * 256, g.d_batch_stride = 512 * 384;
  g.a_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(512, 256, 1));
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(384, 256, 1));
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16, g.alpha = 1;
  Desc later = g;
  const auto address = [](uint64_t at) { return reinterpret_cast<void*>(at << 40); };
  later.a = address(1), later.b = address(2), later.a_scales = address(3);
  later.b_scales = address(4), later.d = address(5), later.workspace = address(6);
  later.workspace_bytes = uint64_t{1} << 40;
  for (int32_t capability : {90, 100, 103}) {
    CAPTURE(capability);
    CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_SUCCESS);
    CHECK(nvfp4_gemm_supported(&later, capability) == NVFP4_SUCCESS);
    uint64_t bytes = 1, bytes_later = 2;
    CHECK(nvfp4_gemm_workspace_bytes(&g, capability, &bytes) == NVFP4_SUCCESS);
    CHECK(nvfp4_gemm_workspace_bytes(&later, capability, &bytes_later) == NVFP4_SUCCESS);
    CHECK(bytes == bytes_later);
    CHECK((bytes > 0) == (capability == 90));
    char text[2048], text_later[2048];
    CHECK(nvfp4_gemm_explain(&g, capability, 132, text, sizeof text) == NVFP4_SUCCESS);
    CHECK(nvfp4_gemm_explain(&later, capability, 132, text_later, sizeof text_later) ==
          NVFP4_SUCCESS);
    CHECK(std::string(text) == text_later);
  }
  // With one address they are all looked at again, and sizes always are.
  Desc one = g;
  one.b = address(2);
  CHECK(nvfp4_gemm_supported(&one, 100) == NVFP4_STATUS_NULL_POINTER);
  CHECK(std::string(nvfp4_last_error()) == "a is NULL and is required here");
  Desc short_ld = g;
  short_ld.d_ld = 383;
  CHECK(nvfp4_gemm_supported(&short_ld, 100) == NVFP4_STATUS_INVALID_VALUE);
  Desc too_far = g;
  too_far.d_ld = INT64_MAX / 256;
  CHECK(nvfp4_gemm_supported(&too_far, 100) != NVFP4_SUCCESS);
  Desc nvfp4_out = g;
  nvfp4_out.d_type = NVFP4_TYPE_NVFP4;
  CHECK(nvfp4_gemm_supported(&nvfp4_out, 100) == NVFP4_STATUS_INVALID_ENUM);
  nvfp4_out.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  nvfp4_out.d_scales_batch_stride_bytes = 384 / 16 * 512;
  for (int32_t capability : {90, 100, 103}) {
    CHECK(nvfp4_gemm_supported(&nvfp4_out, capability) == NVFP4_SUCCESS);
  }
  // Types say what will be given: C, bias and scalars have no address yet.
  Desc full = g;
  full.d_type = NVFP4_TYPE_BF16, full.c_type = NVFP4_TYPE_F32, full.bias_type = NVFP4_TYPE_F16;
  full.scalar_mode = NVFP4_SCALARS_DEVICE, full.activation = NVFP4_ACTIVATION_SILU;
  full.b_tensor_scale_columns = 128, full.c_ld = 384, full.c_batch_stride = 512 * 384;
  for (int32_t capability : {90, 100, 103}) {
    CHECK(nvfp4_gemm_supported(&full, capability) == NVFP4_SUCCESS);
  }
  full.c_ld = 383;
  CHECK(nvfp4_gemm_supported(&full, 100) == NVFP4_STATUS_INVALID_VALUE);
  // A run asks for every address.
  CHECK(nvfp4_gemm_run(&g, nullptr) == NVFP4_STATUS_NULL_POINTER);
}
