// SPDX-License-Identifier: MIT
// A tensor scale for each row: made of it, read, or made of an amax that is there. The device has
// the host's bits, and each row those that it has alone.
#include <cmath>
#include <cstring>
#include <limits>

#include "test/gemm/gpu.h"

namespace {

using support::DeviceBuffer;

constexpr int32_t kTypes[] = {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32};
constexpr int32_t kOfRows[] = {NVFP4_TENSOR_SCALE_ROW_AMAX, NVFP4_TENSOR_SCALE_ROWS,
                               NVFP4_TENSOR_SCALE_FROM_ROW_AMAX};

int64_t bytes_of(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

// What a call reads and writes. `operation` 0: nvfp4_quantize.
struct Data {
  int32_t type, mode, operation = NVFP4_FUSED_UNSET;
  int64_t rows, k, gap;
  std::vector<uint8_t> x, y, weight, codes, scales;
  std::vector<float> t;
  int32_t layout = NVFP4_SCALE_LAYOUT_128X4, pdl = NVFP4_PDL_OFF;
  int32_t rule = NVFP4_SCALE_RULE_DEFAULT;

  Data(int32_t of_type, int32_t of_mode, int64_t r, int64_t columns, int64_t between = 0)
      : type(of_type), mode(of_mode), rows(r), k(columns), gap(between) {
    support::Random random(uint64_t(k + type));
    for (auto* array : {&x, &y, &weight}) {
      array->assign(size_t(rows * ld() * bytes_of(type)), 0xFF);
      fill(*array, random);
    }
    codes.assign(size_t(rows * ld() / 2), 0);
    scales.assign(nvfp4_scale_bytes(rows, k, layout), 0);
    t.resize(size_t(rows));
    for (float& one : t) one = std::ldexp(1 + float(random.below(1000)) / 1000, -9);
    if (mode == NVFP4_TENSOR_SCALE_FROM_ROW_AMAX) {
      for (float& one : t) one *= 2688;
      t.front() = 0, t.back() = 1e-45f;
    }
  }
  int64_t ld() const { return k + gap; }

  // Rows of very different sizes, some with NaN, infinity, or nothing that t could be made of.
  void fill(std::vector<uint8_t>& array, support::Random& random) {
    const int mantissa = type == NVFP4_TYPE_F16 ? 10 : type == NVFP4_TYPE_BF16 ? 7 : 23;
    const uint32_t bias = type == NVFP4_TYPE_F16 ? 15 : 127, infinity = (2 * bias + 1) << mantissa;
    for (int64_t row = 0; row < rows; ++row) {
      const uint32_t exponent = 3 + random.below(2 * bias - 8) % 24;
      for (int64_t i = 0; i < k; ++i) {
        const uint32_t fraction = uint32_t(random.next()) & ((1u << mantissa) - 1);
        uint32_t bits = (exponent + random.below(5)) << mantissa | fraction;
        if (row % 5 == 1 && random.below(40) == 0) bits = infinity;
        if (row % 5 == 2 && random.below(40) == 0) bits = infinity + 1;
        if (row % 5 == 3) bits = random.below(2);
        bits |= random.below(2) << (8 * bytes_of(type) - 1);
        std::memcpy(&array[size_t((row * ld() + i) * bytes_of(type))], &bits,
                    size_t(bytes_of(type)));
      }
    }
  }

  nvfp4_quantize_desc desc() const {
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = rows, q.k = k, q.x_ld = q.codes_ld = ld();
    q.x_type = type, q.scale_layout = layout, q.tensor_scale_mode = mode, q.pdl = pdl;
    q.scale_rule = rule;
    return q;
  }
  nvfp4_fused_quantize_desc fused() const {
    nvfp4_fused_quantize_desc q{};
    q.struct_size = sizeof q;
    q.operation = operation;
    q.epsilon = operation == NVFP4_FUSED_RMS_NORM ? 1e-6f : 0;
    q.rows = rows, q.k = k, q.x_ld = q.y_ld = q.codes_ld = ld();
    q.type = type, q.scale_layout = layout, q.tensor_scale_mode = mode, q.pdl = pdl;
    return q;
  }
  bool norm() const { return operation == NVFP4_FUSED_RMS_NORM; }
};

// Runs `plain` or `fused` with those addresses.
template <typename Plain, typename Fused>
void call(const Data& d, void* const (&at)[6], const Plain& plain, const Fused& fused) {
  if (d.operation == NVFP4_FUSED_UNSET) {
    nvfp4_quantize_desc q = d.desc();
    q.x = at[0], q.codes = at[3], q.scales = at[4];
    q.tensor_scale_device = static_cast<float*>(at[5]);
    plain(q);
    return;
  }
  nvfp4_fused_quantize_desc q = d.fused();
  q.x = at[0], q.y = at[1], q.weight = d.norm() ? at[2] : nullptr;
  q.codes = at[3], q.scales = at[4];
  q.tensor_scale_device = static_cast<float*>(at[5]);
  fused(q);
}

void require(nvfp4_status status) {
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
}

Data on_host(Data d) {
  call(
      d, {d.x.data(), d.y.data(), d.weight.data(), d.codes.data(), d.scales.data(), d.t.data()},
      [](auto& q) { require(nvfp4_quantize_reference(&q)); },
      [](auto& q) { require(nvfp4_fused_quantize_host(&q)); });
  return d;
}

Data on_device(const Gpu& gpu, Data d) {
  std::vector<uint8_t> t(d.t.size() * 4);
  std::memcpy(t.data(), d.t.data(), t.size());
  std::vector<uint8_t>* const arrays[] = {&d.x, &d.y, &d.weight, &d.codes, &d.scales, &t};
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  void* at[6];
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(std::make_unique<DeviceBuffer>(gpu.driver, *arrays[i]));
    at[i] = buffers.back()->pointer();
  }
  call(
      d, at, [](auto& q) { require(nvfp4_quantize(&q, nullptr)); },
      [](auto& q) { require(nvfp4_fused_quantize(&q, nullptr)); });
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  for (int i = 0; i < 6; ++i) {
    CHECK(buffers[size_t(i)]->guards_intact());
    *arrays[i] = buffers[size_t(i)]->download();
  }
  std::memcpy(d.t.data(), t.data(), t.size());
  return d;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

void require_host_bits(const Gpu& gpu, const Data& d) {
  INFO("operation " << d.operation << ", type " << d.type << ", mode " << d.mode << ", " << d.rows
                    << " x " << d.k);
  const Data got = on_device(gpu, d), want = on_host(d);
  CHECK(same_bits(got.t, want.t));
  CHECK(got.scales == want.scales);
  CHECK(got.codes == want.codes);
  CHECK(got.x == d.x);
  CHECK(got.y == want.y);
}

}  // namespace

// The longest rows have blocks that no thread keeps, and those of 32 threads' blocks one more.
TEST_CASE("with a scale for each row the device has the host's bits", "[quantize_rows]") {
  const Gpu gpu;
  for (const int32_t type : kTypes)
    for (const int32_t mode : kOfRows) {
      require_host_bits(gpu, Data(type, mode, 7, 1040, 16));
      Data d(type, mode, 131, 48, 6);
      d.layout = NVFP4_SCALE_LAYOUT_LINEAR, d.pdl = NVFP4_PDL_ON;
      d.scales.resize(nvfp4_scale_bytes(d.rows, d.k, d.layout));
      require_host_bits(gpu, d);
      if (mode == NVFP4_TENSOR_SCALE_ROW_AMAX) require_host_bits(gpu, Data(type, mode, 3, 8464));
    }
}

TEST_CASE("by 4over6 with a scale for each row the device has the host's bits", "[quantize_rows]") {
  const Gpu gpu;
  for (const int32_t type : kTypes)
    for (const int32_t mode : kOfRows) {
      Data d(type, mode, 131, 48, 6), wide(type, mode, 3, 2064, 16);
      d.layout = NVFP4_SCALE_LAYOUT_LINEAR, d.pdl = NVFP4_PDL_ON;
      d.scales.resize(nvfp4_scale_bytes(d.rows, d.k, d.layout));
      d.rule = wide.rule = NVFP4_SCALE_RULE_4OVER6;
      require_host_bits(gpu, d);
      require_host_bits(gpu, wide);
    }
}

TEST_CASE("fused producers make a scale for each row with the host's bits", "[quantize_rows]") {
  const Gpu gpu;
  for (const int32_t type : kTypes)
    for (const int32_t operation : {NVFP4_FUSED_SILU_MUL, NVFP4_FUSED_RMS_NORM})
      for (const int64_t k : {int64_t{272}, int64_t{8464}}) {
        Data d(type, NVFP4_TENSOR_SCALE_ROW_AMAX, k > 1000 ? 3 : 12, k, 4);
        d.operation = operation;
        require_host_bits(gpu, d);
      }
}

// By AMAX, as a matrix of its own: in the order of another function.
TEST_CASE("a row has the scale and the codes that it has alone", "[quantize_rows]") {
  for (const int32_t type : kTypes) {
    const Data whole = on_host(Data(type, NVFP4_TENSOR_SCALE_ROW_AMAX, 12, 272, 16));
    for (int64_t row = 0; row < whole.rows; ++row) {
      Data one(type, NVFP4_TENSOR_SCALE_AMAX, 1, whole.k, whole.gap);
      const size_t bytes = size_t(whole.ld() * bytes_of(type)), codes = size_t(whole.ld() / 2);
      std::memcpy(one.x.data(), &whole.x[size_t(row) * bytes], bytes);
      one = on_host(one);
      CHECK(std::memcmp(&one.t[0], &whole.t[size_t(row)], 4) == 0);
      CHECK(std::equal(one.codes.begin(), one.codes.end(),
                       whole.codes.begin() + std::ptrdiff_t(size_t(row) * codes)));
    }
  }
}

TEST_CASE("what a scale for each row made is dequantized by it", "[quantize_rows]") {
  const Gpu gpu;
  Data d = on_host(Data(NVFP4_TYPE_F32, NVFP4_TENSOR_SCALE_ROW_AMAX, 12, 272));
  d.mode = NVFP4_TENSOR_SCALE_ROWS;
  const auto f32 = [&](const std::vector<uint8_t>& x) {
    std::vector<float> values(x.size() / 4);
    std::memcpy(values.data(), x.data(), x.size());
    return values;
  };
  const std::vector<float> before = f32(d.x);
  Data host = d;
  nvfp4_quantize_desc q = host.desc();
  q.x = host.x.data(), q.codes = host.codes.data(), q.scales = host.scales.data();
  q.tensor_scale_device = host.t.data();
  require(nvfp4_dequantize_reference(&q));
  std::vector<uint8_t> t(d.t.size() * 4);
  std::memcpy(t.data(), d.t.data(), t.size());
  const DeviceBuffer x(gpu.driver, d.x), codes(gpu.driver, d.codes), scales(gpu.driver, d.scales),
      rows(gpu.driver, t);
  q.x = x.pointer(), q.codes = codes.pointer(), q.scales = scales.pointer();
  q.tensor_scale_device = static_cast<float*>(rows.pointer());
  require(nvfp4_dequantize(&q, nullptr));
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  CHECK(x.download() == host.x);
  // Within the largest step of a code: a third of the value, or what t leaves of a row.
  const std::vector<float> after = f32(host.x);
  size_t far = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const float row_t = d.t[i / size_t(d.k)];
    if (!std::isfinite(before[i]) || !std::isfinite(after[i])) continue;
    far += std::fabs(after[i] - before[i]) > std::fabs(before[i]) / 3 + 1.1f * 448 * row_t / 6;
  }
  CHECK(far == 0);
}
