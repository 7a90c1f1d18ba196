// SPDX-License-Identifier: MIT
// The kernel's descriptors and scale columns against two independent implementations: CUTLASS's
// values, and the emulator's decoder over random fields. Also the kernel's divisions.
#include <random>

#include "kernel/common/divisor.h"
#include "kernel/sm100/descriptor.h"
#include "kernel/sm100/tile.h"
#include "test/gemm/emulator.h"
#include "test/gemm/gpu.h"
#include "test/host/csv.h"

using host_test::golden;

namespace {

uint64_t number(const std::string& text) { return std::stoull(text, nullptr, 0); }

// CUTLASS writes 1 into the leading-offset field where the hardware ignores it (swizzled K-major
// operands and 16-byte wide copies); we write 0.
constexpr uint64_t ignored_lead = uint64_t{1} << 16;

std::string tile_name(uint32_t tokens) { return "128x" + std::to_string(tokens) + "x256_cg1"; }

// The instruction descriptor of the golden table for M = 128 and scale ids 0.
uint64_t golden_instruction(uint32_t n) {
  for (const auto& row : golden("idesc_nvfp4", 160))
    if (row[0] == "128" && number(row[1]) == n && row[2] == "0" && row[3] == "0")
      return number(row[4]);
  return 0;
}

// Distance of a step's scale columns from those of the first step, per CUTLASS.
std::vector<uint64_t> golden_columns(const std::string& tile, const std::string& what) {
  std::vector<uint64_t> columns;
  for (const auto& row : golden("tmem_sf_layout", 256))
    if (row[0] == tile && row[1] == what && (row[3] == "-" || row[3] == "0"))
      columns.push_back(number(row[4]));
  return columns;
}

}  // namespace

TEST_CASE("the kernel's operand descriptors are CUTLASS's") {
  size_t compared = 0;
  for (const auto& row : golden("smem_desc_ab_cutlass", 320)) {
    // Only stage 0 of single-CTA tiles: each kernel chooses where its other stages start.
    if (row[0].find("_cg1") == std::string::npos || row[2] != "0") continue;
    const uint32_t address = uint32_t(number(row[1]) + 32 * number(row[3]));
    CAPTURE(row[0], row[1], row[3]);
    CHECK((nvfp4::operand_descriptor(address) | ignored_lead) == number(row[4]));
    CHECK((nvfp4::operand_descriptor(address) | ignored_lead) == number(row[5]));
    ++compared;
  }
  CHECK(compared >= 16);
}

TEST_CASE("the kernel's scale descriptors are CUTLASS's where a step is 512 bytes") {
  const std::string tile = tile_name(128);
  size_t compared = 0;
  for (const auto& row : golden("tmem_sf_layout", 256)) {
    if (row[0] != tile || row[1].find("_UTCCP") == std::string::npos || row[2] != "0") continue;
    const uint32_t step = uint32_t(number(row[3]));
    CAPTURE(row[1], step);
    CHECK((nvfp4::scale_descriptor(step * nvfp4::kScaleTileBytes) | ignored_lead) ==
          number(row[5]));
    ++compared;
  }
  CHECK(compared == 8);
}

TEST_CASE("the kernel's instruction descriptors are CUTLASS's") {
  CHECK(nvfp4::instruction_descriptor<128>(64) == golden_instruction(64));
  CHECK(nvfp4::instruction_descriptor<128>(128) == golden_instruction(128));
  CHECK(nvfp4::instruction_descriptor<128>(256) == golden_instruction(256));
}

TEST_CASE("a step's scales take as many columns as CUTLASS gives them") {
  const auto columns = [](uint32_t tokens, const char* what) {
    const std::vector<uint64_t> at = golden_columns(tile_name(tokens), what);
    REQUIRE(at.size() >= 4);
    return at[1] - at[0];
  };
  using Narrow = nvfp4::Sm100Tile<64>;
  using Square = nvfp4::Sm100Tile<128>;
  using Wide = nvfp4::Sm100Tile_256x256;  // each CTA of the pair has the scales of all tokens
  CHECK(columns(64, "SFA_MMA") == Narrow::kWeightScaleColumns);
  CHECK(columns(64, "SFB_MMA") == Narrow::kTokenScaleColumns);
  CHECK(columns(128, "SFA_MMA") == Square::kWeightScaleColumns);
  CHECK(columns(128, "SFB_MMA") == Square::kTokenScaleColumns);
  CHECK(columns(256, "SFA_MMA") == Wide::kWeightScaleColumns);
  CHECK(columns(256, "SFB_MMA") == Wide::kTokenScaleColumns);
}

TEST_CASE("the emulator decodes what the kernel encodes over random addresses") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const auto read_smem = reinterpret_cast<decltype(&nvfp4emu_read_smem_descriptor)>(
      gpu.driver.extension("nvfp4emu_read_smem_descriptor"));
  const auto read_instruction = reinterpret_cast<decltype(&nvfp4emu_read_instruction_descriptor)>(
      gpu.driver.extension("nvfp4emu_read_instruction_descriptor"));
  REQUIRE(read_smem);
  REQUIRE(read_instruction);
  char text[512] = "";
  support::Random random(11);
  for (int i = 0; i < 10000; ++i) {
    // Up to the end of a 228 KB window, with cluster rank bits on top that must fall off.
    const uint32_t tile = 0x400 + 1024 * random.below(180);
    const uint32_t step = 32 * random.below(4), rank = random.below(16) << 24;
    nvfp4emu_smem_descriptor operand{}, scales{};
    const int status = read_smem(nvfp4::operand_descriptor(rank | (tile + step)), 128, 2, &operand,
                                 text, sizeof text);
    INFO(text);
    REQUIRE(status == 0);
    REQUIRE(operand.address == tile + step);
    REQUIRE(operand.stride == 1024);
    REQUIRE(operand.swizzle == 128);
    REQUIRE(read_smem(nvfp4::scale_descriptor(rank | tile), 32, 1, &scales, text, sizeof text) ==
            0);
    REQUIRE(scales.address == tile);
    REQUIRE(scales.stride == 128);
    REQUIRE(scales.swizzle == 0);
  }
  nvfp4emu_instruction_descriptor shape{};
  REQUIRE(read_instruction(nvfp4::instruction_descriptor<128>(128), "mxf4nvf4", 16, 0, &shape, text,
                           sizeof text) == 0);
  CHECK(shape.m == 128);
  CHECK(shape.n == 128);
  CHECK(std::string(shape.scale) == "ue4m3");
  CHECK_FALSE(shape.negate_a);
  CHECK_FALSE(shape.negate_b);
}

TEST_CASE("dividing by multiplication finds the quotient of every index below 2^31", "[host]") {
  constexpr uint32_t kMost = 0x7FFFFFFF;
  std::mt19937 random(17);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t d = std::max(1u, uint32_t(random() & kMost) >> random() % 31);
    const nvfp4::Divisor by = nvfp4::divisor_of(d);
    // Where a quotient that is too large or too small shows: at both ends of a step, and at the
    // last.
    const uint32_t last = kMost / d * d, any = uint32_t(random() & kMost) / d * d;
    for (const uint32_t n : {last, last - 1, kMost, any, any + d - 1, any == 0 ? 0 : any - 1}) {
      if (n > kMost) continue;
      if (nvfp4::divide(n, by) != n / d) FAIL(n << " / " << d);
    }
  }
}
