// SPDX-License-Identifier: MIT
// The mma.sync kernels of kernel/sm80 launched without the library, from either image.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>

#include "kernel/sm80/params.h"
#include "kernel/sm80/tile.h"
#include "test/gemm/gpu.h"
#include "test/gemm/sizes.h"
#include "tools/harness/module.h"

namespace gemm_test {

// compute_80 runs on every GPU from 8.0 on and adds K partitions by a kernel of its own; the image
// for 9.0 has them in a cluster.
struct Sm80Image {
  const char* path;
  bool clusters;
};
inline std::vector<Sm80Image> sm80_images() {
  const int major = support::devices(support::Driver::get()).at(0).major;
  std::vector<Sm80Image> all;
  const auto add = [&](const char* path, bool clusters) {
    if (std::ifstream(path)) all.push_back({path, clusters});
  };
  if (major >= 8) add(NVFP4_TEST_KERNEL_DIR "/gemm_sm80.ptx", false);
  if (major == 9) add(NVFP4_TEST_KERNEL_DIR "/gemm_sm80_sm90.ptx", true);
  return all;
}
// Those of which a test runs each: on an emulated 9.0 the one with clusters, since the other runs
// on an emulated A100.
inline std::vector<Sm80Image> tried_sm80_images() {
  const std::vector<Sm80Image> all = sm80_images();
  if (all.size() < 2 || everything() || !emulated()) return all;
  return {all.back()};
}

struct Sm80Size {
  uint32_t tokens, warps;
  std::string name() const { return "64x" + std::to_string(tokens) + "w" + std::to_string(warps); }
};
inline uint32_t sm80_shared_bytes(const Sm80Size& size, uint32_t m, uint32_t cluster) {
#define SM80_TILE(t, w)                        \
  if (size.tokens == (t) && size.warps == (w)) \
    return nvfp4::Sm80Tile<t, w>::shared_bytes(m, cluster);
#include "kernel/sm80/tiles.def"
  throw std::logic_error(size.name() + " is no tile");
}

// GPUs of 8.6, 8.9 and 12.x have 99 KB of shared memory: too little for eight warps.
inline std::vector<Sm80Size> sm80_tiles() {
  const support::DeviceInfo device = support::devices(support::Driver::get()).at(0);
  const bool small = device.major == 12 || (device.major == 8 && device.minor != 0);
  std::vector<Sm80Size> all;
#define SM80_TILE(tokens, warps) \
  if (!small || (warps) == 4) all.push_back({tokens, warps});
#include "kernel/sm80/tiles.def"
  return all;
}

inline nvfp4::Sm80Params sm80_params(const nvfp4_gemm_desc& g, uint32_t tile, uint32_t split) {
  const auto address = [](const void* at) { return static_cast<const uint8_t*>(at); };
  nvfp4::Sm80Params p{};
  p.weights = address(g.b), p.weight_scales = address(g.b_scales), p.tokens = address(g.a);
  p.d = g.d;
  p.weight_row_bytes = g.b_ld / 2, p.weight_batch_bytes = g.b_batch_stride / 2;
  p.weight_scales_batch_bytes = g.b_scales_batch_stride_bytes;
  p.token_row_bytes = g.a_ld * 2, p.token_batch_bytes = g.a_batch_stride * 2;
  p.d_batch_stride = g.d_batch_stride;
  p.m = uint32_t(g.m), p.n = uint32_t(g.n), p.k = uint32_t(g.k);
  p.tiles_m = (p.m + tile - 1) / tile;
  p.tiles_n = (p.n + nvfp4::kSm80Weights - 1) / nvfp4::kSm80Weights;
  p.batches = uint32_t(g.l);
  p.split = split;
  p.alpha = g.alpha;
  p.weights_are_static = g.pdl == NVFP4_PDL_ON_STATIC_WEIGHTS;
  p.scales_are_linear = g.b_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR;
  nvfp4::EpilogueParams& e = p.epilogue;
  e.alpha_device = g.alpha_device, e.beta_device = g.beta_device;
  e.a_tensor_scale = g.a_tensor_scale, e.b_tensor_scale = g.b_tensor_scale;
  e.c = g.c, e.bias = g.bias, e.beta = g.beta;
  e.c_batch_stride = g.c_batch_stride;
  const bool by_row = g.cd_order == NVFP4_CD_ORDER_ROW_MAJOR;
  e.c_row = by_row ? g.c_ld : 1, e.c_column = by_row ? 1 : g.c_ld;
  e.d_row = by_row ? g.d_ld : 1, e.d_column = by_row ? 1 : g.d_ld;
  const int64_t columns = g.b_tensor_scale_columns;
  e.columns_a_factor = uint32_t(columns == 0 ? g.n : std::min(columns, g.n));
  e.c_type = uint32_t(g.c_type), e.d_type = uint32_t(g.d_type);
  e.bias_type = uint32_t(g.bias_type), e.activation = uint32_t(g.activation);
  e.d_amax = g.d_amax, e.d_row_amax = g.d_row_amax;
  const bool has_amax = g.d_amax != nullptr || g.d_row_amax != nullptr;
  if (has_amax) e.activation |= nvfp4::kTakesAmax;
  e.kind = nvfp4::kEpilogueGeneral;
  if (by_row && !has_amax && g.d_type < NVFP4_TYPE_F32 && g.c_type == NVFP4_TYPE_NONE &&
      g.bias_type == NVFP4_TYPE_NONE && g.activation == NVFP4_ACTIVATION_NONE &&
      g.alpha_device == nullptr && g.a_tensor_scale == nullptr && g.b_tensor_scale == nullptr) {
    e.kind = g.d_type == NVFP4_TYPE_F16 ? nvfp4::kEpiloguePlain : nvfp4::kEpilogueBf16;
  }
  e.a_scale_per_row = uint16_t(g.a_tensor_scale_rows);
  e.bias_per_row = g.bias_axis == NVFP4_BIAS_AXIS_ROW;
  e.d_scales = static_cast<uint8_t*>(g.d_scales), e.d_tensor_scale = g.d_tensor_scale;
  e.d_scales_batch_bytes = g.d_scales_batch_stride_bytes;
  const int64_t block = support::scale_block_of_d(g.d_type);
  e.d_scales_per_row = uint32_t(block == 0 ? 0 : g.n / block);
  e.d_scales_are_tiles = g.d_scale_layout == NVFP4_SCALE_LAYOUT_128X4;
  e.d_scale_floors = g.d_scale_rule == NVFP4_SCALE_RULE_FLOOR;
  return p;
}

class Sm80Kernels {
 public:
  Sm80Kernels(const Gpu& gpu, const Sm80Image& image)
      : gpu_(gpu), clusters_(image.clusters), module_(gpu.driver, image.path) {}

  // Waits for the device. Returns what is wrong with the workspace, "" if nothing.
  std::string run(const nvfp4_gemm_desc& g, const Sm80Size& size, uint32_t split) const {
    const nvfp4::Sm80Params p = sm80_params(g, size.tokens, split);
    const size_t tiles = size_t(p.tiles_m) * p.tiles_n * p.batches;
    const bool partitions = split > 1 && !clusters_;
    const support::DeviceBuffer workspace(
        gpu_.driver, partitions ? tiles * split * size.tokens * nvfp4::kSm80Weights * 4 : 0);
    enqueue(g, size, split, workspace.pointer());
    gpu_.driver.check(gpu_.driver.cuCtxSynchronize(), "cuCtxSynchronize");
    return workspace.guards_intact() ? "" : "the guard of the workspace was written";
  }

  void enqueue(const nvfp4_gemm_desc& g, const Sm80Size& size, uint32_t split,
               void* workspace) const {
    nvfp4::Sm80Params p = sm80_params(g, size.tokens, split);
    p.partitions = static_cast<float*>(workspace);
    const uint32_t tiles = p.tiles_m * p.tiles_n * p.batches;
    const std::string type = g.a_type == NVFP4_TYPE_F16 ? "f16_" : "bf16_";
    const uint32_t cluster = clusters_ ? split : 1;
    launch("nvfp4_gemm_sm80_" + type + size.name(), tiles * split, 32 * size.warps, cluster,
           sm80_shared_bytes(size, p.m, cluster), clusters_ && g.pdl != NVFP4_PDL_OFF, p);
    if (split > 1 && !clusters_) {
      launch("nvfp4_add_sm80_64x" + std::to_string(size.tokens), tiles, nvfp4::kSm80AddThreads, 1,
             0, false, p);
    }
  }

 private:
  void launch(const std::string& entry, uint32_t grid, uint32_t block, uint32_t cluster,
              uint32_t shared, bool programmatic, nvfp4::Sm80Params& params) const {
    const support::Driver& driver = gpu_.driver;
    const CUfunction kernel = module_.function(entry.c_str());
    driver.check(driver.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           int(shared)),
                 "cuFuncSetAttribute");
    CUlaunchAttribute attributes[2]{};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim.x = cluster;
    attributes[0].value.clusterDim.y = attributes[0].value.clusterDim.z = 1;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = block, config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = shared;
    // GPUs before 9.0 know neither.
    config.attrs = cluster > 1 ? attributes : attributes + 1;
    config.numAttrs = (cluster > 1) + programmatic;
    void* arguments[] = {&params};
    driver.check(driver.cuLaunchKernelEx(&config, kernel, arguments, nullptr), "cuLaunchKernelEx");
  }

  const Gpu& gpu_;
  bool clusters_;
  support::Module module_;
};

}  // namespace gemm_test

// Skipped where no image is for the device, or a source tarball's prebuilt kernels lack them.
#define USE_SM80_GPU(gpu)                                                      \
  const gemm_test::Gpu gpu;                                                    \
  if (gemm_test::sm80_images().empty()) {                                      \
    SKIP_TEST((gpu).info.name + " has no image of kernel/sm80 in this build"); \
  }
#define EACH_SM80_TILE GENERATE(from_range(gemm_test::sm80_tiles()))
#define EACH_SM80_IMAGE GENERATE(from_range(gemm_test::tried_sm80_images()))
