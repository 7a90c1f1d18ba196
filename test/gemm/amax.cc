// SPDX-License-Identifier: MIT
// Maxima of D and of its rows: those of the same product in fp32, bit by bit, whatever the type and
// order of D; and nothing written beside them.
#include <cmath>
#include <cstring>

#include "test/gemm/grouped.h"
#include "test/gemm/sizes.h"

using support::DeviceBuffer;
using support::Fields;
using support::Problem;

namespace {

using Bytes = std::vector<uint8_t>;
constexpr int32_t kNan = 0x7FFFFFFF;

int32_t at(const Bytes& bytes, size_t index) {
  int32_t bits;
  std::memcpy(&bits, &bytes.at(4 * index), sizeof bits);
  return bits;
}
int32_t magnitude(int32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000 ? kNan : bits & kNan; }
int32_t bits_of(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

Fields with_maxima(Fields f = {}) {
  f.d_amax = f.d_row_amax = support::kGiven;
  return f;
}

// What is there before, and the magnitudes of D in fp32.
std::vector<int32_t> maxima_of(const Gpu& gpu, const Problem& p) {
  Problem in_f32 = p;
  in_f32.d_type = NVFP4_TYPE_F32, in_f32.d_ld_gap = in_f32.d_batch_gap = 0;
  in_f32.d_amax = in_f32.d_row_amax = nullptr;
  in_f32.lay_out(p.shape());
  const Bytes d = bytes_on_device(gpu.driver, in_f32), before = p.d_before();
  const nvfp4_gemm_desc g = make_desc(in_f32, NVFP4_SCALE_LAYOUT_LINEAR);
  std::vector<int32_t> maxima;
  for (size_t i = p.d_amax_at() / 4; i < before.size() / 4; ++i) maxima.push_back(at(before, i));
  for (int64_t batch = 0; batch < g.l; ++batch)
    for (int64_t row = 0; row < g.m; ++row)
      for (int64_t n = 0; n < g.n; ++n) {
        const int64_t i = in_f32.index(batch, row, n, g.d_ld, g.d_batch_stride);
        for (const size_t of : {size_t(0), size_t(1 + batch * g.m + row)}) {
          maxima[of] = std::max(maxima[of], magnitude(at(d, size_t(i))));
        }
      }
  return maxima;
}

void require_maxima(const Gpu& gpu, const Problem& operands, const Fields& fields) {
  const Problem p = with_fields(operands, support::possible(fields, operands.shape()), 7);
  INFO(to_string(operands.shape())
       << ", variant " << (operands.variant ? operands.variant : "chosen") << ", " << to_string(p));
  const std::vector<int32_t> want = maxima_of(gpu, p);
  const Bytes got = bytes_on_device(gpu.driver, p);
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    REQUIRE(at(got, p.d_amax_at() / 4 + i) == want[i]);
  }
}

// Fast epilogues without maxima; everything; by columns; with scales.
Fields fields_of(size_t number) {
  Fields f = with_maxima();
  f.d_ld_gap = f.d_batch_gap = 2;
  if (number == 0) return f;
  f.alpha = 0.3f, f.bias_type = NVFP4_TYPE_BF16,
  f.a_tensor_scale = f.b_tensor_scale = support::kGiven;
  f.d_type = number == 3 ? NVFP4_TYPE_NVFP4 : NVFP4_TYPE_BF16;
  if (number == 3) return f;
  f.c_type = NVFP4_TYPE_F32, f.beta = -0.7f, f.activation = NVFP4_ACTIVATION_SILU;
  f.a_tensor_scale_rows = true;
  if (number == 2) f.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR, f.bias_axis = NVFP4_BIAS_AXIS_ROW;
  return f;
}

}  // namespace

TEST_CASE("each variant has the maxima of its fp32 product", "[amax]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const int64_t m = gemm_test::few_tokens(gpu, variant, gpu.sized(131, 21));
  for (size_t i = 0; i < 4; ++i) {
    if (!gemm_test::takes(gpu, variant, i, 4)) continue;
    // N ends inside the four columns of a thread, but where D has scales.
    const Shape shape{m, i == 3 ? 80 : 70, 192, 2};
    require_maxima(gpu, forced(variant, make_problem(shape, Data::random, 60 + i)), fields_of(i));
  }
}

TEST_CASE("maxima are of sums whose K partitions are added", "[amax]") {
  USE_GPU(gpu);
  const std::vector<const char*> variants = gpu.by_family<std::vector<const char*>>(
      {"sm90_64x4x256/4", "sm90_64x32x256/2", "sm90_128x64x256/3"},
      {"sm100_128x64x256/2", "sm100_128x128x256/4"},
      {"sm120_64x8x256/4", "sm120_64x32x256/3", "sm120_128x128x128/2"});
  size_t number = 0;
  for (const char* variant : variants) {
    const Shape shape{gpu.sized<int64_t>(39, 19), 80, 1024};
    require_maxima(gpu, forced(variant, make_problem(shape, Data::random, 90)),
                   fields_of(number++ % 4));
  }
}

TEST_CASE("tokens of 16 bits have maxima", "[amax][a16]") {
  USE_GPU_FOR_HALVES(gpu);
  for (size_t i = 0; i < 4; ++i) {
    const int32_t type = i % 2 ? NVFP4_TYPE_BF16 : NVFP4_TYPE_F16;
    require_maxima(
        gpu, support::make_a16_problem({5, i == 3 ? 80 : 70, 256}, type, Data::random, 61 + i, {}),
        fields_of(i));
  }
}

// D is C, whose rows have a NaN with other bits, an infinity, subnormal numbers, ones, a largest
// number in the last column, and zeros alone.
void require_extremes(const Gpu& gpu, const Problem& operands) {
  Fields f = with_maxima();
  f.c_type = NVFP4_TYPE_F32, f.beta = 1;
  Problem p = with_fields(operands, f, 1);
  const Shape& s = operands.shape();
  for (int64_t n = 0; n < s.n; ++n) {
    const uint32_t sign = uint32_t(n % 2) << 31;
    p.set_c(0, 0, n, n == 7 ? 0xFFC12345 : 0x7F800000);
    p.set_c(0, 1, n, n == 9 ? 0xFF800000 : sign | 0x7F7FFFFF);
    p.set_c(0, 2, n, sign | uint32_t(1 + n));
    p.set_c(0, 3, n, sign | 0x3F800000);
    p.set_c(0, 4, n, n + 1 == s.n ? 0xC4810000 : 0x3F800000);
    p.set_c(0, 5, n, 0x80000000);
  }
  const Bytes d = bytes_on_device(gpu.driver, p);
  const size_t first = p.d_amax_at() / 4;
  // In rows 1 and 3 numbers are there before (problem.cc).
  const int32_t want[] = {kNan, kNan, 0x7F800000, int32_t(s.n), bits_of(1000), bits_of(1032), 0};
  for (size_t i = 0; i < std::size(want); ++i) CHECK(at(d, first + i) == want[i]);
  CHECK(first_difference(p, d, p.reference()) == "");
}

TEST_CASE("maxima of NaN and infinity and zeros and subnormal numbers", "[amax]") {
  USE_GPU(gpu);
  require_extremes(gpu, make_problem({6, 70, 64}));
}

TEST_CASE("K = 0 has maxima", "[amax][empty]") {
  USE_GPU_FOR_HALVES(gpu);
  require_extremes(gpu, support::make_a16_problem({6, 70, 0}, NVFP4_TYPE_BF16, Data::exact, 1, {}));
}

TEST_CASE("a product's maxima of rows give the next one the quantizer's own tensor scales",
          "[amax]") {
  USE_GPU(gpu);
  Fields f;
  f.d_row_amax = support::kGiven, f.d_type = NVFP4_TYPE_F32,
  f.activation = NVFP4_ACTIVATION_RELU_SQUARED;
  const Problem p = with_fields(make_problem({9, 96, 192}, Data::random, 12), f, 3);
  const support::DeviceGemm gemm(gpu.driver, p);
  gpu.driver.check(gpu.driver.cuMemsetD8(reinterpret_cast<CUdeviceptr>(gemm.desc.d_row_amax), 0,
                                         9 * sizeof(float)),
                   "cuMemsetD8");
  REQUIRE(nvfp4_gemm_run(&gemm.desc, nullptr) == NVFP4_SUCCESS);
  Bytes d = gemm.d_bytes();
  Bytes codes[2], scales[2];
  for (const bool from_product : {false, true}) {
    codes[from_product].resize(9 * 48), scales[from_product].resize(9 * 6);
    std::vector<float> t(9);
    std::memcpy(t.data(), &d[p.d_amax_at() + 4], 9 * sizeof(float));
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = 9, q.k = q.x_ld = q.codes_ld = 96, q.x = d.data(), q.x_type = NVFP4_TYPE_F32;
    q.codes = codes[from_product].data(), q.scales = scales[from_product].data();
    q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR, q.tensor_scale_device = t.data();
    q.tensor_scale_mode =
        from_product ? NVFP4_TENSOR_SCALE_FROM_ROW_AMAX : NVFP4_TENSOR_SCALE_ROW_AMAX;
    REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
  }
  CHECK(codes[0] == codes[1]);
  CHECK(scales[0] == scales[1]);
}

TEST_CASE("a plan adds to the maxima that its run names and is made with them or without",
          "[amax]") {
  USE_GPU(gpu);
  const Problem p = with_fields(make_problem({9, 70, 64, 2}, Data::exact, 33), with_maxima(), 4);
  const support::DeviceGemm a(gpu.driver, p);
  // They count as int32_t: a NaN without a sign stays, and what has a sign, NaN too, is below any
  // maximum.
  const std::vector<int32_t> before = {kNan, int32_t(0xFFC00000), bits_of(-7), bits_of(1e30f),
                                       -1,   0x7FC00000};
  Bytes there(20 * 4, 0);
  std::memcpy(there.data(), before.data(), 4 * before.size());
  const DeviceBuffer other(gpu.driver, there);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.d_amax = static_cast<float*>(other.pointer()), x.d_row_amax = x.d_amax + 1;
  const support::Plan plan(a.desc);
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  const Bytes d = a.d_bytes(), now = other.download();
  const Bytes want = p.reference(), untouched = p.d_before();
  const auto first = std::ptrdiff_t(p.d_amax_at());
  CHECK(std::equal(d.begin(), d.begin() + first, want.begin()));
  CHECK(std::equal(d.begin() + first, d.end(), untouched.begin() + first));
  CHECK(at(now, 0) == kNan);
  for (size_t row = 0; row < 18; ++row) {
    CAPTURE(row);
    int32_t largest = row + 1 < before.size() ? before[row + 1] : 0;
    if (row % 7 != 1 && row % 7 != 3) {
      largest = std::max(largest, at(want, size_t(first) / 4 + 1 + row));
      CHECK(at(now, 1 + row) == largest);
    }
  }
  x.d_amax = static_cast<float*>(a.desc.d);
  CHECK(plan.run(x) == NVFP4_STATUS_OVERLAP);

  nvfp4_gemm_desc without = a.desc;
  without.d_row_amax = nullptr;
  x.d_amax = static_cast<float*>(other.pointer());
  CHECK(support::Plan(without).run(x) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).rfind("d_row_amax = 0x", 0) == 0);
}

TEST_CASE("a grouped product has maxima of the rows that groups have", "[amax][grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const bool blackwell = gpu.info.major == 10;
  gemm_test::GroupedProblem problem({23, 70, 192, blackwell ? NVFP4_TYPE_NONE : NVFP4_TYPE_BF16},
                                    {0, 9, 9, 20}, 54);
  gemm_test::DeviceGrouped device(gpu, problem);
  device.gemm.variant = blackwell                   ? "sm100_128x64x256"
                        : gemm_test::is_mma_alone() ? gemm_test::mma_tiles()[1].variant
                                                    : "sm90_bf16_64x32x256";
  const Bytes without = run_grouped(device);
  device.clear_d();
  const DeviceBuffer maxima(gpu.driver, Bytes(24 * 4, 0));
  device.gemm.d_amax = static_cast<float*>(maxima.pointer());
  device.gemm.d_row_amax = device.gemm.d_amax + 1;
  const Bytes d = run_grouped(device), got = maxima.download();
  CHECK(d == without);
  std::vector<int32_t> want(24, 0);
  for (size_t row = 0; row < 20; ++row)
    for (size_t n = 0; n < 70; ++n)
      for (const size_t of : {size_t(0), row + 1}) {
        want[of] = std::max(want[of], magnitude(at(d, row * 70 + n)));
      }
  for (size_t i = 0; i < want.size(); ++i) CHECK(at(got, i) == want[i]);
  CHECK(maxima.guards_intact());
}

TEST_CASE("a gated product has maxima of both products", "[amax][gated]") {
  USE_GPU_FOR_GATED(gpu);
  for (const int32_t type : {NVFP4_TYPE_BF16, NVFP4_TYPE_NVFP4}) {
    Fields f = with_maxima();
    f.b2 = support::kGiven, f.d_type = type, f.activation = NVFP4_ACTIVATION_SILU;
    f.alpha = 0.02f, f.alpha2 = -0.03f, f.bias_type = NVFP4_TYPE_BF16;
    const Problem p = with_fields(make_problem({13, 80, 192}, Data::exact, 8), f, 2);
    CHECK(difference_on_device(gpu.driver, p) == "");
  }
}
