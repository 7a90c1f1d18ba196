// SPDX-License-Identifier: MIT
// fp16 and bf16 activations against NVFP4 weights by mma.sync, on compute capability 8.0 and later.
#include "test/gemm/sm80.h"

#include <cstring>

#include "test/gemm/a16_pairs.h"
#include "test/gemm/emulator.h"
#include "tools/harness/device_gemm.h"

using gemm_test::Sm80Image;
using gemm_test::Sm80Kernels;
using gemm_test::Sm80Size;
using support::make_a16_problem;

namespace {

#define EACH_SM80_TYPE GENERATE(int32_t{NVFP4_TYPE_F16}, int32_t{NVFP4_TYPE_BF16})

std::vector<uint16_t> run(const gemm_test::Gpu& gpu, const Sm80Kernels& kernels, const Problem& p,
                          const Sm80Size& size, uint32_t split, uint8_t poison = 0x7F) {
  const support::DeviceGemm gemm(gpu.driver, p, poison);
  REQUIRE(kernels.run(gemm.desc, size, split) == "");
  const std::vector<uint16_t> d = gemm.d();
  REQUIRE(gemm.damage() == "");
  return d;
}

void require_reference(const gemm_test::Gpu& gpu, const Sm80Image& image, const Problem& p,
                       const Sm80Size& size, uint32_t split) {
  INFO(to_string(p.shape()) << ", clusters " << image.clusters << ", tile " << size.name()
                            << ", split " << split);
  REQUIRE(support::sums_are_exact(p));
  require_bits(p, run(gpu, Sm80Kernels(gpu, image), p, size, split));
}

}  // namespace

TEST_CASE("sm80: each tile and split gives the reference's bits", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const int32_t type = EACH_SM80_TYPE;
  const Sm80Size size = EACH_SM80_TILE;
  const uint32_t split = GENERATE(1u, 3u);
  // Emulated, each tile and split with one type.
  const bool turn = (size.tokens / 8 + size.warps / 4 + split / 2) % 2 == 0;
  const bool some = gpu.info.emulated() && !gemm_test::everything();
  if (some && turn != (type == NVFP4_TYPE_F16)) return;
  // Tails of M, N and K, two batches, gaps, more tokens than a tile has; three tiles of weights, of
  // which the second has the upper half of a tile of scales, or two.
  const support::Gaps gaps{8, 32, 3, 40, 64, 5, 16};
  const Shape shape{int64_t(size.tokens) + 3, some && gpu.small() ? 70 : 130, 816, 2};
  require_reference(gpu, image, make_a16_problem(shape, type, Data::exact, 1, gaps), size, split);
}

TEST_CASE("sm80: any number of tokens and any K", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const int64_t m = GENERATE(1, 2, 7, 8, 9);
  const int64_t k = GENERATE(16, 336, 1024);
  const Sm80Size size{m > 8 ? 16u : 8u, 4};
  require_reference(gpu, image,
                    make_a16_problem({m, 70, k}, NVFP4_TYPE_BF16, Data::exact, uint64_t(2 + m)),
                    size, 1);
}

TEST_CASE("sm80: each warp's ring wraps twice in every K partition", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const Sm80Size size = EACH_SM80_TILE;
  const uint32_t split = GENERATE(1u, 2u);
  const int64_t k = int64_t(split) * nvfp4::kSm80BlockK * size.warps * 5 - 32;
  require_reference(gpu, image, make_a16_problem({5, 64, k}, NVFP4_TYPE_BF16, Data::gpumode, 3),
                    size, split);
}

TEST_CASE("sm80: eight K partitions of 16 tokens meet behind the sums of warps", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const int64_t m = GENERATE(1, 16);
  require_reference(gpu, image, make_a16_problem({m, 70, 1168}, NVFP4_TYPE_BF16, Data::exact, 5),
                    {16, 4}, 8);
}

TEST_CASE("sm80: linear scales with rows of any length", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const int64_t k = GENERATE(336, 576, 768);
  Problem p = make_a16_problem({3, 70, k, 2}, NVFP4_TYPE_F16, Data::exact, 4);
  p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  require_reference(gpu, image, p, {8, 4}, 1);
}

TEST_CASE("sm80: all 16 x 127 pairs of element and scale are decoded exactly", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const Problem p = gemm_test::a16_pairs(EACH_SM80_TYPE);
  CHECK(run(gpu, Sm80Kernels(gpu, image), p, {8, 4}, 1) == support::reference(p));
}

TEST_CASE("sm80: NaN and infinity follow IEEE and a NaN scale its row", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const int32_t type = EACH_SM80_TYPE;
  const uint32_t split = GENERATE(1u, 2u);
  Problem p = make_a16_problem({6, 70, 592}, type, Data::exact, 902);
  const bool f16 = type == NVFP4_TYPE_F16;
  const uint16_t infinity = f16 ? 0x7C00 : 0x7F80, nan = f16 ? 0x7E00 : 0x7FC0;
  for (const int64_t row : {3, 11, 33, 69}) p.b.set_scale(0, row, row % 37, 0x7F);
  p.a.set_half(0, 1, 100, nan);
  p.a.set_half(0, 2, 101, infinity);
  p.a.set_half(0, 3, 102, uint16_t(infinity | 0x8000));
  p.a.set_half(0, 4, 103, infinity);
  p.a.set_half(0, 4, 104, uint16_t(infinity | 0x8000));
  for (int64_t n = 0; n < 20; ++n) {
    p.b.set_code(0, n, 101, uint8_t(n % 16));  // also zeros, of either sign
  }
  CHECK(run(gpu, Sm80Kernels(gpu, image), p, {8, 4}, split) == support::reference(p));
}

TEST_CASE("sm80: off the exact grid each tile is inside the bound of 9.0", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const uint32_t split = GENERATE(1u, 4u);
  const Problem p = make_a16_problem({9, 40, 1344}, EACH_SM80_TYPE, Data::random, 901);
  const std::vector<uint16_t> d = run(gpu, Sm80Kernels(gpu, image), p, {16, 4}, split);
  CHECK(support::compare_bound(p, d, support::reference(p), 90).passed());
}

TEST_CASE("sm80: both images give the same bits for every tile that a token is in", "[sm80]") {
  USE_SM80_GPU(gpu);
  const std::vector<Sm80Image> images = gemm_test::sm80_images();
  const Problem p = make_a16_problem({20, 70, 2320}, NVFP4_TYPE_BF16, Data::random, 905);
  const Sm80Kernels first(gpu, images.front()), last(gpu, images.back());
  const std::vector<uint16_t> d = run(gpu, first, p, {8, 4}, 3);
  CHECK(run(gpu, last, p, {16, 4}, 3) == d);
}

TEST_CASE("sm80: any epilogue gives the reference's bits", "[sm80][epilogue]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const Sm80Kernels kernels(gpu, image);
  support::Random random(77);
  for (int i = 0; i < 12; ++i) {
    const Shape shape{int64_t(1 + random.below(11)), int64_t(1 + random.below(140)),
                      int64_t(16 * (1 + random.below(50))), 1 + int64_t(random.below(2))};
    const Problem operands = make_a16_problem(shape, i % 2 ? NVFP4_TYPE_F16 : NVFP4_TYPE_BF16,
                                              Data::exact, random.next());
    const support::Problem p =
        support::with_fields(operands, random_fields(shape, random), random.next());
    CAPTURE(to_string(shape), to_string(p));
    const support::DeviceGemm device(gpu.driver, p);
    const std::vector<Sm80Size> tiles = gemm_test::sm80_tiles();
    const Sm80Size size = tiles[random.below(uint32_t(tiles.size()))];
    REQUIRE(kernels.run(device.desc, size, 1 + random.below(2)) == "");
    REQUIRE(device.damage() == "");
    REQUIRE(support::first_difference(p, device.d_bytes(), p.reference()) == "");
  }
}

// Without guards memory ends with the operands: the emulator faults on the byte after them.
TEST_CASE("sm80: nothing beyond the operands is read", "[sm80]") {
  USE_SM80_GPU(gpu);
  const Sm80Image image = EACH_SM80_IMAGE;
  const bool linear = GENERATE(false, true);
  Problem p = make_a16_problem({3, 70, 336}, NVFP4_TYPE_BF16, Data::exact, 909);
  if (linear) p.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  support::DeviceGemm gemm(gpu.driver, p);
  std::vector<CUdeviceptr> memory;
  const auto exact = [&](const void* bytes, size_t size) {
    gpu.driver.check(gpu.driver.cuMemAlloc(&memory.emplace_back(), size), "cuMemAlloc");
    gpu.driver.check(gpu.driver.cuMemcpyHtoD(memory.back(), bytes, size), "cuMemcpyHtoD");
    return reinterpret_cast<void*>(memory.back());
  };
  const std::vector<uint8_t> scales = p.b.device_scales(0x7F, 0);
  gemm.desc.a = exact(p.a.halves.data(), p.a.halves.size() * 2);
  gemm.desc.b = exact(p.b.codes.data(), p.b.codes.size());
  gemm.desc.b_scales = exact(scales.data(), scales.size());
  REQUIRE(Sm80Kernels(gpu, image).run(gemm.desc, {8, 4}, 1) == "");
  CHECK(support::compare_bits(p.shape(), gemm.d(), support::reference(p)).passed());
  for (const CUdeviceptr one : memory) gpu.driver.check(gpu.driver.cuMemFree(one), "cuMemFree");
}

// The second product takes what the first one writes, as its tokens or as its weights. The emulator
// knows of an order between them only by griddepcontrol.wait.
TEST_CASE("sm80: earlier grids end before tokens are read and weights that they may write",
          "[sm80]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  if (gemm_test::sm80_images().empty()) SKIP_TEST("this build has no image of kernel/sm80");
  const Sm80Kernels kernels(gpu, gemm_test::sm80_images().back());
  const uint32_t split = GENERATE(1u, 2u);
  const bool tokens = GENERATE(true, false);
  const int32_t pdl = tokens ? GENERATE(int32_t{NVFP4_PDL_ON}, int32_t{NVFP4_PDL_ON_STATIC_WEIGHTS})
                             : int32_t{NVFP4_PDL_ON};
  CAPTURE(split, tokens, pdl);
  support::DeviceGemm first(gpu.driver,
                            make_a16_problem({8, 256, 256}, NVFP4_TYPE_BF16, Data::exact, 906));
  // 8 rows of 256 in 16 bits are as many tokens, or the codes of 8 weights of 1024.
  const Shape shape = tokens ? Shape{8, 70, 256} : Shape{5, 8, 1024};
  support::DeviceGemm second(gpu.driver,
                             make_a16_problem(shape, NVFP4_TYPE_BF16, Data::exact, 907));
  first.desc.d_type = NVFP4_TYPE_BF16;
  (tokens ? second.desc.a : second.desc.b) = first.desc.d;
  first.desc.pdl = second.desc.pdl = pdl;
  kernels.enqueue(first.desc, {8, 4}, 2, nullptr);
  kernels.enqueue(second.desc, {8, 4}, split, nullptr);
  const std::vector<uint16_t> d = second.d();
  second.desc.pdl = NVFP4_PDL_OFF;
  kernels.enqueue(second.desc, {8, 4}, split, nullptr);
  CHECK(second.d() == d);
}
