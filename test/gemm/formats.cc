// SPDX-License-Identifier: MIT
// Operands in MXFP4 and in E2M1 with UE8M0 scales per 16: on 10.x both, and in the tiles of 9.0 for
// up to four tokens; elsewhere weights beside tokens in bf16.
#include <cstring>
#include <utility>
#include <vector>

#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/formats.h"

using support::Gaps;

namespace {

const std::vector<int32_t> kFormats = support::ue8m0_formats();

// Whether the tile takes tokens in bf16, not in such a format.
bool by_halves(const std::string& tile) {
  return gemm_test::tile_of(tile).a_type != NVFP4_TYPE_NONE;
}

std::vector<const char*> tiles() {
  const int major = support::devices(support::Driver::get()).at(0).major;
  std::vector<const char*> names;
  if (major != 10) {
    for (const gemm_test::TileOf* tile : gemm_test::tiles_of_type(NVFP4_TYPE_BF16)) {
      // One tile of mma.sync takes such scales.
      if (tile->family == "sm80" && tile->name != "sm80_bf16_64x16w4x128") continue;
      names.push_back(tile->name.c_str());
    }
  }
  if (major == 9 || major == 10) {
    for (const gemm_test::TileOf* tile : gemm_test::tiles_of_type(NVFP4_TYPE_NONE))
      if (major == 10 || tile->tokens <= 4) names.push_back(tile->name.c_str());
  }
  return names;
}
size_t number_of(const char* tile) {
  const std::vector<const char*> all = tiles();
  return size_t(std::find(all.begin(), all.end(), tile) - all.begin());
}

Problem make(const Shape& shape, int32_t format, Data data, uint64_t seed, const Gaps& gaps = {}) {
  return with_format(make_problem(shape, data, seed, gaps), format, data, seed);
}
Problem make_for(const std::string& tile, const Shape& shape, int32_t format, Data data,
                 uint64_t seed, const Gaps& gaps = {}) {
  Problem p = make(shape, format, data, seed, gaps);
  return by_halves(tile) ? with_a16(std::move(p), NVFP4_TYPE_BF16, data, seed) : p;
}

Problem linear(Problem p) {
  p.a.layout = p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return p;
}

// Nothing but the sum. Every product here has its own bits in fp32, from the general epilogue; in
// bf16, which the entries for MXFP4 alone store as well, an element times its scale has them.
support::Problem sums_in(int32_t d_type, const Problem& p) {
  support::Fields f;
  f.d_type = d_type;
  return support::with_fields(p, f, 1);
}

// A token is a power of two.
void set_token(Problem& p, int64_t row, int64_t k, int exponent) {
  if (!p.a.quantized()) return p.a.set_half(0, row, k, uint16_t((exponent + 127) << 7));
  p.a.set_code(0, row, k, 2);
  p.a.set_scale(0, row, k / p.a.block(), uint8_t(exponent + 127));
}

// Tokens of one, and weights of zero under scales of one.
Problem ones(const char* tile, const Shape& shape, int32_t format) {
  Problem p = forced(tile, make_for(tile, shape, format, Data::exact, 1));
  for (int64_t row = 0; row < shape.m; ++row)
    for (int64_t k = 0; k < shape.k; ++k) set_token(p, row, k, 0);
  std::fill(p.b.codes.begin(), p.b.codes.end(), uint8_t(0));
  std::fill(p.b.scales.begin(), p.b.scales.end(), uint8_t(127));
  return p;
}

}  // namespace

#define EACH_TILE GENERATE(from_range(gemm_test::taken(tiles())))
#define EACH_FORMAT GENERATE(from_range(std::begin(kFormats), std::end(kFormats)))

TEST_CASE("formats: each tile gives the reference's bits and K of any rest in both layouts",
          "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const int32_t format = EACH_FORMAT;
  const int64_t rest = GENERATE(0, 32, 64, 96, 16, 112);
  const size_t number = size_t(rest) / 16 + number_of(tile);
  if (rest % 32 != 0 && format == NVFP4_OPERAND_FORMAT_MXFP4) return;
  const bool by_rows = GENERATE(false, true);
  const bool quarter = gpu.small() && !gemm_test::everything() && number_of(tile) > 0;
  if (quarter && (by_rows != (number % 2 == 0) || (format == kFormats[0]) != (number / 2 % 2 == 0)))
    return;
  const bool batches = rest == 32;
  const Shape shape{9, 136, 256 + rest, batches ? 2 : 1};
  const Gaps gaps = batches ? Gaps{32, 32, 3, 64, 64, 5, 16} : Gaps{};
  CAPTURE(format, rest, by_rows);
  const Problem p =
      forced(tile, make_for(tile, shape, format, Data::exact, uint64_t(70 + rest), gaps));
  gemm_test::require_reference_bits(gpu, by_rows ? linear(p) : p, 0xFF);
}

// On 9.0 a kernel decodes quantized tokens first, of every batch; a plan forgets the workspace that
// it was made for.
TEST_CASE("formats: tokens with UE8M0 scales are decoded to bf16 on 9.0", "[formats]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const char* const tile = EACH_TILE;
  const size_t number = number_of(tile);
  const Shape shape{11, 72, 288 + 32 * int64_t(number % 4), 1 + int64_t(number % 3)};
  const Gaps gaps = number % 2 == 0 ? Gaps{32, 32, 3, 64, 64, 5, 16} : Gaps{};
  const int32_t format = kFormats[number % kFormats.size()];
  Problem p = make(shape, format, Data::exact, 79, gaps);
  if (number % 2 == 1) p.a.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  gemm_test::require_reference_bits(gpu, forced(tile, p), 0xFF);
  gemm_test::require_reference_bits(gpu, p, 0xFF);
}

TEST_CASE("formats: a plan decodes tokens into the workspace that it is run with", "[formats]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Problem p = forced("sm90_bf16_64x16x256",
                           make({5, 72, 288}, NVFP4_OPERAND_FORMAT_MXFP4, Data::exact, 80));
  const support::DeviceGemm first(gpu.driver, p), second(first);
  REQUIRE(first.desc.workspace != second.desc.workspace);
  nvfp4_gemm_plan* plan = nullptr;
  REQUIRE(nvfp4_gemm_plan_create(&first.desc, &plan) == NVFP4_SUCCESS);
  nvfp4_gemm_addresses to{};
  to.struct_size = sizeof to;
  to.a = first.desc.a, to.a_scales = first.desc.a_scales;
  to.b = first.desc.b, to.b_scales = first.desc.b_scales;
  to.d = second.desc.d;
  to.workspace = second.desc.workspace, to.workspace_bytes = second.desc.workspace_bytes;
  CHECK(nvfp4_gemm_plan_run(plan, &to, nullptr) == NVFP4_SUCCESS);
  nvfp4_gemm_plan_destroy(plan);
  CHECK(second.d() == support::reference(p));
}

TEST_CASE("formats: K cut between CTAs and rings that wrap", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const size_t number = number_of(tile);
  const int32_t format = kFormats[number % kFormats.size()];
  // Tiles of 10.x for many tokens do not cut it.
  const bool cut = by_halves(tile) || gpu.info.major == 9 ||
                   (gemm_test::tile_ctas(tile) == 1 && gemm_test::tile_tokens(tile) <= 128);
  const std::string variant = std::string(tile) + (cut ? "/2" : "");
  const int64_t k = gpu.small() && !gemm_test::everything() ? 2880 : 20544 + 96;
  const Problem p = forced(variant.c_str(), make_for(tile, {5, 72, k}, format, Data::gpumode, 71));
  gemm_test::require_reference_bits(gpu, number % 4 < 2 ? p : linear(p), 0xFF);
}

// gpt-oss, gate and up projections together, and down: 45 steps of 64 along K, so that the last
// tile of scales is half used.
TEST_CASE("formats: MXFP4 weights of gpt-oss's experts", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const int64_t n = GENERATE(5760, 2880);
  const int64_t m = GENERATE(1, 4, 16, 64, 130);
  const bool some = gpu.info.emulated() && !gemm_test::everything();
  if (some && m != (n == 2880 ? 4 : 64)) return;
  const Shape shape{m, some ? n / (gpu.small() ? 80 : 40) : n, 2880};
  const Problem p = make(shape, NVFP4_OPERAND_FORMAT_MXFP4, Data::exact, uint64_t(72 + m));
  const bool codes = gpu.info.major == 10;
  gemm_test::require_reference_bits(
      gpu, codes ? p : with_a16(p, NVFP4_TYPE_BF16, Data::exact, uint64_t(72 + m)), 0xFF);
}

// Under scales above 1, and under ones as weights of models have them. On 9.0 a K that ends within
// 64 elements and one that does not have loops of their own for MXFP4.
TEST_CASE("formats: each scale belongs to its row and block", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const int32_t format = EACH_FORMAT;
  const auto [one, k] = GENERATE(std::pair(127, 480), std::pair(127, 448), std::pair(120, 448));
  const int64_t block = format == NVFP4_OPERAND_FORMAT_MXFP4 ? 32 : 16;
  const bool fewer = gpu.small() && !gemm_test::everything() && number_of(tile) > 0;
  Problem p = ones(tile, {1, fewer ? 72 : 136, k}, format);
  for (int64_t row = 0; row < p.n; ++row) {
    const int64_t blocks = p.k / block, hot = (row * 7) % blocks;
    for (int64_t at = 0; at < blocks; ++at) {
      p.b.set_code(0, row, at * block + row % block, 2);  // one
      p.b.set_scale(0, row, at, uint8_t(at == hot ? one + 1 + row % 7 : one - at % 2));
    }
  }
  gemm_test::require_reference_bits(gpu, p, 0xFF);
}

// Each block of B has all codes, in each row from another one on, and a scale of its own; token r
// takes element r.
TEST_CASE("formats: all 16 x 255 pairs of element and scale are decoded exactly", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const int32_t format = EACH_FORMAT;
  const bool mxfp4 = format == NVFP4_OPERAND_FORMAT_MXFP4;
  // On 9.0 a lane's codes come byte by byte for few tokens, and else in words: a tile of each.
  if (gpu.small() && !gemm_test::everything() && number_of(tile) % 5 != 0) return;
  constexpr int64_t kK = 64;
  const int64_t block = mxfp4 ? 32 : 16, blocks = kK / block;
  Problem p = ones(tile, {kK, 256 / blocks, kK}, format);
  for (int64_t row = 0; row < kK; ++row)
    for (int64_t k = 0; k < kK; ++k)
      if (k != row) p.a.quantized() ? p.a.set_code(0, row, k, 0) : p.a.set_half(0, row, k, 0);
  for (int64_t row = 0; row < p.n; ++row) {
    for (int64_t k = 0; k < kK; ++k) p.b.set_code(0, row, k, uint8_t((k + row) % 16));
    for (int64_t i = 0; i < blocks; ++i)
      p.b.set_scale(0, row, i, uint8_t((row * blocks + i) % 255));
  }
  const support::Problem general = sums_in(mxfp4 ? NVFP4_TYPE_BF16 : NVFP4_TYPE_F32, p);
  CHECK(difference_on_device(gpu.driver, general) == "");
  // And the reference's are those of double.
  const std::vector<uint8_t> d = general.reference();
  for (int64_t row = 0; row < p.n; ++row)
    for (int64_t k = 0; k < kK; ++k) {
      const size_t at = size_t(k * p.n + row);
      uint32_t bits = 0;
      if (mxfp4) std::memcpy(&bits, &d[at * 2], 2), bits <<= 16;
      if (!mxfp4) std::memcpy(&bits, &d[at * 4], 4);
      float got;
      std::memcpy(&got, &bits, sizeof got);
      const double want = support::e2m1_value(p.b.code(0, row, k)) *
                          support::ue8m0_value(uint8_t((row * blocks + k / block) % 255));
      REQUIRE(got == float(want));
    }
}

// Powers of two that take products of the extreme scales to where fp32 holds them. Elements k and
// k + 4, which meet in one step of every kernel, cancel, so that no partial sum is infinite; but
// not the first two.
TEST_CASE("formats: tokens reach as far as the scales", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const int32_t format = EACH_FORMAT;
  const int exponent = GENERATE(-126, 126);  // of the tokens
  Problem p = ones(tile, {2, 40, 96}, format);
  for (int64_t row = 0; row < p.n; ++row) {
    for (int64_t k = 0; k < p.k; ++k) {
      p.b.set_code(0, row, k, uint8_t((row + (k & ~4)) % 8 + (k & 4) * 2));
    }
    p.b.set_code(0, row, 0, 1);
    p.b.set_code(0, row, 4, 0);
    for (int64_t at = 0; at < p.k / p.b.block(); ++at) {
      p.b.set_scale(0, row, at, uint8_t(exponent < 0 ? 253 + (row + at) % 2 : (row + at) % 2));
    }
  }
  for (int64_t k = 0; k < p.k; ++k) set_token(p, 1, k, exponent);
  CHECK(difference_on_device(gpu.driver, sums_in(NVFP4_TYPE_F32, p)) == "");
  CHECK(difference_on_device(gpu.driver, sums_in(NVFP4_TYPE_BF16, p)) == "");
}

// 4 * 2^126 and 2 * 2^127 are beyond bf16, to which 9.0 decodes more than four tokens; 3 * 2^126 is
// not. Others and the reference have 1 and 1 in place of the infinities.
TEST_CASE("formats: 9.0 makes infinities of tokens beyond bf16", "[formats]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int32_t format = EACH_FORMAT;
  const int64_t n = 72;
  Problem p = make({4, n, 64}, format, Data::exact, 81);
  std::fill(p.a.codes.begin(), p.a.codes.end(), uint8_t(0));
  std::fill(p.a.scales.begin(), p.a.scales.end(), uint8_t(127));
  std::fill(p.b.codes.begin(), p.b.codes.end(), uint8_t(0x22));  // ones
  std::fill(p.b.scales.begin(), p.b.scales.end(), uint8_t(127 - 64));
  p.alpha = 0x1p-64f;
  const int64_t k = 5;
  const std::pair<uint8_t, uint8_t> tokens[] = {{5, 253}, {6, 253}, {4, 254}};  // code, scale
  for (int64_t row = 1; row < 4; ++row) {
    p.a.set_code(0, row, k, tokens[row - 1].first);
    p.a.set_scale(0, row, 0, tokens[row - 1].second);
  }
  const std::vector<uint16_t> d =
      support::run_on_device(gpu.driver, forced("sm90_bf16_64x16x256", p));
  const uint16_t expected[] = {0, 0x3A00, 0x7C00, 0x7C00};
  for (int64_t row = 0; row < 4; ++row) {
    CAPTURE(row);
    CHECK(std::all_of(d.begin() + row * n, d.begin() + (row + 1) * n,
                      [&](uint16_t x) { return x == expected[row]; }));
  }
  CHECK(support::reference(p)[size_t(2 * n)] == 0x3C00);
  CHECK(support::run_on_device(gpu.driver, forced("sm90_64x4x256", p)) == support::reference(p));
}

// A kernel that decodes tokens before would take longer than the product.
TEST_CASE("formats: up to four tokens with UE8M0 scales are not decoded first on 9.0",
          "[formats]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int32_t format = EACH_FORMAT;
  const int64_t m = GENERATE(1, 2, 3, 4);
  const Problem p = make({m, 200, 2880}, format, Data::exact, uint64_t(82 + m));
  const support::DeviceGemm gemm(gpu.driver, p);
  const nvfp4_plan_info plan = gemm_test::plan_of(gpu, gemm.desc);
  CHECK(gemm_test::tile_tokens(plan.variant) <= 4);
  CHECK(plan.workspace_bytes == 0);
  gemm_test::require_reference_bits(gpu, p, 0xFF);
}

TEST_CASE("formats: a scale that is NaN makes its row NaN", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const int32_t format = EACH_FORMAT;
  Problem p = ones(tile, {3, 40, 192}, format);
  p.b.set_scale(0, 11, 4, 0xFF);  // of codes that are zero
  p.b.set_scale(0, 12, 1, 0xFF);  // of ones, which an infinite scale would make an infinity
  for (int64_t k = 0; k < p.k; ++k) p.b.set_code(0, 12, k, 2);
  CHECK(support::run_on_device(gpu.driver, p, 0xFF) == support::reference(p));
}

// One kernel decodes both, and where all scales are one it multiplies the same numbers.
TEST_CASE("formats: with scales of one every format has the bits of NVFP4", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  Problem p =
      forced(tile, make_for(tile, {7, 72, 448}, NVFP4_OPERAND_FORMAT_NVFP4, Data::random, 75));
  p.alpha = 1 / 64.0f;
  std::fill(p.b.scales.begin(), p.b.scales.end(), uint8_t(0x38));
  std::fill(p.a.scales.begin(), p.a.scales.end(), uint8_t(0x38));
  const std::vector<uint16_t> nvfp4 = support::run_on_device(gpu.driver, p);
  for (const int32_t format : kFormats) {
    Problem other = p;
    other.a.format = other.b.format = format;
    other.b.scales.assign(size_t(other.b.scales_stride()), 127);
    if (other.a.quantized()) other.a.scales.assign(size_t(other.a.scales_stride()), 127);
    CHECK(support::run_on_device(gpu.driver, other, 0xFF) == nvfp4);
  }
}

TEST_CASE("formats: any epilogue follows", "[formats][epilogue]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const size_t number = number_of(tile);
  support::Random random(76 + number);
  const Shape shape{11, 100, 224, 1 + int64_t(number % 2)};
  const int32_t format = kFormats[number % kFormats.size()];
  const Problem p = forced(tile, make_for(tile, shape, format, Data::exact, 76));
  support::Fields columns = support::random_column_fields(random);
  for (const support::Fields& f : {support::random_fields(shape, random), columns}) {
    CAPTURE(to_string(f));
    CHECK(difference_on_device(gpu.driver, support::with_fields(p, f, 77)) == "");
  }
}

TEST_CASE("formats: off the exact grid each tile is inside the bound", "[formats]") {
  USE_GPU_FOR_HALVES(gpu);
  const char* const tile = EACH_TILE;
  const Problem p =
      forced(tile, make_for(tile, {9, 40, 1344}, NVFP4_OPERAND_FORMAT_MXFP4, Data::random, 78));
  CHECK(gemm_test::inside_bound(gpu, p, support::run_on_device(gpu.driver, p, 0xFF)));
}
