// SPDX-License-Identifier: MIT
// The rules of nvfp4_grouped_desc, and its plans, without a driver.
#include <algorithm>
#include <cstring>
#include <functional>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Grouped = nvfp4_grouped_desc;

alignas(16) unsigned char memory[16];

// Eight experts of 4096 x 7168, without addresses.
struct Experts {
  nvfp4_gemm_desc gemm = NVFP4_GEMM_DESC_INIT;
  Grouped grouped{};

  explicit Experts(int64_t rows = 32) {
    gemm.m = rows, gemm.n = 4096, gemm.k = 7168, gemm.l = 8;
    gemm.a_ld = gemm.b_ld = 7168, gemm.d_ld = 4096, gemm.b_batch_stride = 4096 * 7168;
    gemm.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    gemm.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    gemm.b_scales_batch_stride_bytes = 4096 * 7168 / 16;
    gemm.d_type = NVFP4_TYPE_BF16;
    gemm.alpha = 1;
    grouped.struct_size = sizeof grouped;
    grouped.gemm = &gemm;
    grouped.rows_kind = NVFP4_ROWS_ENDS;
  }
  Experts(const Experts&) = delete;

  void halves() {
    gemm.a_type = NVFP4_TYPE_BF16;
    gemm.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
  }
  nvfp4_status supported(int32_t capability = 90) const {
    return nvfp4_grouped_supported(&grouped, capability);
  }
  nvfp4_plan_info plan(int32_t capability = 90, int32_t sm_count = 132) const {
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    const nvfp4_status status = nvfp4_grouped_describe(&grouped, capability, sm_count, &info);
    INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
    REQUIRE(status == NVFP4_SUCCESS);
    return info;
  }
};

nvfp4_status changed(const std::function<void(Grouped&, nvfp4_gemm_desc&)>& change) {
  Experts x;
  change(x.grouped, x.gemm);
  return x.supported();
}

}  // namespace

TEST_CASE("grouped: each rule of the desc is refused by its status", "[grouped]") {
  using Gemm = nvfp4_gemm_desc;
  const float one = 1;
  const int32_t row = 0;
  CHECK(changed([](Grouped&, Gemm&) {}) == NVFP4_SUCCESS);
  CHECK(nvfp4_grouped_supported(nullptr, 90) == NVFP4_STATUS_NULL_POINTER);
  CHECK(changed([](Grouped& x, Gemm&) { x.struct_size -= 8; }) == NVFP4_STATUS_INVALID_STRUCT);
  CHECK(changed([](Grouped& x, Gemm&) { x.gemm = nullptr; }) == NVFP4_STATUS_NULL_POINTER);
  CHECK(changed([](Grouped& x, Gemm&) { x.rows_kind = 0; }) == NVFP4_STATUS_INVALID_ENUM);
  CHECK(changed([](Grouped& x, Gemm&) { x.capacity = -1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped& x, Gemm&) { x.capacity = 1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped& x, Gemm&) { x.rows_hint = -1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped& x, Gemm&) { x.reserved[2] = 1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped&, Gemm& g) { g.m = -1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped&, Gemm& g) { g.d_ld = 1; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([](Grouped&, Gemm& g) { g.b_batch_stride = 8; }) == NVFP4_STATUS_MISALIGNED);
  const auto counts = [](int64_t capacity) {
    return changed(
        [=](Grouped& x, Gemm&) { x.rows_kind = NVFP4_ROWS_COUNTS, x.capacity = capacity; });
  };
  CHECK(counts(4) == NVFP4_SUCCESS);  // eight groups of 4 rows: all 32
  CHECK(changed([](Grouped&, Gemm& g) { g.a_tensor_scale_rows = 1; }) == NVFP4_SUCCESS);
  CHECK(counts(5) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(counts(INT32_MAX) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(counts(0) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([&](Grouped& x, Gemm& g) {
          x.group_alpha = &one, g.scalar_mode = NVFP4_SCALARS_DEVICE;
        }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([&](Grouped& x, Gemm&) { x.group_alpha2 = &one; }) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(changed([&](Grouped& x, Gemm&) { x.scale_rows = &row; }) == NVFP4_STATUS_INVALID_VALUE);
  // What this version does not have.
  const auto absent = [&](const std::function<void(Grouped&, Gemm&)>& change) {
    return changed(change) == NVFP4_STATUS_NOT_SUPPORTED;
  };
  CHECK(absent([](Grouped&, Gemm& g) { g.k = 0, g.alpha2 = 1; }));
  CHECK(absent([](Grouped&, Gemm& g) {  // on 9.0
    g.d_type = NVFP4_TYPE_NVFP4, g.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  }));
  const Experts x;
  for (const int32_t capability : {80, 120}) {
    CHECK(x.supported(capability) == NVFP4_STATUS_NOT_SUPPORTED);
  }
  CHECK(x.supported(100) == NVFP4_SUCCESS);
  CHECK(absent([](Grouped&, Gemm& g) { g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4; }));
  CHECK(absent([](Grouped&, Gemm& g) {  // decoded before, by a kernel that knows no groups
    g.operand_format = NVFP4_OPERAND_FORMAT_E2M1_UE8M0;
    g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  }));
  Experts tiles;
  tiles.gemm.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  CHECK(tiles.supported(100) == NVFP4_SUCCESS);
  CHECK(x.supported(70) == NVFP4_STATUS_UNSUPPORTED_ARCH);
}

TEST_CASE("grouped: tokens that the tile's kernel does not take are not given to it", "[grouped]") {
  Experts x;
  x.gemm.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;
  x.gemm.b_scales_batch_stride_bytes = 4096 * 7168 / 32;
  CHECK(std::string(x.plan(90).variant) == "sm90_bf16_64x32x256");  // decoded before
  CHECK(x.plan(90).workspace_bytes == 32 * 7168 * 2);
  CHECK(std::string(x.plan(103).variant) == "sm100_128x64x256");
  x.gemm.variant = "sm90_64x16x256";
  CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  x.gemm.variant = nullptr;
  x.halves();
  CHECK(std::string(x.plan(100).variant) == "sm80_bf16_64x16w4x128");
  x.gemm.a_type = NVFP4_TYPE_F16;
  CHECK(x.supported(100) == NVFP4_STATUS_NOT_SUPPORTED);
}

TEST_CASE("grouped: batch strides of A and C and D are not looked at", "[grouped]") {
  Experts x;
  x.gemm.a_batch_stride = -3, x.gemm.c_batch_stride = -5, x.gemm.d_batch_stride = 1;
  x.gemm.a_scales_batch_stride_bytes = 7;
  CHECK(x.supported() == NVFP4_SUCCESS);
}

TEST_CASE("grouped: row ends are there and aligned and apart from D", "[grouped]") {
  Experts x;
  nvfp4_gemm_desc& g = x.gemm;
  g.m = 1, g.n = g.k = g.l = 1, g.k = 16;
  g.a_ld = g.b_ld = 32, g.d_ld = 1;
  alignas(16) static unsigned char a[16], scales[512], b[16], b_scales[512];
  alignas(16) static unsigned char workspace[1 << 14];
  g.a = a, g.a_scales = scales, g.b = b, g.b_scales = b_scales, g.d = memory;
  g.workspace = workspace, g.workspace_bytes = sizeof workspace;
  CHECK(x.supported() == NVFP4_STATUS_NULL_POINTER);
  x.grouped.rows = reinterpret_cast<const int32_t*>(scales + 2);
  CHECK(x.supported() == NVFP4_STATUS_MISALIGNED);
  x.grouped.rows = reinterpret_cast<const int32_t*>(memory);
  CHECK(x.supported() == NVFP4_STATUS_OVERLAP);
  x.grouped.rows = reinterpret_cast<const int32_t*>(scales);
  CHECK(x.supported() == NVFP4_SUCCESS);
  x.grouped.group_alpha = reinterpret_cast<const float*>(memory);
  CHECK(x.supported() == NVFP4_STATUS_OVERLAP);
  x.grouped.group_alpha = reinterpret_cast<const float*>(scales + 2);
  CHECK(x.supported() == NVFP4_STATUS_MISALIGNED);
  x.grouped.group_alpha = nullptr;
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  x.grouped.scale_rows = reinterpret_cast<const int32_t*>(memory);
  CHECK(x.supported(100) == NVFP4_STATUS_OVERLAP);
}

TEST_CASE("grouped: a question with addresses asks for the workspace as a run does", "[grouped]") {
  Experts x;
  nvfp4_gemm_desc& g = x.gemm;
  g.m = 1, g.n = g.l = 1, g.k = 16;
  g.a_ld = g.b_ld = 32, g.d_ld = 1;
  alignas(16) static unsigned char a[16], scales[512], b[16], b_scales[512], workspace[1 << 14];
  g.a = a, g.a_scales = scales, g.b = b, g.b_scales = b_scales, g.d = memory;
  const int32_t rows = 1;
  x.grouped.rows = &rows;
  uint64_t bytes = 0;
  REQUIRE(nvfp4_grouped_workspace_bytes(&x.grouped, 90, &bytes) == NVFP4_SUCCESS);
  REQUIRE(bytes > 0);
  CHECK(x.supported() == NVFP4_STATUS_NULL_POINTER);
  CHECK(std::string(nvfp4_last_error()) == "workspace is NULL and is required here");
  g.workspace = workspace, g.workspace_bytes = bytes - 1;
  CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  g.workspace_bytes = bytes;
  CHECK(x.supported() == NVFP4_SUCCESS);
}

TEST_CASE("grouped: fields of a D with scales are unset", "[grouped]") {
  using Gemm = nvfp4_gemm_desc;
  const float one = 1;
  const std::function<void(Gemm&)> sets[] = {
      [](Gemm& g) { g.d_scales = memory; },
      [&](Gemm& g) { g.d_tensor_scale = &one; },
      [](Gemm& g) { g.d_scales_batch_stride_bytes = 16; },
      [](Gemm& g) { g.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR; },
      [](Gemm& g) { g.d_scale_rule = NVFP4_SCALE_RULE_FLOOR; },
  };
  alignas(16) static unsigned char apart[16];
  for (const auto& set : sets) {
    Experts x;
    // Each array at an address of its own, which nothing reads.
    const auto at = [](int64_t i) { return reinterpret_cast<void*>(i << 40); };
    x.gemm.a = at(1), x.gemm.a_scales = at(2), x.gemm.b = at(3), x.gemm.b_scales = at(4);
    x.gemm.d = at(5), x.gemm.workspace = at(6), x.gemm.workspace_bytes = 1 << 30;
    x.grouped.rows = reinterpret_cast<const int32_t*>(apart);
    CHECK(x.supported() == NVFP4_SUCCESS);
    set(x.gemm);
    CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()).rfind("d_", 0) == 0);
    CHECK(nvfp4_grouped_reference(&x.grouped) == NVFP4_STATUS_INVALID_VALUE);
  }
}

TEST_CASE("grouped: a bias of each group is a bias per column with room for its columns",
          "[grouped]") {
  using Gemm = nvfp4_gemm_desc;
  const auto answer = [](const std::function<void(Grouped&, Gemm&)>& change) {
    const nvfp4_status status = changed(change);
    return status == NVFP4_SUCCESS ? std::string("accepted") : std::string(nvfp4_last_error());
  };
  const auto with = [](Grouped& x, Gemm& g, int64_t stride, int32_t axis) {
    x.bias_group_stride = stride, g.bias_type = NVFP4_TYPE_BF16, g.bias_axis = axis;
  };
  const auto by_column = [&](int64_t stride) {
    return answer([&](Grouped& x, Gemm& g) { with(x, g, stride, NVFP4_BIAS_AXIS_COLUMN); });
  };
  CHECK(by_column(4096) == "accepted");
  CHECK(by_column(4097) == "accepted");
  CHECK(by_column(4095) == "bias_group_stride = 4095 is less than n = 4096");
  CHECK(by_column(-4096) == "bias_group_stride = -4096 is negative; 0 to 9223372036854775807");
  const std::string beyond = "the last byte of bias is beyond the address space";
  CHECK(by_column(INT64_MAX / 7) == beyond);
  CHECK(by_column(INT64_MAX) == beyond);
  CHECK(answer([&](Grouped& x, Gemm& g) { with(x, g, 0, NVFP4_BIAS_AXIS_ROW); }) == "accepted");
  CHECK(answer([&](Grouped& x, Gemm& g) { with(x, g, 4096, NVFP4_BIAS_AXIS_ROW); }) ==
        "bias_group_stride = 4096 must be 0 where bias_axis = NVFP4_BIAS_AXIS_ROW");
  CHECK(answer([&](Grouped& x, Gemm&) { x.bias_group_stride = 4096; }) ==
        "bias_group_stride = 4096 must be 0 where bias_type = NVFP4_TYPE_NONE");
  Experts x;
  with(x.grouped, x.gemm, 4096, NVFP4_BIAS_AXIS_COLUMN);
  char text[4096];
  REQUIRE(nvfp4_grouped_explain(&x.grouped, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("bias bf16 by column of each group") != std::string::npos);
  x.grouped.bias_group_stride = 0;
  REQUIRE(nvfp4_grouped_explain(&x.grouped, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("of each group") == std::string::npos);
}

TEST_CASE("grouped: a D with scales has those of all rows and no batches", "[grouped]") {
  const float one = 1;
  const int32_t row = 0;
  const auto scaled = [](Experts& x, int32_t type, int32_t layout) {
    x.gemm.d_type = type, x.gemm.d_scale_layout = layout;
  };
  for (const int32_t type : {NVFP4_TYPE_NVFP4, NVFP4_TYPE_MXFP4, NVFP4_TYPE_E2M1_UE8M0}) {
    Experts x;
    scaled(x, type, NVFP4_SCALE_LAYOUT_LINEAR);
    for (const int32_t capability : {90, 100}) CHECK(x.supported(capability) == NVFP4_SUCCESS);
    x.gemm.d_scales_batch_stride_bytes = 8;  // it is not looked at
    CHECK(x.supported() == NVFP4_SUCCESS);
    x.grouped.group_d_tensor_scale = &one;
    const bool has_factor = type == NVFP4_TYPE_NVFP4;
    // With an address it is a question about all of them.
    CHECK(x.supported() == (has_factor ? NVFP4_STATUS_NULL_POINTER : NVFP4_STATUS_INVALID_VALUE));
    x.grouped.group_d_tensor_scale = nullptr;
    x.gemm.n = 4104;
    CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  }
  Experts x;
  x.grouped.group_d_tensor_scale = &one;  // of a D in bf16
  CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).rfind("group_d_tensor_scale = ", 0) == 0);
  x.grouped.group_d_tensor_scale = nullptr;
  scaled(x, NVFP4_TYPE_NVFP4, NVFP4_SCALE_LAYOUT_128X4);
  CHECK(x.supported(100) == NVFP4_SUCCESS);
  CHECK(x.plan(100).epilogue == NVFP4_EPILOGUE_GENERAL);
  x.grouped.scale_rows = &row;  // which those of A do not follow
  CHECK(x.supported(100) == NVFP4_STATUS_INVALID_VALUE);
  x.halves();
  CHECK(x.supported(100) == NVFP4_STATUS_NULL_POINTER);  // the other addresses
  x.gemm.d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  CHECK(x.supported(100) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).find("d_scale_layout") != std::string::npos);
}

TEST_CASE("grouped: with K = 0 nothing is planned and no B is there", "[grouped]") {
  Experts x;
  x.gemm.k = 0, x.gemm.b_batch_stride = x.gemm.b_scales_batch_stride_bytes = 0;
  x.gemm.a_ld = x.gemm.b_ld = 0;
  for (const int32_t capability : {90, 100}) {
    CHECK(x.supported(capability) == NVFP4_SUCCESS);
    CHECK(x.plan(capability).grid_ctas == 0);
    CHECK(x.plan(capability).workspace_bytes == 0);
  }
  char text[4096];
  REQUIRE(nvfp4_grouped_explain(&x.grouped, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("empty_sum") != std::string::npos);
}

TEST_CASE("grouped: one B for all groups is asked for by b_shared", "[grouped]") {
  using Gemm = nvfp4_gemm_desc;
  const auto answer = [](const std::function<void(Grouped&, Gemm&)>& change) {
    const nvfp4_status status = changed(change);
    return status == NVFP4_SUCCESS ? std::string("accepted") : std::string(nvfp4_last_error());
  };
  const auto strides = [](Gemm& g, int64_t b, int64_t scales) {
    g.b_batch_stride = b, g.b_scales_batch_stride_bytes = scales;
  };
  constexpr int64_t kB = 4096 * 7168, kScales = kB / 16;
  CHECK(answer([&](Grouped&, Gemm& g) { strides(g, 0, kScales); }) ==
        "b_batch_stride = 0 with l = 8 groups: set b_shared = 1 if all groups use one B");
  CHECK(answer([&](Grouped&, Gemm& g) { strides(g, kB, 0); }) ==
        "b_scales_batch_stride_bytes = 0 with l = 8 groups: set b_shared = 1 if all groups use one "
        "B");
  CHECK(answer([&](Grouped& x, Gemm&) { x.b_shared = 1; }) ==
        "b_batch_stride = 29360128 must be 0 where b_shared = 1");
  CHECK(answer([&](Grouped& x, Gemm& g) { x.b_shared = 1, strides(g, 0, kScales); }) ==
        "b_scales_batch_stride_bytes = 1835008 must be 0 where b_shared = 1");
  CHECK(answer([&](Grouped& x, Gemm& g) { x.b_shared = 1, strides(g, 0, 0); }) == "accepted");
  CHECK(answer([&](Grouped& x, Gemm&) { x.b_shared = 2; }) == "b_shared = 2 is neither 0 nor 1");
  // One group has one B.
  for (const int32_t shared : {0, 1}) {
    CHECK(answer([&](Grouped& x, Gemm& g) {
            x.b_shared = shared, g.l = 1, strides(g, 0, kScales);
          }) == "accepted");
  }
  Experts x;
  x.grouped.b_shared = 1;
  strides(x.gemm, 0, 0);
  CHECK(x.plan().bytes == 0.5625 * 7168 * (4096 + 32) + 2.0 * 32 * 4096);
  char text[4096];
  REQUIRE(nvfp4_grouped_explain(&x.grouped, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("8 groups of M 32 rows in all, that use one B,") !=
        std::string::npos);
}

TEST_CASE("grouped: nothing is there where no rows or groups or columns are", "[grouped]") {
  const auto empty = [](Grouped&, nvfp4_gemm_desc&) {};
  CHECK(changed(empty) == NVFP4_SUCCESS);
  Experts x;
  x.gemm.l = 0;
  CHECK(nvfp4_grouped_run(&x.grouped, nullptr) == NVFP4_SUCCESS);
  CHECK(nvfp4_grouped_reference(&x.grouped) == NVFP4_SUCCESS);
  x.gemm.l = 8, x.gemm.m = 0;
  CHECK(nvfp4_grouped_run(&x.grouped, nullptr) == NVFP4_SUCCESS);
  CHECK(x.plan().grid_ctas == 0);
}

TEST_CASE("grouped: the grid has the most tiles that a division of the rows has", "[grouped]") {
  Experts few(40);  // 8 groups that begin a tile each, and 32 rows more: one tile beyond those
  nvfp4_plan_info info = few.plan();
  CHECK(std::string(info.variant) == "sm90_128x32x256");
  CHECK(info.k_partitions == 1);
  CHECK(info.grid_ctas == 132);  // on 9.0 they compute one tile after the other
  constexpr int32_t kMany = 1 << 16;
  CHECK(few.plan(90, kMany).grid_ctas == (8 + 1) * 32);
  CHECK(info.workspace_bytes == 48 * 7168 * 2);  // in fp16, by sixteen rows
  // Each expert's weights once, tokens and D once.
  CHECK(info.bytes == 0.5625 * 7168 * (8 * 4096 + 40) + 2.0 * 40 * 4096);
  few.gemm.m = 3;  // three groups at most have rows
  CHECK(few.plan(90, kMany).grid_ctas == 3 * 32);

  few.gemm.m = 32;  // each group may have four rows, so a tile
  few.grouped.rows_kind = NVFP4_ROWS_COUNTS, few.grouped.capacity = 4;
  CHECK(few.plan(90, kMany).grid_ctas == 8 * 32);
  few.gemm.variant = "sm90_64x4x256";
  CHECK(few.supported() == NVFP4_STATUS_INVALID_VALUE);
  few.gemm.variant = nullptr;

  // With COUNTS the workspace has all rows of the groups, or four times as many as are usual.
  few.gemm.m = 8 * 4096 + 5, few.grouped.capacity = 4096;
  CHECK(few.plan().workspace_bytes == 8 * 4096 * 7168 * 2);
  for (const auto& [hint, rows] : {std::pair(1, 256),
                                   {7, 256},
                                   {28, 896},
                                   {1023, 8 * 4092},
                                   {1024, 8 * 4096},
                                   {INT32_MAX, 8 * 4096}}) {
    few.grouped.rows_hint = hint;
    CAPTURE(hint);
    CHECK(few.plan().workspace_bytes == (rows + 15) / 16 * 16 * uint64_t{7168 * 2});
  }

  Experts many(1000);  // 125 rows a group
  CHECK(std::string(many.plan().variant) == "sm90_128x128x256");
  many.grouped.rows_hint = 33;
  CHECK(std::string(many.plan().variant) == "sm90_128x64x256");
  many.gemm.batch_invariant = 1;  // other tiles add in other orders
  CHECK(std::string(many.plan().variant) == "sm90_64x32x256");
  many.gemm.batch_invariant = 0;
  many.halves();
  CHECK(std::string(many.plan().variant) == "sm90_bf16_128x128x256");
  many.grouped.rows_hint = 17;
  CHECK(std::string(many.plan().variant) == "sm90_bf16_64x32x256");
  for (const auto& [hint, tile] : {std::pair(16, "64x16"), {9, "64x16"}, {8, "64x8"}}) {
    many.grouped.rows_hint = hint;
    CHECK(std::string(many.plan().variant) == std::string("sm80_bf16_") + tile + "w4x128");
  }
  many.gemm.batch_invariant = 1;
  CHECK(std::string(many.plan().variant) == "sm90_bf16_64x32x256");
  many.gemm.batch_invariant = 0;
  const int64_t whole_k = many.gemm.k;
  many.gemm.k = 752;
  CHECK(std::string(many.plan().variant) == "sm90_bf16_64x32x256");
  many.gemm.k = whole_k;
  many.gemm.variant = "sm90_bf16_128x128x256";
  CHECK(std::string(many.plan().variant) == "sm90_bf16_128x128x256");
  many.gemm.variant = "sm90_bf16_128x192x256";
  CHECK(many.supported() == NVFP4_STATUS_INVALID_VALUE);
  many.gemm.variant = "sm90_bf16_128x128x256/4";
  CHECK(many.supported() == NVFP4_STATUS_INVALID_VALUE);
  many.gemm.variant = "sm80_bf16_64x8w4x128";
  CHECK(many.supported() == NVFP4_SUCCESS);
  many.gemm.batch_invariant = 1;  // it adds in another order than the tiles of 9.0
  CHECK(many.supported() == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE("grouped: tokens in 16 bits have tiles of mma.sync and an SM has as many as it holds",
          "[grouped]") {
  struct Row {
    int32_t capability, sms, of_8, of_16;  // CTAs per SM of tiles of 8 tokens, of 16
  };
  const Row row = GENERATE(Row{80, 108, 3, 2}, Row{86, 84, 1, 1}, Row{89, 128, 1, 1},
                           Row{100, 148, 3, 3}, Row{120, 170, 1, 1});
  CAPTURE(row.capability);
  Experts x(32);
  x.halves();
  nvfp4_plan_info info = x.plan(row.capability, row.sms);
  CHECK(std::string(info.variant) == "sm80_bf16_64x8w4x128");
  CHECK(info.k_partitions == 1);
  CHECK(info.tile_n == 64);
  CHECK(info.workspace_bytes == 0);
  CHECK(info.grid_ctas == std::min(row.sms * row.of_8, (8 + 24 / 8) * 64));
  x.grouped.rows_kind = NVFP4_ROWS_COUNTS, x.grouped.capacity = 4;
  CHECK(x.plan(row.capability, 1 << 16).grid_ctas == 8 * 64);
  x.grouped.rows_kind = NVFP4_ROWS_ENDS, x.grouped.capacity = 0;

  x.gemm.m = 512;  // 64 rows a group
  CHECK(std::string(x.plan(row.capability).variant) == "sm80_bf16_64x16w4x128");
  CHECK(x.plan(row.capability, row.sms).grid_ctas == row.sms * row.of_16);
  x.gemm.alpha2 = 1, x.gemm.activation = NVFP4_ACTIVATION_SILU;
  info = x.plan(row.capability, 1 << 16);
  CHECK(info.tile_n == 32);
  CHECK(info.grid_ctas == (8 + 504 / 16) * 128);
  x.gemm.batch_invariant = 1;  // every tile adds in one order
  x.grouped.rows_hint = 3;
  CHECK(std::string(x.plan(row.capability).variant) == "sm80_bf16_64x8w4x128");
  x.gemm.variant = "sm80_bf16_64x8w8x128";  // has no such entry
  CHECK(x.supported(row.capability) == NVFP4_STATUS_INVALID_VALUE);
  x.gemm.variant = nullptr;
  x.gemm.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;  // one tile takes it
  x.gemm.b_scales_batch_stride_bytes /= 2;
  CHECK(std::string(x.plan(row.capability).variant) == "sm80_bf16_64x16w4x128");
  x.gemm.a_type = NVFP4_TYPE_F16;
  CHECK(x.supported(row.capability) == NVFP4_STATUS_NOT_SUPPORTED);
}

TEST_CASE("grouped: on 10.x linear scales become tiles of which each group begins one",
          "[grouped]") {
  constexpr int32_t kMany = 1 << 16;
  Experts few;
  const nvfp4_plan_info info = few.plan(100);
  CHECK(std::string(info.variant) == "sm100_128x64x256");
  CHECK(info.grid_ctas == 132);  // they compute one tile after the other
  CHECK(few.plan(100, kMany).grid_ctas == 8 * 32);
  CHECK(info.workspace_bytes == 8 * 128 * 7168 / 16);
  CHECK(info.store == NVFP4_STORE_THREADS);
  uint64_t bytes = 0;
  CHECK(nvfp4_grouped_workspace_bytes(&few.grouped, 100, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == info.workspace_bytes);
  Experts many(1000);  // 125 rows a group: a pair of CTAs has 256 columns
  CHECK(std::string(many.plan(100).variant) == "sm100_256x128x256");
  CHECK(many.plan(100, kMany).grid_ctas == 2 * (8 + 992 / 128) * 16);
  many.grouped.rows_hint = 64;
  CHECK(std::string(many.plan(100).variant) == "sm100_128x64x256");
  many.grouped.rows_hint = 129;
  CHECK(std::string(many.plan(100).variant) == "sm100_256x256x256");
  many.gemm.variant = "sm100_128x128x256";
  CHECK(many.supported(100) == NVFP4_SUCCESS);
}

// DeepEP's layout: most rows that there could be never are.
TEST_CASE("grouped: COUNTS launches on 10.x as many CTAs as run at once", "[grouped]") {
  Experts x(18 * 4096);
  x.gemm.l = 18;
  x.grouped.rows_kind = NVFP4_ROWS_COUNTS, x.grouped.capacity = 4096, x.grouped.rows_hint = 28;
  CHECK(std::string(x.plan(100, 148).variant) == "sm100_128x64x256");
  CHECK(x.plan(100, 148).grid_ctas == 148);
  CHECK(x.plan(100, 148).tiles == 18 * 64 * 32);
  x.grouped.rows_hint = 0;
  CHECK(x.plan(100, 149).grid_ctas == 148);  // pairs
}

TEST_CASE("grouped: explain says groups and their tiles in a buffer that is large enough",
          "[grouped]") {
  const Experts x;
  char text[4096];
  REQUIRE(nvfp4_grouped_explain(&x.grouped, 90, 132, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("8 groups") != std::string::npos);
  CHECK(std::string(text).find("sm90_128x32x256") != std::string::npos);
  CHECK(nvfp4_grouped_explain(&x.grouped, 90, 132, text, 20) == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE("grouped gated: planned with the entries for both and tiles of half the columns",
          "[grouped][gated]") {
  const float one = 1;
  Experts x(512);
  x.grouped.rows_hint = 128;
  nvfp4_gemm_desc& g = x.gemm;
  g.alpha2 = 1, g.activation = NVFP4_ACTIVATION_SILU;  // without addresses, that there will be a b2
  constexpr int32_t kMany = 1 << 16;
  nvfp4_plan_info info = x.plan(90, kMany);
  CHECK(std::string(info.variant) == "sm90_128x128x256");
  CHECK(info.tile_n == 64);
  CHECK(info.k_partitions == 1);
  CHECK(info.grid_ctas == (8 + 504 / 128) * 64);
  CHECK(info.epilogue == NVFP4_EPILOGUE_GENERAL);
  CHECK(info.bytes == 0.5625 * 7168 * (8 * 2 * 4096 + 512) + 2.0 * 512 * 4096);
  g.batch_invariant = 1;
  x.grouped.rows_hint = 1;
  CHECK(std::string(x.plan().variant) == "sm90_128x128x256");
  g.batch_invariant = 0;
  info = x.plan(90, kMany);
  CHECK(std::string(info.variant) == "sm90_128x32x256");
  CHECK(info.epilogue == NVFP4_EPILOGUE_FAST);
  g.d_type = NVFP4_TYPE_F32;
  CHECK(x.plan().epilogue == NVFP4_EPILOGUE_GENERAL);
  g.d_type = NVFP4_TYPE_BF16;
  x.grouped.rows_hint = 0;  // 64 rows a group
  CHECK(std::string(x.plan().variant) == "sm90_128x64x256");
  info = x.plan(100, kMany);
  CHECK(std::string(info.variant) == "sm100_128x128x256");
  CHECK(info.tile_n == 128);
  CHECK(info.grid_ctas == (8 + 504 / 128) * 32);
  CHECK(info.store == NVFP4_STORE_THREADS);
  x.halves();
  CHECK(std::string(x.plan().variant) == "sm90_bf16_128x128x256");
  x.grouped.rows_hint = 4;
  CHECK(std::string(x.plan().variant) == "sm80_bf16_64x8w4x128");
  x.grouped.rows_hint = 0;
  g.a_type = NVFP4_TYPE_F16;
  CHECK(std::string(x.plan().variant) == "sm90_f16_128x128x256");
  CHECK(std::string(x.plan(100).variant) == "sm80_f16_64x16w4x128");
  g.operand_format = NVFP4_OPERAND_FORMAT_MXFP4;
  CHECK(x.supported(100) == NVFP4_STATUS_NOT_SUPPORTED);
  CHECK(std::string(nvfp4_last_error()).find("gated (b2) with a_type = NVFP4_TYPE_F16") !=
        std::string::npos);
  g.operand_format = NVFP4_OPERAND_FORMAT_NVFP4;
  g.a_type = NVFP4_TYPE_BF16;

  g.variant = "sm90_bf16_64x32x256";  // has no such entry
  CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).find("gated (b2)") != std::string::npos);
  g.variant = nullptr, g.batch_invariant = 1;  // one tile adds all of them, in one order
  for (const int32_t hint : {1, 4096}) {
    x.grouped.rows_hint = hint;
    CHECK(std::string(x.plan().variant) == "sm90_bf16_128x128x256");
  }
  g.batch_invariant = 0;
  g.scalar_mode = NVFP4_SCALARS_DEVICE, x.grouped.group_alpha2 = &one;
  CHECK(x.supported() == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).rfind("group_alpha2 = ", 0) == 0);
}
