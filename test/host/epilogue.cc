// SPDX-License-Identifier: MIT
// What kernels are told of the epilogue: from the fields of a descriptor, and from nothing else.
#include "host/problem/epilogue.h"

#include <functional>

#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;

Desc plain() {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 70, g.n = 200, g.k = 64, g.l = 1;
  g.d_type = NVFP4_TYPE_F16, g.d_ld = 208, g.alpha = 2;
  return g;
}

}  // namespace

TEST_CASE("Only rows of D without more than a column's factor are not the general epilogue") {
  const float one = 1;
  CHECK(nvfp4::make_epilogue(plain()).kind == nvfp4::kEpiloguePlain);
  const std::function<void(Desc&)> plain_too[] = {
      [](Desc& g) { g.c_type = NVFP4_TYPE_BF16, g.beta = -0.0f; },  // C is not read
      [](Desc& g) { g.bias_axis = NVFP4_BIAS_AXIS_ROW; },           // of no bias
      [](Desc& g) { g.alpha = 0, g.l = 3; },
  };
  for (const auto& change : plain_too) {
    Desc g = plain();
    change(g);
    CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpiloguePlain);
  }
  Desc bf16 = plain();
  bf16.d_type = NVFP4_TYPE_BF16;
  CHECK(nvfp4::make_epilogue(bf16).kind == nvfp4::kEpilogueBf16);
  Desc f32 = plain();
  f32.d_type = NVFP4_TYPE_F32;
  CHECK(nvfp4::make_epilogue(f32).kind == nvfp4::kEpilogueF32);
  const std::function<void(Desc&)> general[] = {
      [](Desc& g) { g.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR; },
      [](Desc& g) { g.activation = NVFP4_ACTIVATION_RELU; },
      [&](Desc& g) { g.c_type = NVFP4_TYPE_F16, g.c = &one, g.beta = 1e-45f; },
      [&](Desc& g) {
        g.bias_type = NVFP4_TYPE_F32, g.bias = &one, g.bias_axis = NVFP4_BIAS_AXIS_ROW;
      },
  };
  for (const auto& change : general) {
    Desc g = plain();
    change(g);
    CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueGeneral);
  }
  const std::function<void(Desc&)> of_columns[] = {
      [&](Desc& g) { g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = &one; },
      [&](Desc& g) { g.a_tensor_scale = &one; },
      [&](Desc& g) { g.a_tensor_scale = &one, g.a_tensor_scale_rows = 1; },
      [&](Desc& g) { g.b_tensor_scale = &one, g.b_tensor_scale_columns = 64; },
      [&](Desc& g) { g.bias_type = NVFP4_TYPE_F32, g.bias = &one; },
  };
  for (const auto& change : of_columns) {
    Desc g = plain();
    change(g);
    CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueColumns);
    g.d_type = NVFP4_TYPE_F32;
    CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueF32);
    for (const auto& more : general) {
      Desc both = g;
      more(both);
      CHECK(nvfp4::make_epilogue(both).kind == nvfp4::kEpilogueGeneral);
    }
  }
}

TEST_CASE("D with scales has a kind of its own where its blocks begin at multiples of 8 bytes") {
  const float one = 1;
  uint8_t scales = 0;
  Desc g = plain();
  g.n = 192, g.d_type = NVFP4_TYPE_NVFP4, g.d_scales = &scales;
  g.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.bias_type = NVFP4_TYPE_F32, g.bias = &one, g.a_tensor_scale = &one;
  for (const int32_t type : {NVFP4_TYPE_NVFP4, NVFP4_TYPE_MXFP4, NVFP4_TYPE_E2M1_UE8M0}) {
    g.d_type = type;
    CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueScaled);
  }
  const std::function<void(Desc&)> general[] = {
      [](Desc& x) { x.d_ld = 200; },
      [](Desc& x) { x.l = 2, x.d_batch_stride = 70 * 208 + 8; },
      [](Desc& x) { x.activation = NVFP4_ACTIVATION_RELU; },
      [](Desc& x) { x.bias_axis = NVFP4_BIAS_AXIS_ROW; },
      [&](Desc& x) { x.c_type = NVFP4_TYPE_F16, x.c = &one, x.beta = 1; },
  };
  for (const auto& change : general) {
    Desc x = g;
    change(x);
    CHECK(nvfp4::make_epilogue(x).kind == nvfp4::kEpilogueGeneral);
  }
  g.l = 2, g.d_batch_stride = 70 * 208 + 16;
  CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueScaled);
  g.b2 = &one, g.alpha2 = 1, g.activation = NVFP4_ACTIVATION_SILU;
  CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueScaled);
  g.d_type = NVFP4_TYPE_F32;
  CHECK(nvfp4::make_epilogue(g).kind == nvfp4::kEpilogueGeneral);
}

TEST_CASE("C by value of beta = 0 is none and by pointer it is one") {
  const float one = 1;
  Desc g = plain();
  g.c_type = NVFP4_TYPE_BF16, g.c = &one;
  CHECK(nvfp4::make_epilogue(g).c_type == nvfp4::kTypeNone);
  g.beta = 1e-45f;
  CHECK(nvfp4::make_epilogue(g).c_type == nvfp4::kTypeBf16);
  g.beta = 0, g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = g.beta_device = &one;
  CHECK(nvfp4::make_epilogue(g).c_type == nvfp4::kTypeBf16);
}

TEST_CASE("Steps of C and D follow their order and one batch has no stride") {
  Desc g = plain();
  g.c_ld = 300, g.c_batch_stride = 7;
  nvfp4::EpilogueParams p = nvfp4::make_epilogue(g);
  CHECK((p.d_row == 208 && p.d_column == 1 && p.c_row == 300 && p.c_column == 1));
  CHECK(p.c_batch_stride == 0);
  g.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR, g.l = 2;
  p = nvfp4::make_epilogue(g);
  CHECK((p.d_row == 1 && p.d_column == 208 && p.c_row == 1 && p.c_column == 300));
  CHECK(p.c_batch_stride == 7);
}

TEST_CASE("One factor of B serves all columns as more columns than there are do") {
  Desc g = plain();
  CHECK(nvfp4::make_epilogue(g).columns_a_factor == 200);
  g.b_tensor_scale_columns = 128;
  CHECK(nvfp4::make_epilogue(g).columns_a_factor == 128);
  g.b_tensor_scale_columns = INT64_MAX / 64 * 64;
  CHECK(nvfp4::make_epilogue(g).columns_a_factor == 200);
}
