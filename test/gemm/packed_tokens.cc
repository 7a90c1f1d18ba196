// SPDX-License-Identifier: MIT
// Products with packed tokens on 9.0 have the bits that the same variant makes of codes and scales,
// without a workspace. The quantizers on the device write them to the bits of those on the host.
#include <cstring>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

namespace {

using support::DeviceBuffer;
using support::Fields;

Problem packed(Problem p) {
  p.a_packing = NVFP4_PACKING_SM90_TOKENS_1;
  return p;
}

// The tiles that read tokens in fp16.
std::vector<const char*> tiles() {
  std::vector<const char*> names;
  for (const gemm_test::TileOf* tile : gemm_test::tiles_of_type(NVFP4_TYPE_NONE))
    if (tile->tokens >= 32) names.push_back(tile->name.c_str());
  return names;
}

}  // namespace

#define EACH_TILE GENERATE(from_range(gemm_test::taken(tiles())))

// Sums that round, so that another order of K, or another K partition, has other bits.
TEST_CASE("packed tokens: each tile and split has the bits of codes and scales",
          "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string tile = EACH_TILE;
  const std::string split = GENERATE("/1", "/2", "/3");
  const std::string variant = tile + split;
  const int64_t tokens = gemm_test::tile_tokens(tile), k = 1024 + 16 * (tokens / 32);
  CAPTURE(variant);
  const Problem p = forced(variant.c_str(), make_problem({tokens + 5, 70, k}, Data::random, 970));
  support::DeviceGemm gemm(gpu.driver, packed(p));
  CHECK(gemm.desc.workspace_bytes == 0);
  CHECK(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(gemm.d() == support::run_on_device(gpu.driver, p));
}

TEST_CASE("packed tokens: tails of M and K give the reference's bits", "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* tile = EACH_TILE;
  const int64_t tokens = gemm_test::tile_tokens(tile);
  for (const int64_t m : {int64_t{1}, int64_t{9}, tokens - 1, tokens, 2 * tokens + 3}) {
    for (const int64_t k : {16 * (1 + m % 16), 528 + 16 * (m % 7)}) {
      CAPTURE(tile, m, k);
      gemm_test::require_reference_bits(
          gpu, packed(forced(tile, make_problem({m, 40, k}, Data::exact, 971))));
    }
  }
}

TEST_CASE("packed tokens: batches and any epilogue have the right bits", "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* tile = EACH_TILE;
  Problem p = packed(forced(tile, make_problem({37, 96, 336, 3}, Data::exact, 972)));
  gemm_test::require_reference_bits(gpu, p);
  Fields f;
  f.a_packing = NVFP4_PACKING_SM90_TOKENS_1;
  f.d_type = NVFP4_TYPE_F32, f.c_type = NVFP4_TYPE_F16, f.beta = 0.5f;
  f.bias_type = NVFP4_TYPE_BF16, f.activation = NVFP4_ACTIVATION_RELU;
  f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
  CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 1)) == "");
  f = {};
  f.a_packing = NVFP4_PACKING_SM90_TOKENS_1, f.d_type = NVFP4_TYPE_NVFP4;
  f.d_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 1)) == "");
}

TEST_CASE("packed tokens: a gated product has the right bits", "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (!gemm_test::is_taken("sm90_128x128x256")) return;
  Fields f;
  f.a_packing = NVFP4_PACKING_SM90_TOKENS_1;
  f.b2 = support::kGiven, f.alpha2 = 1, f.activation = NVFP4_ACTIVATION_SILU;
  Problem p = forced("sm90_128x128x256", make_problem({37, 96, 336}, Data::exact, 973));
  CHECK(difference_on_device(gpu.driver, support::with_fields(packed(p), f, 1)) == "");
}

TEST_CASE("packed tokens: a NaN scale makes its own row NaN", "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* tile = EACH_TILE;
  Problem p = forced(tile, make_problem({41, 70, 336}, Data::exact, 974));
  for (const auto& [row, block] : {std::pair{11, 20}, {40, 0}}) p.a.set_scale(0, row, block, 0x7F);
  CHECK(support::run_on_device(gpu.driver, packed(p)) == support::reference(p));
}

// Without a pre-pass the kernel follows a grid that may write the weights.
TEST_CASE("packed tokens: only static weights are loaded before earlier grids end",
          "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  const char* tile = EACH_TILE;
  Problem p = packed(forced(tile, make_problem({20, 128, 512}, Data::exact, 975)));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(tile, pdl);
    p.pdl = pdl;
    support::run_on_device(gpu.driver, p);
    const bool early = pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
    CHECK((emulator.counter("early_bytes") > 0) == early);
  }
}

// ---- Quantizers --------------------------------------------------------------------------------

namespace {

struct Call {
  int32_t operation;  // an NVFP4_FUSED; UNSET: nvfp4_quantize
  int32_t type, mode, rule;
};

// Numbers of neighbouring exponents around 1, and a few NaN and zeros.
std::vector<uint8_t> numbers(int32_t type, int64_t count, uint64_t seed) {
  support::Random random(seed);
  const int mantissa = type == NVFP4_TYPE_F16 ? 10 : type == NVFP4_TYPE_BF16 ? 7 : 23;
  const uint32_t bias = type == NVFP4_TYPE_F16 ? 15 : 127;
  const size_t bytes = type == NVFP4_TYPE_F32 ? 4 : 2;
  std::vector<uint8_t> out(size_t(count) * bytes);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t fraction = uint32_t(random.next()) & ((1u << mantissa) - 1);
    uint32_t bits = (bias - 4 + random.below(7)) << mantissa | fraction;
    if (random.below(300) == 0) bits = (2 * bias + 1) << mantissa | 1;
    if (random.below(50) == 0) bits = 0;
    bits |= random.below(2) << (8 * bytes - 1);
    std::memcpy(&out[size_t(i) * bytes], &bits, bytes);
  }
  return out;
}

template <typename Desc>
void set_common(const Call& call, int64_t rows, int64_t k, Desc* q) {
  q->struct_size = sizeof *q;
  q->rows = rows, q->k = q->x_ld = k;
  q->tensor_scale_mode = call.mode, q->scale_rule = call.rule;
  if (call.mode == NVFP4_TENSOR_SCALE_VALUE) q->tensor_scale = 0.003f;
  q->packing = NVFP4_PACKING_SM90_TOKENS_1;
}

// On the host, or with addresses of the device.
nvfp4_status quantize(const Call& call, int64_t rows, int64_t k, void* x, void* y, void* weight,
                      void* codes, float* t, bool on_host) {
  if (call.operation == NVFP4_FUSED_UNSET) {
    nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
    set_common(call, rows, k, &q);
    q.x = x, q.codes = codes, q.tensor_scale_device = t, q.x_type = call.type;
    if (call.mode == NVFP4_TENSOR_SCALE_VALUE) q.tensor_scale_device = nullptr;
    return on_host ? nvfp4_quantize_reference(&q) : nvfp4_quantize(&q, nullptr);
  }
  const bool norm = call.operation == NVFP4_FUSED_RMS_NORM;
  nvfp4_fused_quantize_desc q = NVFP4_FUSED_QUANTIZE_DESC_INIT;
  set_common(call, rows, k, &q);
  q.operation = call.operation, q.type = call.type, q.epsilon = norm ? 1e-5f : 0;
  q.x = x, q.y = y, q.y_ld = k, q.weight = norm ? weight : nullptr, q.codes = codes;
  q.tensor_scale_device = call.mode == NVFP4_TENSOR_SCALE_VALUE ? nullptr : t;
  return on_host ? nvfp4_fused_quantize_host(&q) : nvfp4_fused_quantize(&q, nullptr);
}

constexpr int32_t kValue = NVFP4_TENSOR_SCALE_VALUE, kRows = NVFP4_TENSOR_SCALE_ROW_AMAX;
constexpr Call kCalls[] = {
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_F16, kValue, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_BF16, kValue, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_F32, kRows, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_BF16, kRows, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_BF16, kValue, NVFP4_SCALE_RULE_4OVER6},
    {NVFP4_FUSED_UNSET, NVFP4_TYPE_F16, kRows, NVFP4_SCALE_RULE_4OVER6},
    {NVFP4_FUSED_SILU_MUL, NVFP4_TYPE_BF16, kValue, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_SILU_MUL, NVFP4_TYPE_F16, kRows, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_RMS_NORM, NVFP4_TYPE_BF16, kValue, NVFP4_SCALE_RULE_DEFAULT},
    {NVFP4_FUSED_RMS_NORM, NVFP4_TYPE_F16, kRows, NVFP4_SCALE_RULE_DEFAULT}};

}  // namespace

TEST_CASE("packed tokens: quantizers write every byte with the bits of the host",
          "[packed_tokens]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Call call = GENERATE(from_range(std::begin(kCalls), std::end(kCalls)));
  for (const auto& [rows, k] :
       {std::pair<int64_t, int64_t>{1, 16}, {5, 528}, {13, 256}, {3, 9232}}) {
    CAPTURE(call.operation, call.type, call.mode, call.rule, rows, k);
    std::vector<uint8_t> x = numbers(call.type, rows * k, 980),
                         y = numbers(call.type, rows * k, 981), weight = numbers(call.type, k, 982);
    std::vector<float> t(size_t(rows), 0.5f);
    const size_t bytes =
        nvfp4_packed_bytes(rows, k, NVFP4_PACKING_SM90_TOKENS_1, NVFP4_OPERAND_FORMAT_NVFP4);
    constexpr size_t kGuard = 256;
    std::vector<uint8_t> codes(bytes + kGuard, 0xA5);
    const DeviceBuffer on_x(gpu.driver, x), on_y(gpu.driver, y), on_weight(gpu.driver, weight),
        on_codes(gpu.driver, codes), on_t(gpu.driver, support::bytes_of(t.data(), t.size()));
    const nvfp4_status status =
        quantize(call, rows, k, on_x.pointer(), on_y.pointer(), on_weight.pointer(),
                 on_codes.pointer(), static_cast<float*>(on_t.pointer()), false);
    INFO(nvfp4_last_error());
    REQUIRE(status == NVFP4_SUCCESS);
    REQUIRE(quantize(call, rows, k, x.data(), y.data(), weight.data(), codes.data(), t.data(),
                     true) == NVFP4_SUCCESS);
    CHECK(on_codes.download() == codes);
    CHECK(on_t.download() == support::bytes_of(t.data(), t.size()));
    if (call.operation != NVFP4_FUSED_UNSET) continue;
    // And back.
    nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
    set_common(call, rows, k, &q);
    q.x_type = call.type;
    if (call.mode == kRows) q.tensor_scale_mode = NVFP4_TENSOR_SCALE_ROWS;
    q.x = x.data(), q.codes = codes.data();
    if (call.mode == kRows) q.tensor_scale_device = t.data();
    REQUIRE(nvfp4_dequantize_reference(&q) == NVFP4_SUCCESS);
    q.x = on_x.pointer(), q.codes = on_codes.pointer();
    if (call.mode == kRows) q.tensor_scale_device = static_cast<float*>(on_t.pointer());
    REQUIRE(nvfp4_dequantize(&q, nullptr) == NVFP4_SUCCESS);
    CHECK(on_x.download() == x);
  }
}
