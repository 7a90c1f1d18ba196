// SPDX-License-Identifier: MIT
// fp16 and bf16 activations against NVFP4 weights: on 9.0 by the kernels of its own, elsewhere by
// mma.sync.
#include <cstring>

#include "test/gemm/a16_pairs.h"
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using support::make_a16_problem;

namespace {

using Tile = gemm_test::HalfVariant;

int64_t weights_of(const Tile& tile) { return gemm_test::tile_weights(tile.name); }
int64_t tokens_of(const Tile& tile) { return gemm_test::tile_tokens(tile.name); }

}  // namespace

#define EACH_A16_TILE(turn) \
  GENERATE(from_range(gemm_test::taken(gemm_test::some_half_variants(turn))))

TEST_CASE("a16: each tile gives the reference's bits alone and along K in clusters", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(1);
  // Tails of M, N and K, two batches, gaps; the second is cut along K, on 9.0 into four CTAs.
  const bool batches = GENERATE(true, false);
  const Shape shape = batches ? Shape{11, 130, 320, 2} : Shape{9, 70, 2880};
  const support::Gaps gaps = batches ? support::Gaps{8, 32, 3, 40, 64, 5, 16} : support::Gaps{};
  const Problem problem =
      forced(tile.name, make_a16_problem(shape, tile.type, Data::exact, 900, gaps));
  if (!batches) {
    const int split = gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, problem).desc);
    CHECK((gpu.info.major == 9 ? split == 4 : split > 1));
  }
  gemm_test::require_reference_bits(gpu, problem);
}

TEST_CASE("a16: what the planner chooses gives the reference's bits for any M", "[a16][planner]") {
  USE_GPU_FOR_HALVES(gpu);
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_F16}, int32_t{NVFP4_TYPE_BF16});
  const size_t turn = GENERATE(range(0, 8));
  // In the emulator the type alternates, and of GPUs with one kernel for it one takes each M.
  const bool fewer = gpu.info.emulated() && !gemm_test::everything();
  if (fewer && (turn % 2 == 0) == (type == NVFP4_TYPE_F16)) return;
  if (fewer && !gpu.small() && gpu.info.compute_capability() != 80 && turn % 3 != 1) return;
  constexpr int64_t kM[] = {1, 8, 16, 17, 64, 65, 128, 200};
  const int64_t m = kM[turn];
  const Problem problem = make_a16_problem({m, 200, 576}, type, Data::exact, uint64_t(910 + m));
  if (gpu.info.major == 9) {
    CHECK(support::DeviceGemm(gpu.driver, problem).desc.workspace == nullptr);
  }
  gemm_test::require_reference_bits(gpu, problem);
}

TEST_CASE("a16: off the exact grid each tile is inside the bound", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(0);
  const Problem problem =
      forced(tile.name, make_a16_problem({9, 40, 1344}, tile.type, Data::random, 901));
  CHECK(gemm_test::inside_bound(gpu, problem, support::run_on_device(gpu.driver, problem)));
}

TEST_CASE("a16: the rings wrap in every part of K", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(1);
  if (gpu.small() && !gemm_test::everything()) {
    const std::string halves = std::string(tile.name) + "/2";
    const Shape shape{7, 40, gemm_test::k_twice_round(tile.name)};
    gemm_test::require_reference_bits(
        gpu, forced(halves.c_str(), make_a16_problem(shape, tile.type, Data::gpumode, 907)));
    return;
  }
  const int64_t k = tokens_of(tile) <= 64 ? 20544 : 10304;
  gemm_test::require_reference_bits(
      gpu, forced(tile.name, make_a16_problem({7, 70, k}, tile.type, Data::gpumode, 907)));
}

// A CTA of the widest tile computes one after the other where there are more tiles than SMs.
TEST_CASE("a16: more tiles than SMs", "[a16][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Tile tile = GENERATE(Tile{"sm90_f16_128x128x256", NVFP4_TYPE_F16},
                             Tile{"sm90_bf16_128x128x256", NVFP4_TYPE_BF16});
  if (gpu.small() && gpu.info.sms > 4) SKIP_TEST("it takes few SMs in the emulator: EMU_SMS=3");
  const int64_t tiles_n = gpu.info.sms + 5;
  gemm_test::require_reference_bits(
      gpu,
      forced(tile.name, make_a16_problem({3, 128 * tiles_n, 64}, tile.type, Data::exact, 908)));
}

// Rings go on from tile to tile, their positions within a stage too: on a GPU six tiles a CTA.
TEST_CASE("a16: a CTA computes several tiles of several stages", "[a16][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) {
    SKIP_TEST("an emulated Hopper takes few SMs for it: EMU_SMS=3");
  }
  const Tile tile = GENERATE(Tile{"sm90_f16_128x128x256/1", NVFP4_TYPE_F16},
                             Tile{"sm90_bf16_128x128x256/1", NVFP4_TYPE_BF16});
  // Just six for each of a few SMs, or two for each of many: what is left of a round would be
  // shared along K.
  const int64_t k = gpu.sized(1600, 448), rounds = gpu.info.sms > 16 ? 1 : 3;
  const int64_t m = 137, n = rounds * gpu.info.sms * 128 - 60;
  const Problem p = forced(tile.name, make_a16_problem({m, n, k}, tile.type, Data::exact, 909));
  REQUIRE(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc) == 1);
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("a16: two CTAs along K give the reference's bits", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(0);
  const std::string variant = std::string(tile.name) + "/2";
  CAPTURE(variant);
  const Problem p =
      forced(variant.c_str(), make_a16_problem({9, 70, 1024}, tile.type, Data::exact, 911));
  CHECK(gemm_test::split_of(gpu, support::DeviceGemm(gpu.driver, p).desc) == 2);
  gemm_test::require_reference_bits(gpu, p);
}

// fp16 would be infinite or 0: tokens of 2^100 and 2^-90, whose sums only fp32 and bf16 hold.
TEST_CASE("a16: bf16 tokens keep their range in an fp32 D", "[a16][epilogue]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(1);
  if (tile.type != NVFP4_TYPE_BF16) return;
  const int exponent = GENERATE(100, -90);
  Problem p = forced(tile.name, make_a16_problem({9, 70, 336}, tile.type, Data::exact, 912));
  const uint16_t shift = uint16_t(exponent * 128);  // bf16 has 7 bits of fraction
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t k = 0; k < p.k; ++k) {
      uint16_t& half = p.a.halves[size_t(row * p.a.ld + k)];
      if ((half & 0x7FFF) != 0) half = uint16_t(half + shift);
    }
  }
  REQUIRE(support::sums_are_exact(p));
  support::Fields f;
  f.d_type = NVFP4_TYPE_F32;
  REQUIRE(difference_on_device(gpu.driver, support::with_fields(p, f, 1)) == "");
}

TEST_CASE("a16: all 16 x 127 pairs of element and scale are decoded exactly", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(0);
  const Problem problem = forced(tile.name, gemm_test::a16_pairs(tile.type));
  CHECK(support::run_on_device(gpu.driver, problem) == support::reference(problem));
}

// Every value of a type, times 1: tokens are never converted.
TEST_CASE("a16: every finite token keeps its value", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const std::vector<Tile> tiles = gemm_test::half_variants();  // of each type the second
  const Tile tile = tiles[GENERATE_REF(size_t{1}, tiles.size() / 2 + 1)];
  constexpr int64_t kK = 1024;
  Problem p = forced(tile.name, make_a16_problem({64, 1024, kK}, tile.type, Data::exact, 905));
  if (gpu.info.emulated())
    p = forced(tile.name, make_a16_problem({64, 64, 64}, tile.type, Data::exact, 905));
  const uint32_t infinity = tile.type == NVFP4_TYPE_F16 ? 0x7C00 : 0x7F80;
  const int64_t k_count = p.k;
  for (int64_t i = 0; i < 64 * k_count; ++i) {
    uint16_t bits = uint16_t(i * (65536 / (64 * k_count)));
    if ((bits & infinity) == infinity) bits = 0;
    p.a.set_half(0, i / k_count, i % k_count, bits);
  }
  // Column n takes element n alone.
  for (int64_t n = 0; n < p.n; ++n) {
    for (int64_t k = 0; k < k_count; ++k) p.b.set_code(0, n, k, k == n ? 2 : 0);
    for (int64_t block = 0; block < k_count / 16; ++block) p.b.set_scale(0, n, block, 0x38);
  }
  CHECK(support::run_on_device(gpu.driver, p) == support::reference(p));
}

TEST_CASE("a16: NaN and infinity follow IEEE and a NaN scale its row", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(1);
  Problem p = forced(tile.name, make_a16_problem({6, 20, 320}, tile.type, Data::exact, 902));
  const bool f16 = tile.type == NVFP4_TYPE_F16;
  const uint16_t infinity = f16 ? 0x7C00 : 0x7F80, nan = f16 ? 0x7E00 : 0x7FC0;
  p.b.set_scale(0, 11, 19, 0x7F);
  p.a.set_half(0, 1, 100, nan);
  p.a.set_half(0, 2, 101, infinity);
  p.a.set_half(0, 3, 102, uint16_t(infinity | 0x8000));
  p.a.set_half(0, 4, 103, infinity);
  p.a.set_half(0, 4, 104, uint16_t(infinity | 0x8000));
  for (int64_t n = 0; n < 20; ++n) {
    p.b.set_code(0, n, 101, uint8_t(n % 16));  // also zeros, of either sign
  }
  CHECK(support::run_on_device(gpu.driver, p) == support::reference(p));
}

TEST_CASE("a16: equal tokens give equal bits wherever they lie in a tile", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(0);
  const int64_t m = tokens_of(tile);
  Problem p = forced(
      tile.name, make_a16_problem({m, 40, gpu.sized(4096, 2048)}, tile.type, Data::random, 912));
  for (int64_t row = 1; row < m; ++row)
    std::copy_n(p.a.halves.begin(), p.k, p.a.halves.begin() + row * p.a.ld);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  for (int64_t row = 1; row < m; ++row) {
    CAPTURE(tile.name, row);
    REQUIRE(std::equal(d.begin(), d.begin() + p.n, d.begin() + row * p.n));
  }
}

TEST_CASE("a16: earlier grids end before tokens are read and weights that they may write",
          "[a16]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  const Tile tile = EACH_A16_TILE(1);
  Problem problem =
      forced(tile.name, make_a16_problem({20, 130, 512}, tile.type, Data::exact, 904));
  for (const int32_t pdl : {NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    CAPTURE(tile.name, pdl);
    problem.pdl = pdl;
    support::run_on_device(gpu.driver, problem);
    const int64_t weights = weights_of(tile);
    const int64_t tokens = tokens_of(tile);
    const int64_t count = ((130 + weights - 1) / weights) * ((20 + tokens - 1) / tokens);
    const int64_t stage = weights * 256 / 2 + 128 * 256 / 16;
    const bool early = pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
    CHECK(emulator.counter("dependency_waits") >= uint64_t(count));
    CHECK(emulator.counter("early_bytes") == (early ? uint64_t(count * 2 * stage) : 0));
  }
}

TEST_CASE("a16: a plan takes other tokens and no scales", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Problem one = make_a16_problem({5, 70, 320}, NVFP4_TYPE_BF16, Data::exact, 920);
  Problem other = one;
  other.a = make_a16_problem({5, 70, 320}, NVFP4_TYPE_BF16, Data::exact, 921).a;
  support::DeviceGemm gemm(gpu.driver, one), second(gpu.driver, other);
  const support::Plan plan(gemm.desc);
  nvfp4_gemm_addresses x = support::no_addresses();
  x.a = second.desc.a;
  CHECK(plan.run(x) == NVFP4_SUCCESS);
  CHECK(gemm.d() == support::reference(other));
  x.a_scales = gemm.desc.b_scales;
  CHECK(plan.run(x) == NVFP4_STATUS_INVALID_VALUE);
}

// The general way from sums to D has the factor of this decoding.
TEST_CASE("a16: a bias and an activation are those of the reference", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(1);
  const Shape shape = GENERATE(Shape{13, 70, 320}, Shape{13, 70, 2880});
  const Problem p = forced(tile.name, make_a16_problem(shape, tile.type, Data::exact, 930));
  std::vector<uint8_t> bytes(size_t(shape.n) * 4);
  std::vector<float> bias(size_t(shape.n));
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = float(i) - 35;
  std::memcpy(bytes.data(), bias.data(), bytes.size());
  const support::DeviceBuffer on_device(gpu.driver, bytes);
  support::DeviceGemm gemm(gpu.driver, p);
  gemm.desc.bias = on_device.pointer();
  nvfp4_gemm_desc host = support::make_desc(p, NVFP4_SCALE_LAYOUT_LINEAR);
  std::vector<uint16_t> want(size_t(shape.m * shape.n));
  host.a = p.a.halves.data(), host.b = p.b.codes.data(), host.b_scales = p.b.scales.data();
  host.d = want.data(), host.bias = bias.data();
  host.bias_type = gemm.desc.bias_type = NVFP4_TYPE_F32;
  host.activation = gemm.desc.activation = NVFP4_ACTIVATION_RELU;
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  REQUIRE(nvfp4_gemm_reference(&host) == NVFP4_SUCCESS);
  CHECK(gemm.d() == want);
}

TEST_CASE("a16: K of any multiple of 16", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const Tile tile = EACH_A16_TILE(0);
  const int64_t k = GENERATE(16, 336, 1200);
  gemm_test::require_reference_bits(
      gpu, forced(tile.name, make_a16_problem({9, 70, k}, tile.type, Data::exact, 940)));
}

TEST_CASE("a16: with batch_invariant a row has the same bits for every M", "[a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const int32_t type = GENERATE(int32_t{NVFP4_TYPE_F16}, int32_t{NVFP4_TYPE_BF16});
  const int64_t k = gpu.sized(4096, 2048);
  Problem many = make_a16_problem({40, 70, k}, type, Data::random, 950);
  many.batch_invariant = true;
  Problem one = many;
  one.m = one.a.rows = 1;
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, many);
  const std::vector<uint16_t> row = support::run_on_device(gpu.driver, one);
  CHECK(std::equal(row.begin(), row.end(), d.begin()));
}
