// SPDX-License-Identifier: MIT
// The general epilogue: every type and field against the reference's bits, alone and together. Each
// comparison is of D's whole memory, with 0xFF around every array and in every gap.
#include <cmath>
#include <cstring>
#include <mutex>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/exact.h"

using support::Fields;
using support::Problem;

namespace {

void require_reference(const gemm_test::Gpu& gpu, const Problem& p) {
  INFO(to_string(p.shape()) << ", variant " << (p.variant ? p.variant : "chosen") << ", "
                            << to_string(p));
  REQUIRE(difference_on_device(gpu.driver, p) == "");
}

Problem exact(const Shape& shape, const char* variant = nullptr) {
  return gemm_test::forced(variant, make_problem(shape, Data::exact, 90));
}

float f32(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// fp32 at the edges of every type of D, and where an activation saturates, each of both signs.
// Infinity comes after finite numbers, so it is not always the first of a thread's four elements.
std::vector<uint32_t> edges() {
  std::vector<uint32_t> all;
  for (const uint32_t x :
       {0x7FC00001u, 0x7F800001u, 0x00000000u, 0x7F7FFFFFu, 0x7F800000u,  // NaNs, 0, infinity
        0x477FE000u, 0x477FEFFFu, 0x477FF000u,                            // fp16's largest, and on
        0x7F7F0000u, 0x7F7F7FFFu, 0x7F7F8000u,                            // bf16's
        0x33000000u, 0x33000001u, 0x33800000u, 0x387FC000u, 0x387FE000u,  // fp16's subnormals
        0x00000001u, 0x00007FFFu, 0x00008000u, 0x00018000u, 0x007FFFFFu,  // fp32's, bf16's
        0x3F801000u, 0x3F803000u, 0x3F808000u, 0x3F818000u,               // ties
        0x3F800000u, 0x40400000u, 0x41300000u, 0x41300001u, 0x41700000u,
        0x41700001u, 0x41A00000u, 0x42ADFFFFu, 0x42AE0000u, 0x42B00000u,
        0x42C80000u, 0x43000000u, 0x43000001u, 0x50000000u}) {
    all.push_back(x);
    all.push_back(x | 0x80000000u);
  }
  return all;
}

// D is act(C): sums are +0, of codes that are all 0.
Problem of_edges(const Fields& f, int64_t k, const char* variant = nullptr) {
  const std::vector<uint32_t> values = edges();
  const Shape shape{3, int64_t(values.size()), k};
  Problem p = with_fields(gemm_test::forced(variant, make_problem(shape)), f, 1);
  for (int64_t row = 0; row < shape.m; ++row)
    for (int64_t i = 0; i < shape.n; ++i) p.set_c(0, row, i, values[size_t((i + row) % shape.n)]);
  return p;
}

}  // namespace

TEST_CASE("each variant stores D of each type by rows and by columns", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  uint64_t seed = 0;
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    for (const int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
      ++seed;
      // An emulated Hopper takes one order for each type, the other one for the next variant.
      if (!gemm_test::takes(gpu, variant, size_t(type + order), 2)) continue;
      Fields f;
      f.d_type = type, f.cd_order = order, f.alpha = 1.0f / 3;
      f.d_ld_gap = int64_t(seed % 3);
      const int64_t m = gemm_test::few_tokens(gpu, variant, gpu.sized(130, 18));
      const int64_t n = gpu.sized<int64_t>(136, gemm_test::tile_weights(variant) + 8);
      require_reference(gpu, with_fields(exact({m, n, 320}, variant), f, seed));
    }
  }
}

// On 9.0 these have entries of their own. Results overflow, underflow, and lie between neighbours.
TEST_CASE("D of 16 bits by rows has the reference's bits under any alpha by value", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const Problem problem = exact({9, 68, 256}, variant);
  size_t number = 0;
  for (const uint32_t alpha : {0x3EAAAAABu, 0x7F800000u, 0x7FC00000u, 0x7F000000u, 0x00300001u,
                               0x33200000u, 0xC3FFFFFFu}) {
    for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16}) {
      // An emulated Hopper takes each alpha and type for every fourth variant.
      if (!gemm_test::takes(gpu, variant, number++ / 2 + 2 * size_t(type), 4)) continue;
      Fields f;
      f.d_type = type, f.alpha = f32(alpha);
      require_reference(gpu, with_fields(problem, f, 1));
    }
  }
}

// Those entries take these, too: three tiles of weights or more, of which the last is cut short.
TEST_CASE("D of 16 bits by rows has the factors and the bias of its columns", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  support::Random random(200 + gemm_test::variant_number(variant));
  const int64_t two_tiles = gpu.sized<int64_t>(256, 2 * gemm_test::tile_weights(variant));
  for (int i = 0; i < gpu.sized(gpu.info.emulated() ? 8 : 24, 3); ++i) {
    Shape shape{1 + random.below(gpu.small() ? 40 : 300), two_tiles + 1 + random.below(100),
                64 * (1 + random.below(3)), 1 + random.below(2)};
    shape.m = gemm_test::few_tokens(gpu, variant, shape.m);
    const Fields f = random_column_fields(random);
    require_reference(gpu, with_fields(exact(shape, variant), f, random.next()));
  }
}

TEST_CASE("each variant knows every field whatever the others are", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  support::Random random(100 + gemm_test::variant_number(variant));
  for (int i = 0; i < gpu.sized(24, gemm_test::everything() ? 12 : 5); ++i) {
    Shape shape{1 + random.below(gpu.small() ? 40 : 200), 1 + random.below(200),
                64 * (1 + random.below(5)), 1 + random.below(2)};
    shape.m = gemm_test::few_tokens(gpu, variant, shape.m);
    const Fields f = random_fields(shape, random);
    require_reference(gpu, with_fields(exact(shape, variant), f, random.next()));
  }
}

TEST_CASE("K = 0 is the epilogue of +0 whatever its fields are", "[epilogue][empty]") {
  USE_GPU(gpu);
  support::Random random(7);
  for (int i = 0; i < (gpu.info.emulated() && !gemm_test::everything() ? 24 : 40); ++i) {
    const Shape shape{1 + random.below(70), 1 + random.below(300), 0, 1 + random.below(3)};
    require_reference(
        gpu, with_fields(make_problem(shape), random_fields(shape, random), random.next()));
  }
}

// Up to 4,096 CTAs along M and L; with more, each takes several.
TEST_CASE("K = 0 shares rows and batches out among CTAs", "[epilogue][empty]") {
  USE_GPU(gpu);
  Fields f;
  f.d_type = NVFP4_TYPE_BF16, f.bias_type = NVFP4_TYPE_F32, f.bias_axis = NVFP4_BIAS_AXIS_ROW;
  const Shape shape = GENERATE(Shape{1, 2, 0, 300}, Shape{9, 2, 0, 41}, Shape{1, 1, 0, 4100});
  // An emulated B200 runs the same kernel.
  if (gpu.small() && !gemm_test::everything() && shape.l > 4096) return;
  require_reference(gpu, with_fields(make_problem(shape), f, 12));
  USE_EMULATOR(gpu, emulator);
  const int64_t ctas = std::min<int64_t>((shape.m + 3) / 4 * shape.l, 4096);
  CHECK(emulator.counter("cta_barriers") == uint64_t(4 * ctas));  // one of its four warps each
}

TEST_CASE(
    "NaN and infinity and -0 and overflow and ties and subnormals of each type and activation",
    "[epilogue][edges]") {
  USE_GPU(gpu);
  const char* variant = gpu.by_family("sm90_64x8x256", "sm100_128x64x256", "sm120_64x8x256");
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    for (int32_t activation = 0; activation < support::kActivations; ++activation) {
      Fields f;
      f.d_type = type, f.activation = activation, f.c_type = NVFP4_TYPE_F32, f.beta = 1;
      require_reference(gpu, of_edges(f, 0));
      require_reference(gpu, of_edges(f, 64, variant));
      f.beta = -0.25f, f.alpha = -1, f.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR;
      require_reference(gpu, of_edges(f, 64, variant));
    }
  }
}

TEST_CASE("scalars on the device are any numbers with -0 and NaN and infinity among them",
          "[epilogue]") {
  USE_GPU(gpu);
  const float infinity = f32(0x7F800000);
  for (const float value : {-0.0f, 1e-45f, -1e-40f, infinity, std::nanf(""), 3e38f}) {
    Fields f;
    f.d_type = NVFP4_TYPE_F32, f.scalar_mode = NVFP4_SCALARS_DEVICE, f.alpha = value;
    require_reference(gpu, with_fields(exact({5, 70, 64}), f, 1));
    f.alpha = 1, f.c_type = NVFP4_TYPE_BF16, f.beta = value;
    require_reference(gpu, with_fields(exact({5, 70, 64}), f, 2));
  }
}

// C has not even memory.
TEST_CASE("beta = 0 does not read C wherever beta lies", "[epilogue]") {
  USE_GPU(gpu);
  for (const float beta : {0.0f, -0.0f}) {
    for (const int32_t mode : {NVFP4_SCALARS_HOST, NVFP4_SCALARS_DEVICE}) {
      for (const int64_t k : {0, 64}) {
        CAPTURE(beta, mode, k);
        Fields f;
        f.d_type = NVFP4_TYPE_BF16, f.c_type = NVFP4_TYPE_F32, f.scalar_mode = mode, f.beta = beta;
        const Shape shape{5, 70, k};
        const Problem p = with_fields(k == 0 ? make_problem(shape) : exact(shape), f, 3);
        support::DeviceGemm gemm(gpu.driver, p);
        gemm.desc.c = reinterpret_cast<void*>(uint64_t{1} << 46);
        REQUIRE(nvfp4_gemm_run(&gemm.desc, nullptr) == NVFP4_SUCCESS);
        REQUIRE(first_difference(p, gemm.d_bytes(), p.reference()) == "");
      }
    }
  }
}

// Tiles of 128 tokens and more on 9.0 have ways of their own for it: a bias per column and C of
// rows and columns that come side by side, or do not.
TEST_CASE("C of many rows a thread is each row's at once or one by one", "[epilogue]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = GENERATE("sm90_64x128x256", "sm90_128x128x256", "sm90_128x256x256");
  const Problem problem = exact({gpu.sized(257, 101), 134, 320}, variant);
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32}) {
    for (const int64_t gap : {2, 1}) {  // behind 134 columns: rows of vectors, and none
      Fields f;
      f.d_type = f.c_type = type, f.beta = 0.75f, f.c_ld_gap = gap;
      f.bias_type = NVFP4_TYPE_F32, f.activation = NVFP4_ACTIVATION_SILU;
      if (gap == 1) f.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR;
      require_reference(gpu, with_fields(problem, f, 3));
    }
  }
}

TEST_CASE("C is D in place in each type and order", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(5);
  Fields f;
  f.c_is_d = true, f.beta = 0.5f, f.activation = NVFP4_ACTIVATION_RELU;
  f.d_type = f.c_type = int32_t(1 + gemm_test::variant_number(variant) % 3);
  f.c_ld_gap = f.d_ld_gap = 4;
  for (const int32_t order : {NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR}) {
    f.cd_order = order;
    require_reference(gpu, with_fields(exact({gpu.sized(70, 17), 132, 192, 2}, variant), f, 4));
  }
}

// Few tiles and a long K: up to eight CTAs share it.
TEST_CASE("sums that CTAs share reach the general epilogue whole", "[epilogue][sm90]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* variant = SOME_VARIANTS(3);
  support::Random random(5 + gemm_test::variant_number(variant));
  std::vector<int> splits;
  // Tiles of one and two tokens share no K as short as others do.
  const int64_t longest = gemm_test::tile_tokens(variant) <= 2 ? 4160 : 2112;
  for (const int64_t k : {int64_t(576), int64_t(832), longest}) {
    const int64_t most = gemm_test::tile_tokens(variant) > 64 ? gpu.sized(33, 9) : 33;
    const Shape shape{std::min(gemm_test::tile_tokens(variant), most), 70, k};
    const Fields f = random_fields(shape, random);
    const Problem operands = exact(shape, variant);
    const Problem p = with_fields(operands, f, random.next());
    splits.push_back(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc));
    require_reference(gpu, p);
    const Fields columns = random_column_fields(random);
    require_reference(gpu, with_fields(operands, columns, random.next()));
  }
  CAPTURE(splits);
  CHECK(splits.back() > 1);
}

// The device's own sums by a run that keeps them, then the same ones as C of a reference without
// any.
TEST_CASE("off the exact grid D is the expression of a sum inside the bound", "[epilogue][bound]") {
  USE_GPU(gpu);
  const Problem operands = gemm_test::forced(
      SOME_VARIANTS(4), make_problem({gpu.sized(70, 9), 136, 448}, Data::random, 91));
  Fields kept;
  kept.d_type = NVFP4_TYPE_F32;
  const Problem sums_problem = with_fields(operands, kept, 1);
  const support::DeviceGemm run(gpu.driver, sums_problem);
  REQUIRE(nvfp4_gemm_run(&run.desc, nullptr) == NVFP4_SUCCESS);
  const std::vector<uint8_t> sums = run.d_bytes();
  int64_t outside = 0;
  std::mutex mutex;
  support::for_each_sum(
      operands, [&](int64_t, int64_t row, int64_t column, const support::Sum& sum) {
        float value;
        std::memcpy(&value, &sums[size_t(row * operands.n + column) * 4], sizeof value);
        const double bound =
            support::accumulation_bound(sum, operands.k, gpu.info.compute_capability());
        const std::lock_guard lock(mutex);
        outside += !(std::fabs(double(value) - sum.exact) <= bound);
      });
  CHECK(outside == 0);

  for (int32_t activation = 0; activation < support::kActivations; ++activation) {
    Fields f;
    f.d_type = 1 + activation % 3, f.bias_type = 1 + (activation + 1) % 3;
    f.activation = activation, f.alpha = operands.alpha;
    const Problem p = with_fields(operands, f, 7);
    const support::DeviceGemm gemm(gpu.driver, p);
    REQUIRE(nvfp4_gemm_run(&gemm.desc, nullptr) == NVFP4_SUCCESS);
    Fields of_sums = f;
    of_sums.c_type = NVFP4_TYPE_F32, of_sums.beta = f.alpha, of_sums.alpha = 1;
    const Shape& shape = operands.shape();
    Problem want = with_fields(make_problem({shape.m, shape.n, 0}), of_sums, 7);
    want.c = sums, want.bias = p.bias;
    INFO(to_string(f));
    REQUIRE(first_difference(p, gemm.d_bytes(), want.reference()) == "");
  }
}

// On 10.x two values share an instruction, in steps that are right below 87 alone.
TEST_CASE("SiLU of numbers of every size has the reference's bits", "[epilogue]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(1);
  Fields f;
  f.d_type = f.c_type = NVFP4_TYPE_F32, f.beta = 1, f.activation = NVFP4_ACTIVATION_SILU;
  const Shape shape{50, 72, 64};  // of codes that are all 0
  Problem p = with_fields(gemm_test::forced(variant, make_problem(shape)), f, 1);
  support::Random random(87);
  for (int64_t row = 0; row < shape.m; ++row) {
    // Most rows are of numbers below 128, of which a lane has at most 16.
    const uint32_t most = row % 25 == 0 ? 0x7F800000 : row < 24 ? 0x42AE0000 : 0x43000000;
    for (int64_t i = 0; i < shape.n; ++i) {
      const uint32_t near = 0x3C000000 + uint32_t(random.below(0x07000000));
      const uint32_t any = uint32_t(random.below(most)),
                     bits = std::min(i % 3 ? near : any, most - 1);
      p.set_c(0, row, i, bits | uint32_t(random.below(2)) << 31);
    }
  }
  require_reference(gpu, p);
}

TEST_CASE("pdl changes no bit of the general epilogue", "[epilogue][pdl]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(1);
  support::Random random(300 + gemm_test::variant_number(variant));
  for (const int32_t pdl : {NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    const Shape shape{gpu.sized(130, 9), 70, 320};
    Problem operands = exact(shape, variant);
    operands.pdl = pdl;
    require_reference(gpu, with_fields(operands, random_fields(shape, random), random.next()));
  }
}

TEST_CASE("a plan takes new addresses for whatever it reads", "[epilogue][plan]") {
  USE_GPU(gpu);
  support::Random random(11);
  for (int i = 0; i < gpu.sized(20, 8); ++i) {
    const Shape shape{1 + random.below(40), 1 + random.below(200), i % 4 == 0 ? 0 : 128};
    const Problem one = i % 4 == 0 ? make_problem(shape) : make_problem(shape, Data::exact, 1);
    const Problem two = i % 4 == 0 ? make_problem(shape) : make_problem(shape, Data::exact, 2);
    Fields f = random_fields(shape, random);
    f.c_is_d = false;
    const Problem first = with_fields(one, f, 1);
    Problem second = with_fields(two, f, 2);
    second.alpha = f.scalar_mode == NVFP4_SCALARS_DEVICE ? 0.75f : f.alpha;
    if (f.scalar_mode == NVFP4_SCALARS_DEVICE && f.beta != 0) second.beta = -2;
    for (float& scale : second.a_factors) scale *= 2;
    CAPTURE(i, to_string(f));
    const support::DeviceGemm a(gpu.driver, first), b(gpu.driver, second);
    const support::Plan plan(a.desc);
    const nvfp4_status status = plan.run(support::addresses_of(b.desc));
    INFO(nvfp4_last_error());
    REQUIRE(status == NVFP4_SUCCESS);
    REQUIRE(first_difference(second, b.d_bytes(), second.reference()) == "");
    REQUIRE(plan.run() == NVFP4_SUCCESS);
    REQUIRE(first_difference(first, a.d_bytes(), first.reference()) == "");
  }
}

TEST_CASE("a plan without a tensor scale may be run with one and without C not with one",
          "[epilogue][plan]") {
  USE_GPU(gpu);
  Fields f;
  const Problem without = with_fields(exact({5, 70, 64}), f, 1);
  f.a_tensor_scale = support::kGiven;
  const Problem with = with_fields(exact({5, 70, 64}), f, 1);
  const support::DeviceGemm a(gpu.driver, without), b(gpu.driver, with);
  const support::Plan plan(a.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.a_tensor_scale = b.desc.a_tensor_scale;
  REQUIRE(plan.run(x) == NVFP4_SUCCESS);
  CHECK(first_difference(with, a.d_bytes(), with.reference()) == "");
  x.c = b.desc.d;
  CHECK(plan.run(x) == NVFP4_STATUS_INVALID_VALUE);
  x.c = nullptr, x.bias = b.desc.d;
  CHECK(plan.run(x) == NVFP4_STATUS_INVALID_VALUE);
  x.bias = nullptr;
  x.a_tensor_scale = static_cast<const float*>(a.desc.d);
  CHECK(plan.run(x) == NVFP4_STATUS_OVERLAP);
}
