// SPDX-License-Identifier: MIT
// This repository's kernels as a debugger's build has them: nvcc -G, where every wrapper is a call
// and every value goes through local memory, and -lineinfo, where a report names the CUDA line.
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>

#include "kernel/sm100/tile.h"
#include "kernel/sm90/tile.h"
#include "tools/emulator/op/load.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;
using unit::OrderGuard;

namespace {

// Two weight tiles and two fillings of the ring, all with a rest.
constexpr uint32_t tokens = 70, weights = 200, depth = 320;

std::string file(const std::string& path) {
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

  Matrix(uint32_t r, unit::Random random) : rows(r) {
    constexpr uint8_t some[] = {0, 2, 10, 1};  // 0, 1, -1, 0.5
    for (uint32_t i = 0; i < rows * depth / 2; ++i)
      codes.push_back(uint8_t(some[random.below(4)] | some[random.below(4)] << 4));
    scales.resize((rows + 127) / 128 * (depth / 64) * 512);
    for (uint8_t& s : scales) s = random.below(2) ? 0x38 : 0x40;  // 1, 2
  }
  double at(uint32_t r, uint32_t k) const {
    const uint8_t code = codes[(r * depth + k) / 2] >> k % 2 * 4 & 15;
    const uint8_t scale = scales[(r / 128 * (depth / 64) + k / 64) * 512 + r % 32 * 16 +
                                 r % 128 / 32 * 4 + k % 64 / 16];
    return (code == 2 ? 1 : code == 10 ? -1 : code == 1 ? 0.5 : 0) * (scale == 0x38 ? 1 : 2);
  }
  nvfp4::TensorMap map(GlobalMemory& memory, uint32_t box_rows) const {
    alignas(64) TensorMap made;
    const uint64_t dims[] = {depth / 2, rows, 1}, strides[] = {depth / 2, depth / 2 * rows};
    const uint32_t box[] = {128, box_rows, 1}, steps[] = {1, 1, 1};
    REQUIRE(encode_tiled(
                {&made, 0, 3, unit::upload(memory, codes), dims, strides, box, steps, 0, 3, 0, 0},
                100, &made) == "");
    nvfp4::TensorMap out;
    std::memcpy(&out, &made, sizeof out);
    return out;
  }
};

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double value =
      exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

// The operands in the emulator's memory, and what a kernel makes of them.
struct Problem {
  GlobalMemory memory{1 << 26};
  Matrix a{tokens, {1}}, b{weights, {2}};
  size_t d_bytes;
  uint64_t d;
  nvfp4::GemmParams p{};

  Problem(uint32_t tile, size_t bytes) : d_bytes(bytes), d(memory.allocate(bytes, "D")) {
    p.weights = b.map(memory, 128);
    p.tokens = a.map(memory, tile);
    p.weight_scales = put(b.scales);
    p.token_scales = put(a.scales);
    p.token_codes = put(a.codes);
    p.token_row_bytes = depth / 2;
    p.d = reinterpret_cast<void*>(d);
    p.d_ld = weights;
    p.m = tokens, p.n = weights, p.k = depth;
    p.tiles_m = (tokens + tile - 1) / tile, p.tiles_n = (weights + 127) / 128;
    p.alpha = 2;
    p.batches = p.split = 1;
    p.m_padded = p.tiles_m * tile;
  }
  const uint8_t* put(const std::vector<uint8_t>& bytes) {
    return reinterpret_cast<const uint8_t*>(unit::upload(memory, bytes));
  }
  Counters run(const ptx::Module& module, const std::string& name, uint32_t grid, uint32_t block,
               uint32_t shared_bytes) {
    Launch launch;
    launch.module = &module;
    launch.function = module.entry(name);
    INFO(name);
    REQUIRE(launch.function);
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    launch.dynamic_shared_bytes = shared_bytes;
    launch.memory = &memory;
    launch.params.resize(sizeof p);
    std::memcpy(launch.params.data(), &p, sizeof p);
    return run_grid(launch);
  }
  size_t wrong() {  // elements of D
    size_t count = 0;
    const uint8_t* out = memory.at(d, d_bytes, 2, "test");
    for (uint32_t m = 0; m < tokens; ++m)
      for (uint32_t n = 0; n < weights; ++n) {
        double sum = 0;
        for (uint32_t k = 0; k < depth; ++k) sum += a.at(m, k) * b.at(n, k);
        uint16_t bits;
        std::memcpy(&bits, out + (m * weights + n) * 2, 2);
        count += std::abs(sum) > 512 || half(bits) != 2 * sum;
      }
    return count;
  }
};

template <uint32_t tile>
size_t wrong_after(const std::string& ptx, size_t d_bytes = tokens * weights * 2) {
  using Tile = nvfp4::Sm100Tile<tile>;
  Problem problem(tile, d_bytes);
  problem.run(*ops::load(ptx, 100), "nvfp4_gemm_sm100_128x" + std::to_string(tile),
              problem.p.tiles_m * problem.p.tiles_n, Tile::kThreads, Tile::kSharedBytes);
  return problem.wrong();
}

// The tile of the sm_90a kernel that multiplies by wgmma, behind the kernel that decodes the tokens.
template <uint32_t tile>
size_t wrong_after_wgmma(const std::string& ptx, Counters* counters) {
  using Tile = nvfp4::Sm90WideTile<128, tile>;
  constexpr uint32_t stages = (depth + Tile::kK - 1) / Tile::kK;
  constexpr uint32_t block = nvfp4::kTokenKernelThreads;
  Problem problem(tile, tokens * weights * 2);
  const uint32_t rows = stages * problem.p.m_padded;
  problem.p.token_slabs = reinterpret_cast<void*>(
      problem.memory.allocate(rows * Tile::kSteps * nvfp4::kTokenRowBytes, "slabs"));
  const auto module = ops::load(ptx, 90);
  problem.run(*module, "nvfp4_tokens_sm90", (rows * 8 + block - 1) / block, block, 0);
  *counters =
      problem.run(*module, "nvfp4_gemm_sm90_128x" + std::to_string(tile),
                  problem.p.tiles_m * problem.p.tiles_n, Tile::kThreads, Tile::kSharedBytes);
  return problem.wrong();
}

std::string kernel(const char* options, const char* name = "gemm_sm100") {
  return file(NVFP4_TEST_PTX_DIR "/" + std::string(name) + "." + options + ".ptx");
}

}  // namespace

TEST_CASE(
    "the kernel compiled with -G and with -lineinfo gives the right bits, without a finding") {
  const char* options = GENERATE("debug", "lineinfo");
  const Order order = GENERATE(Order::soonest, Order::latest, Order::random);
  const std::string ptx = kernel(options);
  CAPTURE(options, int(order));
  OrderGuard guard(order, 4);
  settings().formal = Reaction::stop;
  CHECK(wrong_after<64>(ptx) == 0);
  CHECK(wrong_after<128>(ptx) == 0);
  CHECK(wrong_after<256>(ptx) == 0);
}

// Fragments go through local memory behind the wgmma.fence and sums before the wgmma.wait_group:
// ptxas serialises the operations then (C7520).
TEST_CASE("the kernel of 9.0 compiled with -G gives the right bits, with formal findings alone") {
  const std::string ptx = kernel("debug", "gemm_sm90");
  const auto check = [&](Order order, auto run) {
    OrderGuard guard(order, 4);
    settings().formal = Reaction::report;
    Counters counters;
    CHECK(run(ptx, &counters) == 0);
    CHECK(counters.formal_hazards > 0);
  };
  check(Order::soonest, wrong_after_wgmma<64>);
  check(Order::latest, wrong_after_wgmma<128>);
  check(Order::random, wrong_after_wgmma<256>);
}

TEST_CASE("with -lineinfo a report names the line of CUDA beside that of PTX") {
  const std::string ptx = kernel("lineinfo");
  OrderGuard guard(Order::latest, 1);
  settings().formal = Reaction::stop;
  const std::string unwaited = unit::replaced(ptx, "tcgen05.wait::ld.sync.aligned;", "");
  const std::string early = unit::fault(FaultKind::ordering, [&] { wrong_after<64>(unwaited); });
  INFO(early);
  CHECK(std::regex_search(early, std::regex(R"(\bepilogue\.cuh:\d+)")));
  const std::string beyond =
      unit::fault(FaultKind::illegal_address, [&] { wrong_after<64>(ptx, tokens * weights); });
  INFO(beyond);
  CHECK(unit::says(beyond, "behind the end of D ["));
  CHECK(std::regex_search(beyond, std::regex(R"(\bepilogue\.cuh:\d+)")));
}
