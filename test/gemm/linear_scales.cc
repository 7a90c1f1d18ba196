// SPDX-License-Identifier: MIT
// Scales in rows of K/16 bytes, of either operand or of both: 9.0 reads them as they are, 10.x
// makes tiles of them in the workspace before each product.
#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"
#include "tools/harness/device_gemm.h"

using support::Gaps;

namespace {

enum class Linear { a, b, both };

Problem linear(Problem p, Linear which) {
  if (which != Linear::b) p.a.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  if (which != Linear::a) p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return p;
}

constexpr Linear kAll[] = {Linear::a, Linear::b, Linear::both};

// Memory that ends with its content: the emulator faults on the byte after it.
struct ExactMemory {
  const support::Driver& driver;
  CUdeviceptr address = 0;

  ExactMemory(const support::Driver& of, const std::vector<uint8_t>& content) : driver(of) {
    driver.check(driver.cuMemAlloc(&address, content.size()), "cuMemAlloc");
    driver.check(driver.cuMemcpyHtoD(address, content.data(), content.size()), "cuMemcpyHtoD");
  }
  ~ExactMemory() { driver.cuMemFree(address); }
  ExactMemory(const ExactMemory&) = delete;
  ExactMemory& operator=(const ExactMemory&) = delete;
  void* pointer() const { return reinterpret_cast<void*>(address); }
};

// Rows of 8, 5, 6 and 7 scales: aligned to words, at any byte, at even bytes.
constexpr int64_t kRests[] = {0, 16, 32, 48};

}  // namespace

#define EACH_LINEAR GENERATE(from_range(std::begin(kAll), std::end(kAll)))

// An emulated Hopper takes one combination for each variant and rest, all of them over the
// variants.
bool left_out(const gemm_test::Gpu& gpu, const char* variant, Linear which, int64_t turn) {
  const int64_t number = int64_t(gemm_test::variant_number(variant));
  return gpu.small() && int64_t(which) != (number + turn) % 3;
}

TEST_CASE("each variant reads linear scales of either operand for K of any rest", "[linear]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const Linear which = EACH_LINEAR;
  const int64_t rest = GENERATE(from_range(std::begin(kRests), std::end(kRests)));
  if (left_out(gpu, variant, which, rest / 16)) return;
  CAPTURE(int(which));
  // The second tile of weights begins within a tile of scales, or has a rest.
  const Shape shape = gpu.small() ? Shape{9, 136, 256 + rest} : Shape{70, 200, 320 + rest};
  gemm_test::require_reference_bits(
      gpu, forced(variant, linear(make_problem(shape, Data::exact, uint64_t(60 + rest)), which)));
}

TEST_CASE("linear scales of a K that several CTAs share and over which rings wrap", "[linear]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const Linear which = EACH_LINEAR;
  const int64_t k = GENERATE(2880, 2896, 9 * 1024 + 32);
  if (left_out(gpu, variant, which, k) || (gpu.small() && k == 2880)) return;
  // In an emulated Hopper a ring of B's linear scales goes round in rings.cc, and one of A's here
  // by one tile; NVFP4_LONG takes tiles of up to 64 tokens.
  const bool whole = gemm_test::everything() ? gemm_test::tile_tokens(variant) <= 64
                                             : variant == std::string("sm90_128x32x256");
  if (gpu.small() && k > 9000 && !whole) return;
  const Shape shape{std::min<int64_t>(gemm_test::tile_tokens(variant), 5), 70, k};
  gemm_test::require_reference_bits(
      gpu, forced(variant, linear(make_problem(shape, Data::gpumode, 61), which)));
}

TEST_CASE("batches of linear scales with gaps or shared", "[linear][batch]") {
  USE_GPU(gpu);
  const char* variant = SOME_VARIANTS(2);
  const Linear which = EACH_LINEAR;
  Gaps gaps;
  gaps.a_ld = 32, gaps.b_ld = 64, gaps.d_ld = 5;
  gaps.a_batch = 96, gaps.b_batch = 32 * 101, gaps.d_batch = 13;
  gaps.scales_batch_bytes = 16 * 33;
  const bool long_k = GENERATE(true, false);
  if (left_out(gpu, variant, which, long_k)) return;
  const int64_t m = gemm_test::few_tokens(gpu, variant, 7);
  const Shape shape = !long_k ? Shape{m, 130, 64, 3} : Shape{gpu.sized<int64_t>(65, m), 70, 336, 2};
  Problem p = forced(variant, linear(make_problem(shape, Data::exact, 62, gaps), which));
  gemm_test::require_reference_bits(gpu, p);

  support::DeviceGemm gemm(gpu.driver, p);
  gemm.desc.b_batch_stride = 0;
  gemm.desc.b_scales_batch_stride_bytes = 0;
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  for (int64_t batch = 1; batch < p.l; ++batch) {
    for (int64_t row = 0; row < p.b.rows; ++row) {
      for (int64_t k = 0; k < p.b.k; ++k) p.b.set_code(batch, row, k, p.b.code(0, row, k));
      for (int64_t s = 0; s < p.b.k / 16; ++s) p.b.set_scale(batch, row, s, p.b.scale(0, row, s));
    }
  }
  CHECK(gemm.d() == support::reference(p));
  CHECK(gemm.damage() == "");
}

TEST_CASE("no byte beyond linear scales is read", "[linear]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const int64_t rest = GENERATE(from_range(std::begin(kRests), std::end(kRests)));
  const Problem p = forced(
      variant,
      linear(make_problem({gpu.sized(100, 5), 41, 320 + rest}, Data::exact, 63), Linear::both));
  support::DeviceGemm gemm(gpu.driver, p);
  const ExactMemory a(gpu.driver, p.a.device_scales(0xFF, 0));
  const ExactMemory b(gpu.driver, p.b.device_scales(0xFF, 0));
  gemm.desc.a_scales = a.pointer(), gemm.desc.b_scales = b.pointer();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(gemm.d() == support::reference(p));
}

TEST_CASE("a NaN among linear scales makes NaN of what uses it and of nothing else",
          "[linear][nan]") {
  USE_GPU(gpu);
  Problem p =
      forced(SOME_VARIANTS(4), linear(make_problem({65, 129, 336}, Data::exact, 64), Linear::both));
  const std::vector<uint16_t> clean = support::reference(p);
  p.a.set_scale(0, 5, 20, 0x7F);
  p.b.set_scale(0, 128, 0, 0x7F);
  const std::vector<uint16_t> d = support::run_on_device(gpu.driver, p);
  size_t wrong = 0;
  for (int64_t row = 0; row < 65; ++row) {
    for (int64_t column = 0; column < 129; ++column) {
      const size_t i = size_t(row * 129 + column);
      wrong += d[i] != (row == 5 || column == 128 ? 0x7FFF : clean[i]);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("pdl changes no bit of a product with linear scales", "[linear][pdl]") {
  USE_GPU(gpu);
  Problem p =
      forced(SOME_VARIANTS(5),
             linear(make_problem({gpu.sized(130, 9), 70, 576}, Data::exact, 65), EACH_LINEAR));
  for (const int32_t pdl : {NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    p.pdl = pdl;
    gemm_test::require_reference_bits(gpu, p);
  }
}

TEST_CASE("linear scales go with any epilogue", "[linear][epilogue]") {
  USE_GPU(gpu);
  support::Random random(66);
  for (int i = 0; i < gpu.sized(24, 8); ++i) {
    const Shape shape{1 + random.below(gpu.small() ? 40 : 200), 1 + random.below(200),
                      16 * (1 + random.below(30)), 1 + random.below(2)};
    const Problem p = linear(make_problem(shape, Data::exact, random.next()), kAll[i % 3]);
    const support::Problem general =
        support::with_fields(p, random_fields(shape, random), random.next());
    CAPTURE(i, to_string(shape), to_string(general));
    REQUIRE(difference_on_device(gpu.driver, general) == "");
  }
}

TEST_CASE("a plan takes new linear scales and a new workspace", "[linear][plan]") {
  USE_GPU(gpu);
  const Linear which = EACH_LINEAR;
  const Problem one = linear(make_problem({gpu.sized(70, 9), 136, 336}, Data::exact, 67), which);
  const Problem two = linear(make_problem({gpu.sized(70, 9), 136, 336}, Data::exact, 68), which);
  const support::DeviceGemm first(gpu.driver, one), second(gpu.driver, two);
  const support::Plan plan(first.desc);
  CHECK(plan.run(support::addresses_of(second.desc)) == NVFP4_SUCCESS);
  CHECK(plan.run() == NVFP4_SUCCESS);
  CHECK(second.d() == support::reference(two));
  CHECK(first.d() == support::reference(one));
  CHECK(first.damage() == "");
  CHECK(second.damage() == "");
}

// ---- 9.0 ----------------------------------------------------------------------------------------

TEST_CASE("a16: each tile reads linear scales of the weights", "[linear][a16]") {
  USE_GPU_FOR_HALVES(gpu);
  const auto [variant, type] = GENERATE(from_range(gemm_test::some_half_variants(0)));
  const Shape shape = GENERATE(Shape{11, 136, 320, 2}, Shape{9, 70, 2880}, Shape{9, 70, 2896});
  // An emulated Hopper cuts whole steps of K for fp16 tokens, and a K with a rest for the others.
  const bool rest = shape.k % 64 != 0, some = gpu.small() && !gemm_test::everything();
  if (some && shape.l == 1 && rest != (type == NVFP4_TYPE_BF16)) return;
  Problem p = forced(variant, support::make_a16_problem(shape, type, Data::exact, 69));
  p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  gemm_test::require_reference_bits(gpu, p);
}

TEST_CASE("a CTA of 9.0 goes on from tile to tile with linear scales", "[linear][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gpu.small() && gpu.info.sms > 4) {
    SKIP_TEST("an emulated Hopper takes few SMs for it: EMU_SMS=3");
  }
  const int64_t k = GENERATE(64, 336, 448);
  const char* variant = GENERATE("sm90_128x128x256/1", "sm90_64x2x256/1");
  const bool tiny = gemm_test::tile_tokens(variant) == 2;
  if (!gemm_test::is_taken(variant)) return;
  // Where warps decode tokens a CTA has several tiles if these have the same tokens and three
  // k-blocks.
  const Shape shape{tiny ? 2 : 137, (3 * gpu.info.sms + 1) * gemm_test::tile_weights(variant) - 60,
                    tiny ? k + 576 : k};
  gemm_test::require_reference_bits(
      gpu, forced(variant, linear(make_problem(shape, Data::exact, 70), Linear::both)));
}

TEST_CASE("9.0 loads static weights early and their linear scales with them", "[linear][pdl]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  USE_EMULATOR(gpu, emulator);
  Problem p =
      forced("sm90_64x8x256", linear(make_problem({5, 70, 512}, Data::exact, 71), Linear::b));
  uint64_t early[2];
  for (const int32_t pdl : {NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS}) {
    p.pdl = pdl;
    support::run_on_device(gpu.driver, p);
    early[pdl - 1] = emulator.counter("early_bytes");
  }
  CHECK(early[0] == 0);
  CHECK(early[1] >= 2 * 2 * 64 * 128);  // two tiles, two stages of codes
}

// ---- 10.x ---------------------------------------------------------------------------------------

TEST_CASE("10.x makes tiles of linear scales in launches of their own", "[linear][calls]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  const Linear which = EACH_LINEAR;
  const support::DeviceGemm gemm(gpu.driver,
                                 linear(make_problem({65, 129, 64}, Data::exact, 72), which));
  CHECK(gemm.desc.workspace_bytes == (which == Linear::a ? 512 : which == Linear::b ? 1024 : 1536));
  emulator.reset_calls();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  const std::string launches =
      which == Linear::both ? "cuLaunchKernelEx\ncuLaunchKernelEx\n" : "cuLaunchKernelEx\n";
  CHECK(emulator.recorded() ==
        "cuCtxGetCurrent\ncuCtxGetDevice\ncuTensorMapEncodeTiled\ncuTensorMapEncodeTiled\n" +
            launches + "cuLaunchKernelEx\n");
}

// Weights that no kernel writes are still loaded ahead where their scales are tiles already.
TEST_CASE("10.x loads no weights ahead of the kernel that makes their tiles", "[linear][pdl]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  USE_EMULATOR(gpu, emulator);
  const Linear which = EACH_LINEAR;
  Problem p = linear(make_problem({65, 129, 576}, Data::exact, 73), which);
  p.pdl = NVFP4_PDL_ON_STATIC_WEIGHTS;
  support::run_on_device(gpu.driver, p);
  CAPTURE(int(which));
  CHECK((emulator.counter("early_bytes") > 0) == (which == Linear::a));
}

TEST_CASE("10.x refuses a workspace for tiles that is missing or small or in the way", "[linear]") {
  USE_GPU_OF_FAMILY(gpu, 10);
  const Problem p = linear(make_problem({65, 129, 64}, Data::exact, 74), Linear::both);
  support::DeviceGemm gemm(gpu.driver, p);
  void* const workspace = gemm.desc.workspace;
  gemm.desc.workspace = nullptr;
  CHECK(gemm.enqueue() == NVFP4_STATUS_NULL_POINTER);
  gemm.desc.workspace = gemm.desc.d;
  CHECK(gemm.enqueue() == NVFP4_STATUS_OVERLAP);
  gemm.desc.workspace = const_cast<void*>(gemm.desc.b_scales);
  CHECK(gemm.enqueue() == NVFP4_STATUS_OVERLAP);
  gemm.desc.workspace = workspace;
  gemm.desc.workspace_bytes -= 1;
  CHECK(gemm.enqueue() == NVFP4_STATUS_INVALID_VALUE);
}
