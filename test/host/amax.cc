// SPDX-License-Identifier: MIT
// Maxima of D and of its rows, by the reference, and their rules.
#include <cmath>
#include <cstring>
#include <limits>

#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kM = 5, kN = 48, kK = 32, kL = 2;

// Two batches by the reference, D = silu(0.7 * A * B^T - 1.3 * C).
struct Product {
  Bytes a, a_scales, b, b_scales;
  std::vector<float> c, d;
  std::vector<float> amax = std::vector<float>(1), row_amax = std::vector<float>(kL * kM);
  Desc g = NVFP4_GEMM_DESC_INIT;

  Product() : a(kL * kM * kK / 2), a_scales(kL * 16), b(kL * kN * kK / 2), b_scales(kL * 96) {
    support::Random random(3);
    for (Bytes* bytes : {&a, &b})
      for (uint8_t& byte : *bytes) byte = uint8_t(random.next());
    for (Bytes* bytes : {&a_scales, &b_scales})
      for (uint8_t& byte : *bytes) byte = uint8_t(random.below(0x50));
    for (int64_t i = 0; i < kL * kM * kN; ++i) c.push_back(float(random.below(999)) / 3 - 150);
    d.resize(c.size());
    g.m = kM, g.n = kN, g.k = kK, g.l = kL;
    g.a = a.data(), g.a_ld = kK, g.a_batch_stride = kM * kK;
    g.a_scales = a_scales.data(), g.a_scales_batch_stride_bytes = 16;
    g.b = b.data(), g.b_ld = kK, g.b_batch_stride = kN * kK;
    g.b_scales = b_scales.data(), g.b_scales_batch_stride_bytes = 96;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.alpha = 0.7f, g.beta = -1.3f, g.activation = NVFP4_ACTIVATION_SILU;
    g.c = c.data(), g.c_type = NVFP4_TYPE_F32, g.c_ld = kN, g.c_batch_stride = kM * kN;
    g.d = d.data(), g.d_type = NVFP4_TYPE_F32, g.d_ld = kN, g.d_batch_stride = kM * kN;
    g.d_amax = amax.data(), g.d_row_amax = row_amax.data();
  }

  // The largest magnitude of D in fp32.
  float largest(int64_t first, int64_t count) const {
    float most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(d[size_t(first + i)]));
    return most;
  }
};

std::string refusal(const Desc& g) {
  const nvfp4_status status = nvfp4_gemm_reference(&g);
  return std::string(nvfp4_status_name(status)).substr(13) + ": " + nvfp4_last_error();
}

void begins(const std::string& text, const std::string& with) {
  INFO(text);
  CHECK(text.rfind(with, 0) == 0);
}

std::string explained(const Desc& g) {
  std::string text(1 << 14, '\0');
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_gemm_explain(&g, 90, 132, text.data(), text.size()) == NVFP4_SUCCESS);
  return text;
}

}  // namespace

TEST_CASE("d_amax and d_row_amax are maxima of D in fp32 whatever its type and order") {
  Product p;
  REQUIRE(nvfp4_gemm_reference(&p.g) == NVFP4_SUCCESS);
  CHECK(p.amax[0] == p.largest(0, kL * kM * kN));
  for (int64_t row = 0; row < kL * kM; ++row) {
    CHECK(p.row_amax[size_t(row)] == p.largest(row * kN, kN));
  }
  for (const bool by_columns : {false, true}) {
    Product other;
    std::vector<float> by_column(other.c.size());
    for (int64_t i = 0; i < kL * kM * kN; ++i) {
      const int64_t batch = i / (kM * kN), row = i / kN % kM, n = i % kN;
      by_column[size_t(batch * kM * kN + n * kM + row)] = other.c[size_t(i)];
    }
    other.g.d_type = NVFP4_TYPE_F16;
    if (by_columns) {
      other.g.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR, other.g.c = by_column.data();
      other.g.c_ld = other.g.d_ld = kM;
    }
    REQUIRE(nvfp4_gemm_reference(&other.g) == NVFP4_SUCCESS);
    CHECK(other.amax == p.amax);
    CHECK(other.row_amax == p.row_amax);
  }
}

TEST_CASE(
    "Maxima join what is there: a NaN stays and a larger one too and what has a sign does not") {
  Product p;
  p.c[3] = std::numeric_limits<float>::quiet_NaN();
  const float nan = p.c[3];
  p.row_amax = {0, nan, 1e30f, -1e30f, -0.0f, 0, 0, 0, 0, 0};
  REQUIRE(nvfp4_gemm_reference(&p.g) == NVFP4_SUCCESS);
  uint32_t bits;
  std::memcpy(&bits, p.amax.data(), sizeof bits);
  CHECK(bits == 0x7FFFFFFF);
  std::memcpy(&bits, p.row_amax.data(), sizeof bits);
  CHECK(bits == 0x7FFFFFFF);
  CHECK(std::isnan(p.row_amax[1]));
  CHECK(p.row_amax[2] == 1e30f);
  for (int64_t row = 3; row < kL * kM; ++row) {
    CHECK(p.row_amax[size_t(row)] == p.largest(row * kN, kN));
  }
}

TEST_CASE("Stored maxima are compared as int32_t so that a NaN stays only without a sign") {
  Product p;
  const uint32_t before[kL * kM] = {0x7FFFFFFF, 0x7FC00000, 0x7F800001, 0x7F800000, 0xFFC00000,
                                    0xFFFFFFFF, 0xFF800000, 0x80000000, 0,          1};
  std::memcpy(p.row_amax.data(), before, sizeof before);
  REQUIRE(nvfp4_gemm_reference(&p.g) == NVFP4_SUCCESS);
  for (int64_t row = 0; row < kL * kM; ++row) {
    const float largest = p.largest(row * kN, kN);
    int32_t want, stored, got;
    std::memcpy(&want, &largest, sizeof want);
    std::memcpy(&stored, &before[row], sizeof stored);
    std::memcpy(&got, &p.row_amax[size_t(row)], sizeof got);
    CAPTURE(row);
    CHECK(got == std::max(want, stored));
  }
}

TEST_CASE("d_amax and d_row_amax lie apart from everything and are aligned") {
  for (float* Desc::*field : {&Desc::d_amax, &Desc::d_row_amax}) {
    Product p;
    const std::string name = field == &Desc::d_amax ? "d_amax" : "d_row_amax";
    const auto with = [&](const void* address, int64_t bytes = 0) {
      Desc g = p.g;
      g.*field = reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(address) + uintptr_t(bytes));
      return refusal(g);
    };
    begins(with(p.g.*field, 2), "MISALIGNED: " + name + " = 0x");
    begins(with(p.d.data()), "OVERLAP: " + name + " = [");
    begins(with(&p.d.back()), "OVERLAP: " + name + " = [");
    begins(with(p.c.data()), "OVERLAP: " + name + " = [");
    begins(with(p.b_scales.data()), "OVERLAP: " + name + " = [");
    begins(with(field == &Desc::d_amax ? &p.row_amax.back() : p.amax.data()),
           "OVERLAP: d_row_amax = [");
    if (field == &Desc::d_amax) continue;
    // The last of ten rows, in the second batch.
    begins(with(p.d.data(), -36), "OVERLAP: d_row_amax = [");
    begins(with(reinterpret_cast<void*>(UINTPTR_MAX - 3)), "LIMIT: the last byte of d_row_amax");
  }
}

TEST_CASE("grouped: the reference has the maxima of each row of all groups", "[grouped]") {
  Product p;
  const int32_t ends[] = {2, 4};
  nvfp4_grouped_desc grouped{};
  grouped.struct_size = sizeof grouped;
  grouped.gemm = &p.g, grouped.rows = ends, grouped.rows_kind = NVFP4_ROWS_ENDS;
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_grouped_reference(&grouped) == NVFP4_SUCCESS);
  CHECK(p.amax[0] == p.largest(0, 4 * kN));
  for (int64_t row = 0; row < kL * kM; ++row) {
    CHECK(p.row_amax[size_t(row)] == (row < 4 ? p.largest(row * kN, kN) : 0));
  }
}

TEST_CASE("Of a product without rows or columns no maximum is touched") {
  for (int64_t Desc::*size : {&Desc::m, &Desc::n, &Desc::l}) {
    Product p;
    p.amax[0] = p.row_amax[0] = -7;
    p.g.*size = 0;
    REQUIRE(nvfp4_gemm_reference(&p.g) == NVFP4_SUCCESS);
    CHECK(p.amax[0] == -7);
    CHECK(p.row_amax[0] == -7);
  }
}

TEST_CASE("explain says which maxima there are and gives the options that ask for them") {
  Product p;
  p.g.a = p.g.b = p.g.c = reinterpret_cast<void*>(uintptr_t{1} << 40);
  p.g.a_scales = p.g.b_scales = p.g.a;
  p.g.d = reinterpret_cast<void*>(uintptr_t{1} << 41);
  const std::string text = explained(p.g);
  CHECK(text.find("; D fp32, its largest magnitude to d_amax, that of each row to d_row_amax\n") !=
        text.npos);
  CHECK(text.find(" --d-amax --d-row-amax\n") != text.npos);
  p.g.d_amax = nullptr;
  p.g.c = nullptr, p.g.c_type = NVFP4_TYPE_NONE, p.g.beta = 0;
  p.g.activation = NVFP4_ACTIVATION_NONE, p.g.d_type = NVFP4_TYPE_F16;
  const std::string rows = explained(p.g);
  CHECK(rows.find("epilogue  alpha; D fp16, that of each row to d_row_amax\n") != rows.npos);
  nvfp4_plan_info info{};
  info.struct_size = sizeof info;
  REQUIRE(nvfp4_gemm_describe(&p.g, 90, 132, &info) == NVFP4_SUCCESS);
  CHECK(info.epilogue == NVFP4_EPILOGUE_GENERAL);
}
