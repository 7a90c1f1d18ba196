// SPDX-License-Identifier: MIT
// The ten shapes by which the GPU MODE nvfp4_gemm task judges a submission, whole. One test case
// each, so that a failure names its shape.
#include "test/gemm/hash.h"
#include "test/gemm/sizes.h"

namespace {

// N and K halved until an emulated Hopper needs less than a quarter of a second.
support::Shape fewer_tiles(support::Shape s) {
  while (s.m * s.n * s.k > int64_t(1) << 24) {
    if (s.n > s.k)
      s.n /= 2;
    else
      s.k = (s.k / 2 + 63) / 64 * 64;
  }
  return s;
}

// An emulated Blackwell compares the hash of D, which the reference of NVFP4_LONG has, too.
void whole(support::Shape shape, support::Data data, uint64_t hash) {
  USE_GPU(gpu);
  const bool everything = gemm_test::everything();
  const bool blackwell = gpu.info.emulated() && !gpu.small();
  shape = gpu.sized(shape, fewer_tiles(shape));
  // The largest takes an emulated Blackwell longer than all others: two stages of a quarter of its
  // tiles.
  const bool largest = shape.m * shape.n * shape.k > int64_t(1) << 36;
  if (largest && gpu.info.emulated() && !everything) shape.n /= 4, shape.k = 512;
  const support::Problem problem = support::make_problem(shape, data, 20);
  if (!blackwell || largest || everything) gemm_test::require_reference_bits(gpu, problem);
  if (blackwell && !largest)
    CHECK(gemm_test::hash(support::run_on_device(gpu.driver, problem)) == hash);
}

}  // namespace

#define TASK_SHAPE(m, n, k, hash)                                                           \
  TEST_CASE("the task shape " #m " x " #n " x " #k " is exact to the bit", "[task]") {      \
    whole({m, n, k}, (m) % 256 == 0 ? support::Data::exact : support::Data::gpumode, hash); \
  }

TASK_SHAPE(128, 256, 256, 0xB742EB529A88F4E6)
TASK_SHAPE(128, 1536, 7168, 0x40267892F1C5DEBC)
TASK_SHAPE(128, 3072, 1536, 0x0D74A1E06DD9B3AB)
TASK_SHAPE(256, 7168, 256, 0xF2308B6B48E83E28)
TASK_SHAPE(256, 7168, 2048, 0x12F66448A7174E6D)
TASK_SHAPE(2304, 4608, 7168, 0)  // the emulator takes less of it
TASK_SHAPE(384, 7168, 2304, 0x823E920F27E6A4A5)
TASK_SHAPE(512, 512, 7168, 0x55CD41F48DFA46F3)
TASK_SHAPE(512, 4096, 512, 0x8DAF15FE829F4AED)
TASK_SHAPE(512, 1536, 7168, 0xD062EAE50C8E1483)
