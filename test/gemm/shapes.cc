// SPDX-License-Identifier: MIT
// The ten shapes by which the GPU MODE nvfp4_gemm task judges a submission, whole. One test case
// each, so that a failure names its shape.
#include "test/gemm/sizes.h"

namespace {

// N and K halved until an emulated Hopper needs less than a second.
support::Shape fewer_tiles(support::Shape s) {
  while (s.m * s.n * s.k > int64_t(1) << 26) {
    if (s.n > s.k)
      s.n /= 2;
    else
      s.k = (s.k / 2 + 63) / 64 * 64;
  }
  return s;
}

void whole(support::Shape shape, support::Data data) {
  USE_GPU(gpu);
  shape = gpu.sized(shape, fewer_tiles(shape));
  // The largest takes an emulated Blackwell longer than all others: two stages of its tiles.
  const bool largest = shape.m * shape.n * shape.k > int64_t(1) << 36;
  if (largest && gpu.info.emulated() && !gemm_test::everything()) shape.k = 512;
  gemm_test::require_reference_bits(gpu, support::make_problem(shape, data, 20));
}

}  // namespace

#define TASK_SHAPE(m, n, k)                                                            \
  TEST_CASE("the task shape " #m " x " #n " x " #k " is exact to the bit", "[task]") { \
    whole({m, n, k}, (m) % 256 == 0 ? support::Data::exact : support::Data::gpumode);  \
  }

TASK_SHAPE(128, 256, 256)
TASK_SHAPE(128, 1536, 7168)
TASK_SHAPE(128, 3072, 1536)
TASK_SHAPE(256, 7168, 256)
TASK_SHAPE(256, 7168, 2048)
TASK_SHAPE(2304, 4608, 7168)
TASK_SHAPE(384, 7168, 2304)
TASK_SHAPE(512, 512, 7168)
TASK_SHAPE(512, 4096, 512)
TASK_SHAPE(512, 1536, 7168)
