// SPDX-License-Identifier: MIT
// This repository's kernels launched without the library, from PTX that a test compiled with
// options of its own, on operands of one small problem whose sums are exact.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/common/divisor.h"
#include "kernel/sm100/params.h"
#include "kernel/sm100/tile.h"
#include "kernel/sm90/tile.h"
#include "test/gemm/gpu.h"
#include "tools/harness/module.h"

namespace gemm_test {

// Two weight tiles and two k-blocks of the ring, all with a rest.
constexpr uint32_t tokens = 70, weights = 200, depth = 320;

inline std::string file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  INFO(path);
  REQUIRE(!text.str().empty());
  return text.str();
}

// Rows of E2M1 codes, two to a byte, and their scales in tiles of 128 rows and 64 columns.
struct Matrix {
  uint32_t rows;
  std::vector<uint8_t> codes, scales;

  Matrix(uint32_t r, uint32_t seed) : rows(r) {
    std::mt19937 random(seed);
    constexpr uint8_t some[] = {0, 2, 10, 1};  // 0, 1, -1, 0.5
    for (uint32_t i = 0; i < rows * depth / 2; ++i)
      codes.push_back(uint8_t(some[random() % 4] | some[random() % 4] << 4));
    scales.resize((rows + 127) / 128 * (depth / 64) * 512);
    for (uint8_t& s : scales) s = random() % 2 ? 0x38 : 0x40;  // 1, 2
  }
  double at(uint32_t r, uint32_t k) const {
    const uint8_t code = codes[(r * depth + k) / 2] >> k % 2 * 4 & 15;
    const uint8_t scale = scales[(r / 128 * (depth / 64) + k / 64) * 512 + r % 32 * 16 +
                                 r % 128 / 32 * 4 + k % 64 / 16];
    return (code == 2 ? 1 : code == 10 ? -1 : code == 1 ? 0.5 : 0) * (scale == 0x38 ? 1 : 2);
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t k = 0; k < depth; ++k) all.push_back(at(r, k));
    return all;
  }
};

inline double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double value =
      exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

// A context of its own, so that a fault ends with it, and device memory without guards, so that an
// access beyond its end is one.
struct Space {
  const support::Driver& driver;
  CUcontext context = nullptr;

  explicit Space(const support::Driver& d) : driver(d) {
    REQUIRE(driver.cuCtxCreate != nullptr);  // CUDA 12.5
    driver.check(driver.cuCtxCreate(&context, nullptr, 0, 0), "cuCtxCreate");
  }
  ~Space() { driver.cuCtxDestroy(context); }
  Space(const Space&) = delete;
  Space& operator=(const Space&) = delete;

  CUdeviceptr memory(size_t bytes) const {
    CUdeviceptr at = 0;
    driver.check(driver.cuMemAlloc(&at, bytes), "cuMemAlloc");
    return at;
  }
  const uint8_t* put(const std::vector<uint8_t>& bytes) const {
    const CUdeviceptr at = memory(bytes.size());
    driver.check(driver.cuMemcpyHtoD(at, bytes.data(), bytes.size()), "cuMemcpyHtoD");
    return reinterpret_cast<const uint8_t*>(at);
  }
  nvfp4::TensorMap map(const Matrix& matrix, uint32_t box_rows) const {
    CUtensorMap made;
    const cuuint64_t dims[] = {depth / 2, matrix.rows, 1};
    const cuuint64_t strides[] = {depth / 2, depth / 2 * matrix.rows};
    const cuuint32_t box[] = {128, box_rows, 1}, steps[] = {1, 1, 1};
    driver.check(
        driver.cuTensorMapEncodeTiled(
            &made, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<uint8_t*>(put(matrix.codes)), dims,
            strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
            CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
    nvfp4::TensorMap out;
    static_assert(sizeof out == sizeof made);
    std::memcpy(&out, &made, sizeof out);
    return out;
  }
};

// The operands on the device, and what a kernel makes of them.
struct Problem {
  Space space;
  Matrix a{tokens, 1}, b{weights, 2};
  nvfp4::Sm90Params p{};

  Problem(const support::Driver& driver, uint32_t tile, size_t d_bytes = tokens * weights * 2)
      : space(driver) {
    p.weights = space.map(b, 128);
    p.tokens = space.map(a, std::min(tile, (tokens + 15) / 16 * 16));
    p.weight_scales = space.put(b.scales);
    p.token_scales = space.put(a.scales);
    p.token_codes = space.put(a.codes);
    p.token_row_bytes = depth / 2;
    p.d = reinterpret_cast<void*>(space.memory(d_bytes));
    p.d_ld = weights;
    p.m = tokens, p.n = weights, p.k = depth;
    p.tiles_m = (tokens + tile - 1) / tile, p.tiles_n = (weights + 127) / 128;
    p.alpha = 2;
    p.batches = p.split = 1;
    p.decoded_rows = p.m;
    p.weights_are_static = 1;
    p.epilogue.d_type = nvfp4::kTypeF16;
    p.epilogue.d_row = weights, p.epilogue.d_column = 1;
    p.epilogue.columns_a_factor = weights;
  }
  // Both families' parameters begin alike.
  nvfp4::Sm100Params for_sm100() const {
    nvfp4::Sm100Params of{};
    std::memcpy(static_cast<void*>(&of), &p, offsetof(nvfp4::Sm100Params, epilogue));
    of.epilogue = p.epilogue;
    of.by_tiles_m = nvfp4::divisor_of(p.tiles_m);
    of.by_tiles_n = nvfp4::divisor_of(p.tiles_n);
    of.token_policy = nvfp4::kTokensEvictedLast;
    of.weight_unit_bytes = nvfp4::kScaleTileBytes;
    return of;
  }
  template <typename Params>
  void run(const support::Module& module, const std::string& name, uint32_t grid, uint32_t block,
           uint32_t shared_bytes, Params params) {
    INFO(name);
    void* arguments[] = {&params};
    module.launch(name.c_str(), grid, block, shared_bytes, arguments);
  }
  size_t wrong() {  // elements of D
    size_t count = 0;
    std::vector<uint16_t> out(tokens * weights);
    const support::Driver& driver = space.driver;
    driver.check(
        driver.cuMemcpyDtoH(out.data(), reinterpret_cast<CUdeviceptr>(p.d), out.size() * 2),
        "cuMemcpyDtoH");
    const std::vector<double> rows = a.values(), columns = b.values();
    for (uint32_t m = 0; m < tokens; ++m)
      for (uint32_t n = 0; n < weights; ++n) {
        const double *row = &rows[m * depth], *column = &columns[n * depth];
        double sum = 0;
        for (uint32_t k = 0; k < depth; ++k) sum += row[k] * column[k];
        count += std::abs(sum) > 512 || half(out[m * weights + n]) != 2 * sum;
      }
    return count;
  }
};

template <uint32_t tile>
void launch_sm100(Problem& problem, const support::Module& module) {
  using Tile = nvfp4::Sm100Tile<tile>;
  problem.run(module, "nvfp4_gemm_sm100_128x" + std::to_string(tile) + "_plain",
              problem.p.tiles_m * problem.p.tiles_n, Tile::kThreads, Tile::kSharedBytes,
              problem.for_sm100());
}

// The sm_90a tile that multiplies by wgmma, after the kernel that decodes the tokens.
template <uint32_t tile>
void launch_wgmma(Problem& problem, const support::Module& module) {
  using Tile = nvfp4::Sm90WideTile<128, tile>;
  constexpr uint32_t stages = (depth + Tile::kK - 1) / Tile::kK;
  constexpr uint32_t block = nvfp4::kTokenKernelThreads;
  const uint32_t rows = stages * ((tokens + 15) / 16 * 16);
  problem.p.token_sub_tiles =
      reinterpret_cast<void*>(problem.space.memory(rows * Tile::kSteps * nvfp4::kTokenRowBytes));
  problem.run(module, "nvfp4_tokens_sm90", (rows * 8 + block - 1) / block, block, 0, problem.p);
  problem.run(module, "nvfp4_gemm_sm90_128x" + std::to_string(tile),
              problem.p.tiles_m * problem.p.tiles_n, Tile::kThreads, Tile::kSharedBytes, problem.p);
}

template <uint32_t tile>
size_t wrong_after(const support::Driver& driver, const std::string& ptx) {
  Problem problem(driver, tile);
  launch_sm100<tile>(problem, support::Module::from_text(driver, ptx));
  return problem.wrong();
}

template <uint32_t tile>
size_t wrong_after_wgmma(const support::Driver& driver, const std::string& ptx) {
  Problem problem(driver, tile);
  launch_wgmma<tile>(problem, support::Module::from_text(driver, ptx));
  return problem.wrong();
}

inline std::string kernel(const char* options, const char* name = "gemm_sm100") {
  return file(NVFP4_TEST_PTX_DIR "/" + std::string(name) + "." + options + ".ptx");
}

// The driver that came with CUDA 12.9 takes PTX 8.8, that of 13.y takes 9.y.
inline bool takes(const support::Driver& driver, const std::string& ptx) {
  int version = 0, major = 0, minor = 0;
  driver.check(driver.cuDriverGetVersion(&version), "cuDriverGetVersion");
  const size_t at = ptx.find(".version ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(ptx.c_str() + at, ".version %d.%d", &major, &minor) == 2);
  return version >= (major == 8 ? 12010 + 10 * minor : 1000 * (major + 4) + 10 * minor);
}

}  // namespace gemm_test

// What this machine's nvcc made of a kernel; the library's own images may serve older drivers.
#define USE_KERNEL(gpu, ptx, ...)                         \
  const std::string ptx = gemm_test::kernel(__VA_ARGS__); \
  if (!gemm_test::takes((gpu).driver, ptx)) SKIP_TEST("the driver is older than nvcc's PTX")
