// SPDX-License-Identifier: MIT
#include "host/run/empty_sum.h"

#include <algorithm>

#include "host/base/formats.h"
#include "host/base/size.h"
#include "host/problem/epilogue.h"
#include "host/run/enqueue.h"

namespace nvfp4 {

namespace {

// Every element is round(alpha * 0), which is NaN if alpha is infinity or NaN. One fill covers all
// batches if there is no gap between them.
nvfp4_status fill(const Site& site, const nvfp4_gemm_desc& g, CUstream stream) {
  const Driver& driver = *site.driver;
  const uint16_t value = f16_from_f32(f32_multiply(f32_bits(g.alpha), f32_bits(0.0f)));
  const bool gapless = g.l == 1 || g.d_batch_stride == g.m * g.d_ld;
  const int64_t fills = gapless ? 1 : g.l;
  const size_t rows = static_cast<size_t>(gapless ? g.m * g.l : g.m);
  for (int64_t fill = 0; fill < fills; ++fill) {
    const CUdeviceptr first =
        reinterpret_cast<CUdeviceptr>(g.d) + 2 * static_cast<uint64_t>(fill * g.d_batch_stride);
    const CUresult result = driver.cuMemsetD2D16Async(first, 2 * static_cast<size_t>(g.d_ld), value,
                                                      static_cast<size_t>(g.n), rows, stream);
    if (result != CUDA_SUCCESS) return driver_failure(driver, "cuMemsetD2D16Async", result);
  }
  return NVFP4_SUCCESS;
}

// Launches the kernel for C, bias, scalars on the device, and other types or orders.
nvfp4_status compute(const Site& site, const nvfp4_gemm_desc& g, const GroupParams* groups,
                     CUstream stream) {
  constexpr int64_t kMostGridRows = 4096;  // enough to keep any GPU busy
  EmptySumParams p{};
  p.d = g.d;
  p.d_batch_stride = g.l > 1 ? g.d_batch_stride : 0;
  p.m = static_cast<uint32_t>(g.m);
  p.n = static_cast<uint32_t>(g.n);
  const int64_t batches = groups == nullptr ? g.l : 1;
  p.batches = static_cast<uint32_t>(batches);
  p.alpha = g.alpha;
  p.epilogue = make_epilogue(g);
  if (groups != nullptr) p.groups = *groups;
  Grid grid{};
  grid.ctas = static_cast<uint32_t>(ceil_div(g.n, int64_t{kEmptySumColumns}));
  const int64_t of_batch = std::min(ceil_div(g.m, int64_t{kEmptySumRows}), kMostGridRows);
  p.row_ctas = static_cast<uint32_t>(of_batch);
  p.batch_ctas = static_cast<uint32_t>(std::min(batches, kMostGridRows / of_batch));
  grid.rows = p.row_ctas * p.batch_ctas;
  grid.threads = kEmptySumThreads;
  grid.cluster = 1;
  uint32_t index;
  CUkernel kernel;
  NVFP4_TRY(site_architecture(site, &index));
  NVFP4_TRY(load_quantizer(*site.driver, index, kQuantizer_empty_sum, &kernel));
  return launch(site, kernel, grid, &p, stream);
}

// Rows of no group keep their bytes.
bool needs_kernel(const nvfp4_gemm_desc& g, bool grouped) {
  return grouped || make_epilogue(g).kind != kEpiloguePlain;
}

}  // namespace

const char* empty_sum_way(const nvfp4_gemm_desc& desc, bool grouped) {
  return needs_kernel(desc, grouped) ? "empty_sum" : "fill";
}

nvfp4_status enqueue_empty_sum(const Site& site, const nvfp4_gemm_desc& desc,
                               const GroupParams* groups, CUstream stream, const char** how) {
  *how = empty_sum_way(desc, groups != nullptr);
  return needs_kernel(desc, groups != nullptr) ? compute(site, desc, groups, stream)
                                               : fill(site, desc, stream);
}

}  // namespace nvfp4
