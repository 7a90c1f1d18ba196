// SPDX-License-Identifier: MIT
// D in E2M1 with generated scales: the bits of quantizing the same product in fp32, by every
// variant, and nothing written beside them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "test/gemm/emulator.h"
#include "test/gemm/shares.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using support::Fields;
using support::Problem;

namespace {

constexpr int32_t kScaledTypes[] = {NVFP4_TYPE_NVFP4, NVFP4_TYPE_MXFP4, NVFP4_TYPE_E2M1_UE8M0};

// A type of each number, and the fields that go with it.
Fields scaled(size_t number) {
  Fields f;
  f.d_type = kScaledTypes[number % 3];
  f.d_scale_layout = number % 2 ? NVFP4_SCALE_LAYOUT_LINEAR : NVFP4_SCALE_LAYOUT_128X4;
  if (f.d_type == NVFP4_TYPE_NVFP4) f.d_tensor_scale = support::Given{number / 3 % 2 == 0};
  if (f.d_type != NVFP4_TYPE_NVFP4 && number / 3 % 2) f.d_scale_rule = NVFP4_SCALE_RULE_FLOOR;
  return f;
}

// Codes and scales of D in fp32, made by the quantizer, in a memory like the product's. It clears
// the padding of scales, which a product leaves alone: `keeps` says which bytes those are.
std::vector<uint8_t> quantized(const Problem& p, std::vector<uint8_t> d_f32,
                               std::vector<uint8_t>* keeps) {
  const nvfp4_gemm_desc g = make_desc(p, NVFP4_SCALE_LAYOUT_LINEAR);
  std::vector<uint8_t> out = p.d_before();
  keeps->assign(out.size(), 0);
  std::vector<float> x(d_f32.size() / sizeof(float));
  std::memcpy(x.data(), d_f32.data(), d_f32.size());
  const int32_t type = p.d_type;
  for (int64_t batch = 0; batch < g.l; ++batch) {
    const size_t scales = p.d_scales_at() + size_t(batch * g.d_scales_batch_stride_bytes);
    nvfp4_quantize_desc q{};
    q.struct_size = sizeof q;
    q.rows = g.m, q.k = g.n, q.x = &x[size_t(batch * g.m * g.n)], q.x_ld = g.n;
    q.x_type = NVFP4_TYPE_F32, q.codes = &out[size_t(batch * g.d_batch_stride / 2)];
    q.codes_ld = g.d_ld, q.scales = &out[scales], q.scale_layout = p.d_scale_layout;
    q.tensor_scale = p.d_tensor_scale ? p.d_factors[0] : 1, q.scale_rule = g.d_scale_rule;
    q.format = support::format_of_d(type);
    INFO(nvfp4_last_error());
    REQUIRE(nvfp4_quantize_reference(&q) == NVFP4_SUCCESS);
    if (q.scale_layout == NVFP4_SCALE_LAYOUT_LINEAR) continue;
    // Rows of ones at the places of scales that exist, moved as scales are.
    const int64_t k = type == NVFP4_TYPE_MXFP4 ? g.n / 2 : g.n;
    const std::vector<uint8_t> ones(size_t(g.m * k / 16), 1);
    std::vector<uint8_t> tiles(nvfp4_scale_bytes(g.m, k, NVFP4_SCALE_LAYOUT_128X4));
    REQUIRE(nvfp4_scale_convert_host(ones.data(), NVFP4_SCALE_LAYOUT_LINEAR, tiles.data(),
                                     NVFP4_SCALE_LAYOUT_128X4, g.m, k) == NVFP4_SUCCESS);
    for (size_t i = 0; i < tiles.size(); ++i) (*keeps)[scales + i] = tiles[i] == 0;
  }
  return out;
}

// By the device, both of one variant: sums are rounded, in its order.
void require_chain(const Gpu& gpu, const Problem& p) {
  Problem in_f32 = p;
  in_f32.d_type = NVFP4_TYPE_F32, in_f32.d_ld_gap = in_f32.d_batch_gap = 0;
  in_f32.lay_out(p.shape());
  const char* const variant = p.variant;
  INFO(to_string(p.shape()) << ", variant " << (variant ? variant : "chosen") << ", "
                            << to_string(p));
  std::vector<uint8_t> keeps;
  std::vector<uint8_t> want = quantized(p, bytes_on_device(gpu.driver, in_f32), &keeps);
  for (size_t i = 0; i < want.size(); ++i) {
    if (keeps[i]) want[i] = 0xFF;
  }
  REQUIRE(first_difference(p, bytes_on_device(gpu.driver, p), want) == "");
}

void require_chain(const Gpu& gpu, const Problem& operands, const Fields& fields) {
  const Problem p = with_fields(operands, support::possible(fields, operands.shape()), 7);
  REQUIRE(p.d_type == fields.d_type);
  require_chain(gpu, p);
}

void add_everything(Fields& f) {
  f.c_type = NVFP4_TYPE_F32, f.beta = -0.7f, f.alpha = 0.3f;
  f.bias_type = NVFP4_TYPE_BF16, f.activation = NVFP4_ACTIVATION_SILU;
  f.a_tensor_scale = f.b_tensor_scale = support::kGiven;
}

// A block each of NaN, infinity, zeros, -0, what is subnormal, what overflows a quotient, and what
// is a tie between two scales: D is act(C), with and without a tensor scale at either end of what
// divides without a division; 2^121 times the largest scale is infinite.
constexpr uint32_t kFills[] = {
    0x7FC00000, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x7F7FFFFF,
    0x00800000, 0x40CC0000, 0x40C00000, 0x3FC00001, 0x26800000, 0x58800000, 0x01800000, 0x02400000};

// For what a column has alone: an entry of its own on 9.0 (kernel/sm90/sums/scaled.cuh), a row a
// lane on 10.x (kernel/sm100/scaled.cuh).
bool has_fast_scales(const Gpu& gpu, const char* variant) {
  return gpu.info.major != 9 || gemm_test::tile_tokens(variant) >= 32;
}
using Variants = std::vector<const char*>;
void add_columns_terms(Fields& f, bool of_rows) {
  f.alpha = 0.3f, f.bias_type = NVFP4_TYPE_BF16;
  f.a_tensor_scale = f.b_tensor_scale = support::kGiven, f.a_tensor_scale_rows = of_rows;
}

void require_extremes(const Gpu& gpu, const Problem& operands) {
  const Shape& shape = operands.shape();
  for (size_t i = 0; i < 6; ++i) {
    for (const float t : {1.0f, 0x1p-126f, 0x1p121f, 0.37f}) {
      Fields f = scaled(i);
      if (f.d_type != NVFP4_TYPE_NVFP4 && t != 1) continue;
      f.c_type = NVFP4_TYPE_F32, f.beta = 1, f.d_tensor_scale = support::Given{t != 1};
      Problem p = with_fields(operands, f, 1);
      p.d_factors = {t};
      for (int64_t batch = 0; batch < shape.l; ++batch)
        for (int64_t row = 0; row < shape.m; ++row)
          for (int64_t n = 0; n < shape.n; ++n) {
            // A row of blocks of one number, then of it among such as have a subnormal or a normal
            // scale, among zeros and its neighbours.
            const uint32_t fill = kFills[size_t(n / 32)];
            const uint32_t least = n / 32 % 2 == 0 ? 0x3C800000 : 0x3F800000;
            const uint32_t others[] = {fill, least + uint32_t(n % 7) * 0x123456u, 0,
                                       fill - uint32_t(n % 3), fill ^ 0x80000000u};
            const bool first = n % 32 == 5 || n % 32 == 21;
            p.set_c(batch, row, n, first ? fill : others[size_t(row + batch) % 5]);
          }
      INFO(to_string(f) << ", t " << double(t));
      REQUIRE(difference_on_device(gpu.driver, p) == "");
    }
  }
}

}  // namespace

TEST_CASE("each variant writes D with scales in the bits of its quantized fp32 product",
          "[scaled_d]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const int64_t m = gemm_test::few_tokens(gpu, variant, gpu.sized(131, 21));
  for (size_t i = 0; i < 6; ++i) {
    if (!gemm_test::takes(gpu, variant, i, 6)) continue;
    // Tiles end with N, and warps of it; rows of codes begin at odd bytes.
    Fields f = scaled(i);
    const Shape shape{m, f.d_type == NVFP4_TYPE_MXFP4 ? 160 : 144, 192, 2};
    add_everything(f);
    f.d_ld_gap = i % 2 ? 2 : 0, f.d_batch_gap = 2;
    require_chain(gpu, forced(variant, make_problem(shape, Data::random, 60 + i)), f);
  }
}

namespace {

// Those for NVFP4 tokens, on 9.0 those for 16-bit tokens as well, which have such entries there.
Variants variants_of(const Gpu& gpu) {
  Variants all = gemm_test::variants();
  if (gpu.info.major == 9) {
    for (const gemm_test::HalfVariant& of_halves : gemm_test::half_variants())
      all.push_back(of_halves.name);
  }
  return all;
}

Problem problem_of(const char* variant, const Shape& shape, uint64_t seed) {
  const int32_t type = gemm_test::a_type_of(variant);
  return forced(variant, type == NVFP4_TYPE_NONE
                             ? make_problem(shape, Data::random, seed)
                             : support::make_a16_problem(shape, type, Data::random, seed));
}

// All of a tile's turns and a further tile, which ends inside what a lane stores of a row.
Problem two_tiles(const char* variant, const Fields& f, uint64_t seed) {
  const int64_t m = std::min<int64_t>(gemm_test::tile_tokens(variant), 131) + 19;
  const int64_t n = f.d_type == NVFP4_TYPE_MXFP4 ? 160 : 144;
  return problem_of(variant, {m, n, 64, 2}, seed);
}

}  // namespace

TEST_CASE("each variant writes D with scales of what a column has alone", "[scaled_d][tiles]") {
  USE_GPU(gpu);
  const Variants variants = variants_of(gpu);
  const char* variant = GENERATE_REF(from_range(gemm_test::taken(variants)));
  if (!has_fast_scales(gpu, variant)) return;
  const size_t number =
      size_t(std::find(variants.begin(), variants.end(), variant) - variants.begin());
  for (size_t i = 0; i < 6; ++i) {
    if (gpu.small() && !gemm_test::everything() && i != number % 6) continue;
    Fields f = scaled(i);
    if (i % 3 != number / 3 % 3) add_columns_terms(f, number % 2 != 0);
    f.d_ld_gap = i % 2 * 16, f.d_batch_gap = 16;
    require_chain(gpu, two_tiles(variant, f, 80 + i), f);
  }
}

TEST_CASE("CTAs that share K write D with scales of what a column has alone", "[scaled_d]") {
  USE_GPU(gpu);
  const Variants variants =
      gpu.by_family<Variants>({"sm90_64x32x256/2", "sm90_128x64x256/3", "sm90_128x128x256/4",
                               "sm90_bf16_128x64x256/2", "sm90_f16_128x128x256/2"},
                              {"sm100_128x64x256/2", "sm100_128x128x256/4"},
                              {"sm120_64x8x256/2", "sm120_64x32x256/3", "sm120_128x128x128/4"});
  size_t number = 0;
  for (const char* variant : variants) {
    for (size_t i = 0; i < 3; ++i, ++number) {
      if (gpu.small() && i != number / 3 % 3) continue;
      Fields f = scaled(number);
      add_columns_terms(f, i % 2 != 0);
      require_chain(gpu, problem_of(variant, {39, 160, 1024, 1}, 90), f);
    }
  }
}

TEST_CASE("even shares write D with scales of what a column has alone", "[scaled_d][even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int64_t tiles = gemm_test::nominal_sms(gpu) * 5 / 8;
  const Variants variants = {"sm90_128x128x256/even", "sm90_f16_128x128x256/even",
                             "sm90_bf16_128x192x256/even"};
  for (size_t i = 0; i < variants.size(); ++i) {
    Fields f = scaled(i);
    add_columns_terms(f, false);
    require_chain(gpu, problem_of(variants[i], {35, tiles * 128 - 32, 1536}, 91), f);
  }
}

TEST_CASE("D with scales from registers whoever is late", "[scaled_d][late]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const gemm_test::Emulator emulator(gpu.driver);
  if (!emulator.present()) SKIP_TEST("a GPU has no EMU_LATE");
  const char* variant = GENERATE("sm90_128x128x256/1", "sm90_bf16_128x192x256/1",
                                 "sm90_64x32x256/1", "sm90_bf16_64x128x256/1");
  for (const size_t type : {size_t{0}, size_t{1}}) {
    for (const char* const warps : {"0", "3", "4-7"}) {
      const gemm_test::Setting late(emulator, "EMU_LATE", warps, "");
      const Fields f = scaled(type);
      require_chain(gpu, two_tiles(variant, f, 92), f);
    }
  }
}

// Exponents have the range of bf16, and an entry for NVFP4 weights alone does not decode them.
TEST_CASE("D with scales of bf16 tokens and weights in other formats", "[scaled_d][a16]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  for (const int32_t format : {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}) {
    const Problem of_nvfp4 = make_problem({35, 96, 256}, Data::random, 93);
    const Problem p = support::with_a16(with_format(of_nvfp4, format, Data::random, 93),
                                        NVFP4_TYPE_BF16, Data::random, 93);
    require_chain(gpu, forced("sm90_bf16_64x32x256", p), scaled(0));
  }
}

TEST_CASE("tokens of 16 bits write D with scales", "[scaled_d][a16]") {
  USE_GPU_FOR_HALVES(gpu);
  for (size_t i = 0; i < 6; ++i) {
    Fields f = scaled(i);
    if (i % 2) add_everything(f);
    const int32_t type = i % 4 < 2 ? NVFP4_TYPE_BF16 : NVFP4_TYPE_F16;
    require_chain(gpu, support::make_a16_problem({5, 96, 256}, type, Data::random, 61 + i, {}), f);
  }
}

TEST_CASE("scales of D are of sums whose K partitions are added", "[scaled_d]") {
  USE_GPU(gpu);
  const int partitions = GENERATE(2, 4);
  const std::string variant =
      gpu.by_family<std::string>("sm90_64x4x256/", "sm100_128x64x256/", "sm120_64x32x256/") +
      std::to_string(partitions);
  const Shape shape{gpu.small() ? 3 : 67, 96, 2048, 1};
  for (size_t i = 0; i < 3; ++i) {
    require_chain(gpu, forced(variant.c_str(), make_problem(shape, Data::random, 70)), scaled(i));
  }
}

TEST_CASE("K = 0 writes D with scales: NaN and infinity and zeros and extremes",
          "[scaled_d][empty]") {
  USE_GPU_FOR_HALVES(gpu);
  const Shape shape{5, 16 * 32, 0, 2};
  require_extremes(gpu, support::make_a16_problem(shape, NVFP4_TYPE_BF16, Data::exact, 1, {}));
}

TEST_CASE("scales of D of NaN and infinity and zeros and extremes", "[scaled_d]") {
  USE_GPU(gpu);
  require_extremes(gpu, make_problem({5, 16 * 32, 64}));
}

// Rows whose factor is 0 are the bias alone, beside those of a sum, of infinity and of NaN.
TEST_CASE("scales of D of NaN and of extremes beside other rows", "[scaled_d]") {
  USE_GPU(gpu);
  const Variants variants = gpu.by_family<Variants>({"sm90_128x64x256/1", "sm90_64x32x256/2"},
                                                    {"sm100_128x64x256/1", "sm100_128x64x256/2"},
                                                    {"sm120_128x128x128/1", "sm120_64x8x256/2"});
  constexpr float kFactors[] = {0, 1, 0, NAN, 0x1p-140f, 0, INFINITY};
  for (const char* variant : variants) {
    for (size_t i = 0; i < 6; ++i) {
      for (const float t : {1.0f, 0x1p-126f, 0x1p100f, 0.37f}) {
        Fields f = scaled(i);
        if (f.d_type != NVFP4_TYPE_NVFP4 && t != 1) continue;
        if (gpu.info.emulated() && (i % 4 != 0 || t > 1 || t == 0.37f)) continue;
        f.bias_type = NVFP4_TYPE_F32, f.d_tensor_scale = support::Given{t != 1};
        f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
        Problem p =
            with_fields(forced(variant, make_problem({9, 16 * 32, 320}, Data::random, 5)), f, 1);
        p.d_factors = {t};
        for (size_t row = 0; row < p.a_factors.size(); ++row) p.a_factors[row] = kFactors[row % 7];
        for (int64_t n = 0; n < 16 * 32; ++n) {
          const uint32_t fill = kFills[size_t(n / 32)];
          p.set_bias(n, n % 32 == 5 || n % 3 == 0 ? fill : fill ^ 0x80000000u);
        }
        INFO("t " << double(t));
        require_chain(gpu, p);
      }
    }
  }
}

TEST_CASE("a plan writes other codes and scales by another tensor scale which its run reads",
          "[scaled_d]") {
  USE_GPU(gpu);
  Fields f = scaled(0);
  Problem first = with_fields(make_problem({9, 96, 64, 2}, Data::exact, 33), f, 4), second = first;
  first.d_factors = {0.5f}, second.d_factors = {0.01f};
  const support::DeviceGemm a(gpu.driver, first), b(gpu.driver, second);
  const support::Plan plan(a.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.d = b.desc.d, x.d_scales = b.desc.d_scales, x.d_tensor_scale = b.desc.d_tensor_scale;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(first_difference(second, b.d_bytes(), second.reference()) == "");
  CHECK(a.d_bytes() == first.d_before());
  x.d_scales = b.desc.d;
  CHECK(plan.run(x) == NVFP4_STATUS_OVERLAP);
}
