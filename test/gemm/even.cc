// SPDX-License-Identifier: MIT
// Even shares of 9.0: CTAs share the k-blocks of tiles that fill no whole wave, and the last part
// of a tile to arrive adds all of them (kernel/sm90/sums/even.cuh).
#include <array>

#include "test/gemm/emulator.h"
#include "test/gemm/shares.h"

using namespace gemm_test;
using support::DeviceGemm;
using support::Driver;

namespace {

// Tiles of which a part fills no whole wave: ten for 16 SMs, eighty for 132.
int64_t uneven_tiles(int64_t sms, int64_t waves) { return waves * sms + sms * 5 / 8; }

std::vector<std::string> even_variants() {
  if (support::devices(Driver::get()).at(0).emulated()) {
    return {"sm90_128x128x256/even", "sm90_bf16_128x192x256/even"};
  }
  return {"sm90_128x128x256/even",     "sm90_128x192x256/even",      "sm90_f16_128x128x256/even",
          "sm90_f16_128x192x256/even", "sm90_bf16_128x128x256/even", "sm90_bf16_128x192x256/even"};
}

Problem full_tokens(const Problem& p, const std::string& variant, Data data) {
  const support::Shape shape{tile_tokens(variant) - 5, p.n, p.k};
  const int32_t type = a_type_of(variant);
  if (type == NVFP4_TYPE_NONE) {
    return forced(variant.c_str(), support::make_problem(shape, data, 962));
  }
  return forced(variant.c_str(), support::make_a16_problem(shape, type, data, 962));
}

}  // namespace

// Shares that end in a tile, begin in it and cross it; tiles that one CTA has whole.
TEST_CASE("CTAs of 9.0 that share tiles evenly give the reference's bits", "[shares][even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(even_variants()));
  const int64_t sms = nominal_sms(gpu), waves = GENERATE(0, 1);
  if (gpu.small() && sms * waves == 132) SKIP_TEST("hundreds of tiles take the emulator minutes");
  const Problem p = tiles_of(variant, uneven_tiles(sms, waves), k_of(gpu, variant), Data::exact);
  const DeviceGemm gemm(gpu.driver, p);
  const nvfp4_plan_info info = plan_of(gpu, gemm.desc);
  CHECK(info.variant == variant);
  CHECK(info.whole_tiles == waves * sms);
  CHECK(info.grid_ctas == sms);
  require_reference_bits(gpu, p);
  if (waves == 1) return;
  // Shares as long as a tile, or one k-block shorter.
  require_reference_bits(gpu, tiles_of(variant, sms - 1, k_of(gpu, variant), Data::exact));
  // K in whole steps, for the entry of plain products, and nearly all rows of a tile.
  require_reference_bits(gpu, full_tokens(tiles_of(variant, uneven_tiles(sms, 0),
                                                   k_of(gpu, variant) / 64 * 64, Data::exact),
                                          variant, Data::exact));
}

TEST_CASE("even shares take any epilogue", "[shares][even][epilogue]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const std::string variant = GENERATE(from_range(even_variants()));
  const int64_t sms = nominal_sms(gpu);
  const Problem operands = tiles_of(variant, uneven_tiles(sms, 0), k_of(gpu, variant), Data::exact);
  support::Random random(963);
  for (int i = 0; i < (gpu.small() ? 2 : 8); ++i) {
    const Problem p =
        support::with_fields(operands, support::random_fields(operands.shape(), random), 1);
    CAPTURE(variant, to_string(p));
    REQUIRE(difference_on_device(gpu.driver, p) == "");
  }
  const Problem inexact = tiles_of(variant, uneven_tiles(sms, 0), k_of(gpu, variant), Data::random);
  CHECK(inside_bound(gpu, inexact, support::run_on_device(gpu.driver, inexact)));
}

namespace {

// A problem points to the name of its variant.
const std::string kOfNvfp4 = "sm90_128x128x256/even", kOfBf16 = "sm90_bf16_128x128x256/even";

// Five tiles for 16 SMs, of seven k-blocks: up to four parts a tile. K ends with a whole step.
constexpr int64_t kShortK = 1600;
int64_t few_tiles(int64_t sms) { return sms * 5 / 16; }

Problem few_parts(const std::string& variant, int64_t sms, Data data) {
  return tiles_of(variant, few_tiles(sms), kShortK, data);
}

// The CTA that has a k-block, all tiles' counted together.
int64_t cta_of(int64_t block, int64_t blocks, int64_t ctas) {
  const int64_t each = blocks / ctas, more = blocks % ctas;
  return block < more * (each + 1) ? block / (each + 1) : more + (block - more * (each + 1)) / each;
}

// Element k of each k-block: a number that a sum of 24 bits just holds, times 1 or -1, and a small
// one, which is lost where it is added to the large one.
constexpr int64_t kLarge = 0, kSmall = 16;
constexpr uint8_t kOne = 0x2, kMinusOne = 0xA, kSix = 0x7, kFour = 0x6;

void set_element(support::Operand& x, int64_t row, int64_t k, uint8_t code, uint8_t scale) {
  x.set_code(0, row, k, code);
  x.set_scale(0, row, k / 16, scale);
}

// The parts of a tile have the sums L, 1, 1 and 6 - L, of 2^-4: in the order of K 6, otherwise 7 or
// 8. A tile that one CTA has whole has 6.
Problem ordered_parts(const std::string& variant, int64_t sms) {
  constexpr uint8_t k256 = 0x78, kQuarter = 0x28;
  const int64_t stages = (kShortK + 255) / 256;
  Problem p = few_parts(variant, sms, Data::exact);
  p = forced(p.variant, make_problem({p.m, p.n, p.k}));
  for (int64_t k = 0; k < p.k; k += 256) {
    for (int64_t m = 0; m < p.m; ++m) {
      set_element(p.a, m, k + kLarge, kFour, k256);
      set_element(p.a, m, k + kSmall, kOne, kQuarter);
    }
  }
  const int64_t blocks = few_tiles(sms) * stages;
  for (int64_t n = 0; n < p.n; ++n) {
    const int64_t first = n / 128 * stages, end = first + stages;
    const int64_t first_cta = cta_of(first, blocks, sms), last_cta = cta_of(end - 1, blocks, sms);
    for (int64_t block = first; block < end; ++block) {
      const int64_t cta = cta_of(block, blocks, sms), k = (block - first) * 256;
      if (block > first && cta == cta_of(block - 1, blocks, sms)) continue;  // the part has begun
      const bool begins = cta == first_cta, ends = cta == last_cta;
      if (begins != ends) {
        set_element(p.b, n, k + kLarge, begins ? kFour : kFour | 8, k256);
      }
      if (!begins || ends) set_element(p.b, n, k + kSmall, ends ? kSix : kOne, kQuarter);
    }
  }
  return p;
}

// Runs it and requires 6 * 2^-4 everywhere.
void require_order(const Gpu& gpu, const Problem& p) {
  CAPTURE(p.variant, p.d_type);
  const std::vector<uint8_t> d = support::bytes_on_device(gpu.driver, p);
  const size_t bytes = p.d_type == NVFP4_TYPE_F32 ? 4 : 2;
  const std::vector<uint8_t> half{0x00, 0x36}, whole{0, 0, 0xC0, 0x3E};
  bool all = true;
  for (int64_t m = 0; m < p.m; ++m) {
    for (int64_t n = 0; n < p.n; ++n) {
      const auto at = d.begin() + ptrdiff_t((m * p.d_ld + n) * int64_t(bytes));
      all = all && std::equal(at, at + ptrdiff_t(bytes), (bytes == 4 ? whole : half).begin());
    }
  }
  CHECK(all);
}

// What a workspace may contain before a run, 8 bytes that repeat; a word of another run is its
// nonce and a mask.
constexpr uint64_t kForeign = 0x5A5A12345678ull << 16;
constexpr uint64_t kContents[] = {
    0, ~uint64_t{0}, 0x9E3779B97F4A7C15, kForeign | 15, kForeign | 7, kForeign | 1};

void fill_workspace(const Gpu& gpu, const nvfp4_gemm_desc& g, uint64_t word) {
  std::vector<uint64_t> words(g.workspace_bytes / 8, word);
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(g.workspace), words.data(),
                                           words.size() * 8),
                   "cuMemcpyHtoD");
}

// The words of arrivals, the last of the workspace.
std::vector<uint64_t> arrivals(const Gpu& gpu, const nvfp4_gemm_desc& g, int64_t tiles) {
  std::vector<uint64_t> words(static_cast<size_t>(tiles));
  const uint64_t bytes = words.size() * 8;
  gpu.driver.check(
      gpu.driver.cuMemcpyDtoH(
          words.data(), reinterpret_cast<CUdeviceptr>(g.workspace) + g.workspace_bytes - bytes,
          bytes),
      "cuMemcpyDtoH");
  return words;
}

// Runs of a plan as a graph on a stream of its own.
class Graph {
 public:
  Graph(const Driver& driver, const support::Plan& plan, const nvfp4_gemm_desc& g)
      : driver_(driver) {
    driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    driver.check(driver.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
    REQUIRE(plan.run(support::addresses_of(g), stream_) == NVFP4_SUCCESS);
    driver.check(driver.cuStreamEndCapture(stream_, &graph_), "cuStreamEndCapture");
    driver.check(driver.cuGraphInstantiateWithFlags(&instance_, graph_, 0), "instantiate");
  }
  ~Graph() {
    driver_.cuGraphExecDestroy(instance_);
    driver_.cuGraphDestroy(graph_);
    driver_.cuStreamDestroy(stream_);
  }
  Graph(const Graph&) = delete;
  void launch() const { driver_.check(driver_.cuGraphLaunch(instance_, stream_), "launch"); }
  void wait() const { driver_.check(driver_.cuStreamSynchronize(stream_), "wait"); }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec instance_ = nullptr;
};

}  // namespace

// Whichever part comes last: with one SM it is the one that ends K, otherwise often the first.
TEST_CASE("even shares add the parts of a tile in the order of K", "[even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int64_t sms = nominal_sms(gpu);
  Problem p = ordered_parts(kOfNvfp4, sms);
  require_order(gpu, p);
  support::Fields fields;
  fields.d_type = NVFP4_TYPE_F32;  // the entry for any product
  require_order(gpu, support::with_fields(p, fields, 1));
}

TEST_CASE("even shares need no content of the workspace and leave no arrivals",
          "[even][sanitize]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int64_t sms = nominal_sms(gpu);
  const Problem p = few_parts(kOfBf16, sms, Data::exact);
  for (const uint64_t word : kContents) {
    CAPTURE(word);
    const DeviceGemm gemm(gpu.driver, p);
    fill_workspace(gpu, gemm.desc, word);
    REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
    require_bits(p, gemm);
    for (const uint64_t left : arrivals(gpu, gemm.desc, few_tiles(sms))) {
      CHECK((left == 0 || left == word));  // of a tile that one CTA has whole
    }
  }
}

TEST_CASE("two graphs of one plan with even shares run again with a workspace each", "[even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const int64_t sms = nominal_sms(gpu);
  const Problem p = few_parts(kOfNvfp4, sms, Data::exact);
  const DeviceGemm one(gpu.driver, p), other(gpu.driver, p);
  const support::Plan plan(one.desc);
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  const Graph first(gpu.driver, plan, one.desc), second(gpu.driver, plan, other.desc);
  for (int i = 0; i < gpu.sized(20, 2); ++i) {
    first.launch();
    second.launch();
  }
  first.wait(), second.wait();
  require_bits(p, one);
  require_bits(p, other);
}

TEST_CASE("even shares do not depend on when copies complete or which role is late", "[even]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const Emulator emulator(gpu.driver);
  if (!emulator.present()) SKIP_TEST("a GPU has no EMU_ORDER");
  const int64_t sms = nominal_sms(gpu);
  const Problem p = ordered_parts(kOfNvfp4, sms);
  for (const char* const when : {"soonest", "latest"}) {
    const Setting order(emulator, "EMU_ORDER", when, "random");
    require_order(gpu, p);
  }
  for (const char* const warps : {"0-7", "0", "8", "9"}) {
    const Setting late(emulator, "EMU_LATE", warps, "");
    require_order(gpu, p);
  }
}
