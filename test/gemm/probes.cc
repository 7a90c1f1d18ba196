// SPDX-License-Identifier: MIT
// Each (row, block) of the scales of one tile is made the only one that counts. Two (row, k) of
// a row of the elements count, under scales that keep them apart. So D spells out where the
// kernel took them from. Expectations are closed forms; no reference takes part.
#include "test/gemm/sizes.h"
#include "tools/harness/formats.h"

using support::Operand;

namespace {

constexpr int64_t kK = 256;          // one stage
constexpr uint8_t kOne = 0x2;        // E2M1 1.0
constexpr uint8_t kScaleOne = 0x38;  // UE4M3 1.0
constexpr uint8_t kScale32 = 0x60;   // UE4M3 32

// One block of scales: two tiles of 64 tokens, one of 128, half of one of 256. On an emulated
// Hopper one tile.
Problem one_block(const gemm_test::Gpu& gpu, const char* variant) {
  const int64_t tokens =
      gpu.sized(int64_t(128), std::min(int64_t(128), gemm_test::tile_tokens(variant)));
  return gemm_test::forced(variant, support::make_problem({tokens, 128, kK}));
}

// Every thirteenth on an emulated Hopper, other ones for each of its variants: 256 has no factor in
// common with it, so the rows of a tile meet each 16 bytes of a swizzled line in each of its
// places.
int64_t first_shift(const gemm_test::Gpu& gpu, const char* variant) {
  return gpu.small() ? int64_t(gemm_test::variant_number(variant) % 13) : 0;
}

void fill_scales(Operand& o, uint8_t byte) { o.scales.assign(o.scales.size(), byte); }

// D[probed row][other row], whichever of A and B is probed.
double element(const Problem& p, const std::vector<uint16_t>& d, bool probe_a, int64_t probed,
               int64_t other) {
  const int64_t row = probe_a ? probed : other, column = probe_a ? other : probed;
  return support::f16_value(d[size_t(row * p.n + column)]);
}

// Assertions cost a microsecond, and there are millions of elements: only a difference is asserted.
void require_element(double got, double want, int64_t shift, int64_t row, int64_t column) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return;
  CAPTURE(shift, row, column);
  REQUIRE(got == want);
}

// Row i has elements at k = (i + shift) % K and half of K further alone, the second one times 32,
// which is more than two elements differ by. 128 shifts probe every (row, k).
void probe_elements(const gemm_test::Gpu& gpu, const char* variant, bool probe_a) {
  Problem p = one_block(gpu, variant);
  Operand& probe = probe_a ? p.a : p.b;
  Operand& other = probe_a ? p.b : p.a;
  support::Random random(30);
  for (uint8_t& byte : other.codes) byte = uint8_t(random.below(256));
  fill_scales(p.a, kScaleOne);
  fill_scales(p.b, kScaleOne);
  for (int64_t shift = first_shift(gpu, variant); shift < kK / 2;
       shift += gpu.sized(1, gemm_test::everything() ? 6 : 13)) {
    probe.codes.assign(probe.codes.size(), 0);
    fill_scales(probe, kScaleOne);
    for (int64_t row = 0; row < probe.rows; ++row) {
      const int64_t first = (row + shift) % kK, second = (first + kK / 2) % kK;
      probe.set_code(0, row, first, kOne);
      probe.set_code(0, row, second, kOne);
      probe.set_scale(0, row, second / 16, kScale32);
    }
    const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
    for (int64_t row = 0; row < probe.rows; ++row) {
      for (int64_t column = 0; column < other.rows; ++column) {
        const int64_t first = (row + shift) % kK, second = (first + kK / 2) % kK;
        const double want = support::e2m1_value(other.code(0, column, first)) +
                            32 * support::e2m1_value(other.code(0, column, second));
        require_element(element(p, d, probe_a, row, column), want, shift, row, column);
      }
    }
  }
  SUCCEED("every (row, k) is where it should be");
}

// 2^exponent as a UE4M3 byte, -9 .. 8.
uint8_t power_scale(int exponent) {
  return uint8_t(exponent >= -6 ? (exponent + 7) << 3 : 1 << (exponent + 9));
}

// All elements are 1. Row i has its only scale at block (i + shift) % 16, with a code that goes
// through all 128 as i does; the other operand's scale of block b is 2^(b - 8), which names the
// block.
void probe_scales(const gemm_test::Gpu& gpu, const char* variant, bool probe_a) {
  constexpr int64_t kBlocks = kK / 16;
  Problem p = one_block(gpu, variant);
  Operand& probe = probe_a ? p.a : p.b;
  Operand& other = probe_a ? p.b : p.a;
  p.a.codes.assign(p.a.codes.size(), kOne | kOne << 4);
  p.b.codes.assign(p.b.codes.size(), kOne | kOne << 4);
  p.alpha = 0x1p-5f;  // from 2^-22 to 2^15: exact in fp16
  for (int64_t row = 0; row < other.rows; ++row) {
    for (int64_t b = 0; b < kBlocks; ++b) other.set_scale(0, row, b, power_scale(int(b) - 8));
  }
  for (int64_t shift = 0; shift < kBlocks; ++shift) {
    fill_scales(probe, 0);
    for (int64_t row = 0; row < probe.rows; ++row) {
      probe.set_scale(0, row, (row + shift) % kBlocks, uint8_t((row + 37 * shift) % 128));
    }
    const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
    for (int64_t row = 0; row < probe.rows; ++row) {
      const double scale = support::e4m3_value(uint8_t((row + 37 * shift) % 128));
      const double want = 16 * scale * std::ldexp(1.0, int((row + shift) % kBlocks) - 8 - 5);
      for (int64_t column = 0; column < other.rows; ++column) {
        require_element(element(p, d, probe_a, row, column), want, shift, row, column);
      }
    }
  }
  SUCCEED("every (row, block) and every scale code is where it should be");
}

// On an emulated Blackwell a tile of one CTA and one of a pair, others of B than of A.
std::vector<const char*> probed(size_t turn) {
  const std::vector<const char*> all = gemm_test::some_variants(turn);
  if (all.size() != 4 || gemm_test::everything() || !gemm_test::emulated()) return all;
  return {all[turn], all[3 - turn]};
}

}  // namespace

TEST_CASE("every element of an A tile is multiplied from its place", "[probe][R7]") {
  USE_GPU(gpu);
  probe_elements(gpu, GENERATE(from_range(gemm_test::taken(probed(0)))), true);
}

TEST_CASE("every element of a B tile is multiplied from its place", "[probe][R7]") {
  USE_GPU(gpu);
  probe_elements(gpu, GENERATE(from_range(gemm_test::taken(probed(1)))), false);
}

TEST_CASE("every scale of an A tile and every scale code is applied in its place", "[probe][R8]") {
  USE_GPU(gpu);
  probe_scales(gpu, SOME_VARIANTS(2), true);
}

TEST_CASE("every scale of a B tile and every scale code is applied in its place", "[probe][R8]") {
  USE_GPU(gpu);
  probe_scales(gpu, SOME_VARIANTS(3), false);
}
