// SPDX-License-Identifier: MIT
// Which rows belong to groups, and which of them a product touches: lists of thousands of groups,
// and on 9.0 the pre-pass that decodes the tokens of groups alone.
#include "kernel/sm90/params.h"
#include "test/gemm/emulator.h"
#include "test/gemm/grouped.h"
#include "test/gemm/sizes.h"

using namespace gemm_test;

namespace {

// A step of the walk is 1,024 groups; a lane has several of them.
std::vector<int32_t> counts_among_thousands() {
  std::vector<int32_t> counts(2100, 0);
  for (const size_t group : {31, 32, 33, 1023, 1024, 1055, 1056, 2047, 2048, 2099}) {
    counts[group] = 1 + int32_t(group % 2);
  }
  return counts;
}
std::vector<int32_t> ends_of(const std::vector<int32_t>& counts) {
  std::vector<int32_t> ends;
  int32_t end = 0;
  for (const int32_t count : counts) ends.push_back(end += count);
  return ends;
}

GroupedTile narrow_tile(bool tokens_by_pre_pass) {
  if (is_mma_alone()) return mma_tiles()[0];
  if (is_blackwell()) return {"sm100_128x64x256", NVFP4_TYPE_NONE};
  if (tokens_by_pre_pass) return {"sm90_128x32x256", NVFP4_TYPE_NONE};
  return {"sm90_f16_64x32x256", NVFP4_TYPE_F16};
}

std::vector<GroupedTile> pre_pass_tiles() {
  std::vector<GroupedTile> all = {{"sm90_128x32x256", NVFP4_TYPE_NONE},
                                  {"sm90_128x128x256", NVFP4_TYPE_NONE},
                                  {"sm90_64x32x256", NVFP4_TYPE_NONE},
                                  {"sm90_128x64x256", NVFP4_TYPE_NONE}};
  if (!everything()) all.resize(2);
  return all;
}

// 330 rows of five groups, where rows_hint leaves 256 places: the rows of the second group are the
// last that begin there, those of the third have none, and a tile has some of both.
GroupedProblem more_than_the_workspace(const GroupedTile& tile, int64_t k) {
  constexpr int64_t kCapacity = 140;
  GroupedProblem problem({5 * kCapacity, 72, k, tile.a_type}, {70, 140, 0, 69, 51}, 97);
  problem.capacity = kCapacity;
  problem.rows_hint = 1;
  return problem;
}

// The 128 bytes of the workspace that a launch has changed.
int64_t changed_lines(const Gpu& gpu, DeviceGrouped& device) {
  const auto address = CUdeviceptr(device.gemm.workspace);
  std::vector<uint8_t> bytes(device.gemm.workspace_bytes, 0x55);
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(address, bytes.data(), bytes.size()), "cuMemcpyHtoD");
  run_grouped(device);
  gpu.driver.check(gpu.driver.cuMemcpyDtoH(bytes.data(), address, bytes.size()), "cuMemcpyDtoH");
  int64_t changed = 0;
  for (size_t at = 0; at < bytes.size(); at += nvfp4::kTokenRowBytes) {
    changed += std::any_of(bytes.begin() + int64_t(at),
                           bytes.begin() + int64_t(at + nvfp4::kTokenRowBytes),
                           [](uint8_t byte) { return byte != 0x55; });
  }
  return changed;
}

}  // namespace

TEST_CASE("groups: a row finds its group among thousands by ends and by counts", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const bool counted = GENERATE(false, true), pre_pass = GENERATE(false, true);
  if (pre_pass && (is_blackwell() || is_mma_alone())) return;
  const GroupedTile tile = narrow_tile(pre_pass);
  std::vector<int32_t> counts = counts_among_thousands();
  if (counted && is_blackwell()) counts.resize(70);  // a CTA for each group
  const int64_t rows = counted ? int64_t(counts.size()) * 2 : ends_of(counts).back();
  CAPTURE(counted);
  GroupedProblem problem({rows, 8, 64, tile.a_type}, counted ? counts : ends_of(counts), 91);
  if (counted) problem.capacity = 2;
  require_bits_of_singles(gpu, tile, problem);
}

TEST_CASE("groups: the pre-pass of 9.0 decodes the rows of groups alone", "[grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const GroupedTile tile = narrow_tile(true);
  constexpr int64_t kLines = 2 * 4;  // of a row: two k-blocks of four
  GroupedProblem ends({45, 70, 272, tile.a_type}, {0, 9, 9, 20}, 92);
  DeviceGrouped packed(gpu, ends);
  packed.take(gpu, tile.variant);
  CHECK(changed_lines(gpu, packed) == 20 * kLines);
  // COUNTS: no more than there are, however many there may be.
  GroupedProblem counts({3 * 45, 70, 272, tile.a_type}, {3, 0, 5}, 93);
  counts.capacity = 45;
  DeviceGrouped apart(gpu, counts);
  apart.take(gpu, tile.variant);
  CHECK(changed_lines(gpu, apart) == 8 * kLines);
  apart.set_rows({INT32_MIN, -1, 0});
  CHECK(changed_lines(gpu, apart) == 0);
}

TEST_CASE("groups: where MXFP4 tokens become bf16 on 9.0 only the rows of groups do", "[grouped]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const GroupedTile tile{"sm90_bf16_64x32x256", NVFP4_TYPE_NONE};
  constexpr int64_t kLines = 10;  // of a row of 640 elements
  // The rows of a group are more than a CTA's tile has.
  GroupedProblem ends({45, 70, 640, tile.a_type, NVFP4_OPERAND_FORMAT_MXFP4}, {0, 19, 19, 24}, 95);
  require_bits_of_singles(gpu, tile, ends);
  DeviceGrouped packed(gpu, ends);
  packed.take(gpu, tile.variant);
  CHECK(changed_lines(gpu, packed) == 24 * kLines);
  GroupedProblem counts({3 * 45, 70, 640, tile.a_type, NVFP4_OPERAND_FORMAT_E2M1_UE8M0}, {3, 0, 33},
                        96);
  counts.capacity = 45;
  require_bits_of_singles(gpu, tile, counts);
  DeviceGrouped apart(gpu, counts);
  apart.take(gpu, tile.variant);
  CHECK(changed_lines(gpu, apart) == 36 * kLines);
  apart.set_rows({INT32_MIN, -1, 0});
  CHECK(changed_lines(gpu, apart) == 0);
}

TEST_CASE("groups: NaN in rows of no group influences nothing", "[grouped]") {
  USE_GPU_FOR_HALVES(gpu);
  const GroupedTile tile = narrow_tile(true);
  GroupedProblem problem({60, 66, 208, tile.a_type}, {7, 0, 15}, 94);
  problem.capacity = 20;
  DeviceGrouped clean(gpu, problem);
  const std::vector<uint8_t> d = run_grouped(clean);
  for (int64_t row = 0; row < 60; ++row) {
    if (row < 7 || (row >= 40 && row < 55)) continue;
    for (int64_t block = 0; block < 208 / 16; ++block) {
      if (tile.a_type == NVFP4_TYPE_NONE) {
        problem.tokens.a.set_scale(0, row, block, 0x7F);
      } else {
        problem.tokens.a.set_half(0, row, block * 16, 0x7FFF);
      }
    }
  }
  DeviceGrouped stale(gpu, problem);
  CHECK(run_grouped(stale) == d);
}

TEST_CASE("groups: CTAs decode rows for which the workspace has no place", "[grouped][tiles]") {
  USE_GPU_OF_FAMILY(gpu, 9);
  const GroupedTile tile = GENERATE(from_range(taken(pre_pass_tiles())));
  const GroupedProblem problem = more_than_the_workspace(tile, gpu.sized<int64_t>(1344, 336));
  DeviceGrouped device(gpu, problem);
  device.take(gpu, tile.variant);
  const int64_t stages = (problem.sizes.k + 255) / 256;
  CHECK(device.gemm.workspace_bytes == uint64_t(256 * stages * 512));
  require_bits_of_singles(gpu, tile, problem);
  CHECK(changed_lines(gpu, device) == 256 * stages * 4);
}
