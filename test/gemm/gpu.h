// SPDX-License-Identifier: MIT
// The device that the end-to-end tests run on: the first one of whatever driver the loader finds.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/sm100/tile.h"
#include "kernel/sm120/tile.h"
#include "kernel/sm80/tile.h"
#include "kernel/sm90/tile.h"
#include "tools/harness/compare.h"
#include "tools/harness/device_gemm.h"
#include "tools/harness/driver.h"
#include "tools/harness/plan_info.h"
#include "tools/harness/problem.h"
#include "tools/testing/catch.h"
#include "tools/testing/left_out.h"

namespace gemm_test {

// On a GPU the primary context stays from one test case to the next: making it takes 0.2 s, and
// there are 1,100 of them (H200, 2026-11-21).
inline std::unique_ptr<support::Context>& kept_context() {
  static std::unique_ptr<support::Context> kept;
  return kept;
}

struct Gpu {
  const support::Driver& driver = support::Driver::get();
  support::DeviceInfo info = support::devices(driver).at(0);
  support::Context context{driver};

  Gpu() {
    if (!info.emulated() && !kept_context()) {
      kept_context() = std::make_unique<support::Context>(driver);
    }
  }

  // An emulated Hopper decodes weights instruction by instruction, 5 to 25 ms per stage of 256 x
  // 128: the same cases there have fewer tiles and tests that repeat them leave some out.
  bool small() const { return info.emulated() && info.major == 9; }
  template <typename T>
  T sized(T full, T fewer_tiles) const {
    return small() ? fewer_tiles : full;
  }

  // One of three, by the family whose kernels it has for NVFP4 tokens.
  template <typename T>
  T by_family(T sm90, T sm100, T sm120) const {
    return info.major == 9 ? sm90 : info.major == 12 ? sm120 : sm100;
  }

  // "" if the library has kernels for NVFP4 tokens there.
  std::string reason_to_skip() const {
    const int capability = info.compute_capability();
    if (capability == 100 || capability == 103 || capability == 90 || capability / 10 == 12) {
      return "";
    }
    return info.name + " has no kernel for NVFP4 tokens";
  }
  // The same for tokens in 16 bits.
  std::string reason_to_skip_halves() const {
    return nvfp4_variant_name(info.compute_capability(), 0) ? "" : info.name + " has no kernel";
  }
};

// What the tables of tiles say of a variant.
struct TileOf {
  std::string name;
  std::string_view family;
  int64_t tokens, weights, k, ctas;
  int32_t a_type;
};
inline const std::vector<TileOf>& all_tiles() {
  using namespace nvfp4;
  static const std::vector<TileOf> tiles = {
#define VARIANT(family, label, tile, a_type, ...)     \
  {#family "_" #label "x" + std::to_string(tile::kK), \
   #family,                                           \
   tile::kTokens,                                     \
   tile::kWeights,                                    \
   tile::kK,                                          \
   tile::kCtas,                                       \
   NVFP4_TYPE_##a_type},
#include "host/plan/variants.def"
  };
  return tiles;
}
// The name is one as desc.variant has it, perhaps with a number of K partitions.
inline const TileOf& tile_of(const std::string& variant) {
  const std::string name = variant.substr(0, variant.find('/'));
  for (const TileOf& tile : all_tiles())
    if (name == tile.name) return tile;
  throw std::logic_error(variant + " is no variant");
}

// The variants of the device whose tokens have that type, of the family that stands first: on 9.0
// without those by mma.sync, which stand behind its own (test/gemm/sm80.cc).
inline std::vector<const TileOf*> tiles_of_type(int32_t a_type, bool with_later_families = false) {
  const int capability = support::devices(support::Driver::get()).at(0).compute_capability();
  const std::vector<std::string> served = support::variant_names(capability);
  std::vector<const TileOf*> tiles;
  for (const TileOf& tile : all_tiles()) {
    const bool is_served = std::find(served.begin(), served.end(), tile.name) != served.end();
    const bool is_first = with_later_families || capability != 90 || tile.family != "sm80";
    if (is_served && is_first && tile.a_type == a_type) tiles.push_back(&tile);
  }
  return tiles;
}

// Every variant for NVFP4 tokens by name, for tests of what depends on the tile. Where a test
// leaves the choice to the planner, small problems get the narrowest.
inline std::vector<const char*> variants() {
  std::vector<const char*> names;
  for (const TileOf* tile : tiles_of_type(NVFP4_TYPE_NONE)) names.push_back(tile->name.c_str());
  return names;
}

// The variants whose tile NVFP4_TILES names, as "64x4 f16_64x16"; all where it is not set. A mutant
// of the Hopper kernel is found by some tile, and then the others are not compiled (tools/mutate).
inline bool is_taken(const std::string& variant) {
  const char* const tiles = std::getenv("NVFP4_TILES");
  if (tiles == nullptr) return true;
  const size_t tile = variant.find('_') + 1;
  const std::string name = variant.substr(tile, variant.rfind('x') - tile);
  return (' ' + std::string(tiles) + ' ').find(' ' + name + ' ') != std::string::npos;
}
template <typename T>
std::vector<T> taken(std::vector<T> variants) {
  variants.erase(std::remove_if(variants.begin(), variants.end(),
                                [](const T& variant) { return !is_taken(variant); }),
                 variants.end());
  return variants;
}
#define EACH_VARIANT GENERATE(from_range(gemm_test::taken(gemm_test::variants())))

// Where a variant stands in that list.
inline size_t variant_number(const std::string& variant) {
  size_t i = 0;
  for (const char* other : variants()) {
    if (variant == other) return i;
    ++i;
  }
  throw std::logic_error(variant + " is none of this device");
}

inline int64_t tile_tokens(const std::string& variant) { return tile_of(variant).tokens; }
inline int64_t tile_weights(const std::string& variant) { return tile_of(variant).weights; }
inline int64_t tile_ctas(const std::string& variant) { return tile_of(variant).ctas; }

// A variant for 16-bit tokens, and their type.
struct HalfVariant {
  const char* name;
  int32_t type;
  operator std::string() const { return name; }
};
inline std::vector<HalfVariant> half_variants(bool with_later_families = false) {
  std::vector<HalfVariant> all;
  for (const int32_t type : {NVFP4_TYPE_F16, NVFP4_TYPE_BF16})
    for (const TileOf* tile : tiles_of_type(type, with_later_families))
      all.push_back({tile->name.c_str(), type});
  return all;
}

inline nvfp4_plan_info plan_of(const Gpu& gpu, const nvfp4_gemm_desc& desc) {
  return support::plan_info(desc, gpu.info.compute_capability(), gpu.info.sms);
}

// CTAs along K; 1 where nothing is multiplied.
inline int split_of(const Gpu& gpu, const nvfp4_gemm_desc& desc) {
  return std::max(plan_of(gpu, desc).k_partitions, 1);
}

// The same problem for one variant.
inline support::Problem forced(const char* variant, support::Problem problem) {
  problem.variant = variant;
  return problem;
}

// D has the reference's bits.
inline void require_bits(const support::Problem& problem, const std::vector<uint16_t>& d) {
  const support::BitVerdict verdict =
      support::compare_bits(problem.shape(), d, support::reference(problem));
  INFO(verdict.first_difference);
  REQUIRE(verdict.equal == verdict.total);
  REQUIRE(verdict.trusted());
}
inline void require_bits(const support::Problem& problem, const support::DeviceGemm& gemm) {
  require_bits(problem, gemm.d());
  REQUIRE(gemm.damage() == "");
}

// Runs the problem and requires the reference's bits, untouched inputs, guards and gaps.
inline void require_reference_bits(const Gpu& gpu, const support::Problem& problem,
                                   uint8_t poison = 0x7F) {
  INFO(to_string(problem.shape()) << ", alpha " << problem.alpha << ", variant "
                                  << (problem.variant ? problem.variant : "chosen"));
  REQUIRE(support::sums_are_exact(problem));
  require_bits(problem, support::run_on_device(gpu.driver, problem, poison));
}

// D of this device within the header's bound for its compute capability.
inline bool inside_bound(const Gpu& gpu, const support::Problem& problem,
                         const std::vector<uint16_t>& d) {
  const int capability = gpu.info.compute_capability();
  return support::compare_bound(problem, d, support::reference(problem), capability).passed();
}

}  // namespace gemm_test

// Without a driver the test fails: `make test` brings one. On a GPU that has no kernel it is
// skipped.
#define USE_GPU(gpu)        \
  const gemm_test::Gpu gpu; \
  if (!gpu.reason_to_skip().empty()) SKIP_TEST(gpu.reason_to_skip())

// The same for tests of tokens in 16 bits.
#define USE_GPU_FOR_HALVES(gpu) \
  const gemm_test::Gpu gpu;     \
  if (!gpu.reason_to_skip_halves().empty()) SKIP_TEST(gpu.reason_to_skip_halves())

// For tests of gated products, which no kernel for NVFP4 tokens computes on 12.x.
#define USE_GPU_FOR_GATED(gpu)  \
  USE_GPU(gpu);                 \
  if ((gpu).info.major == 12) { \
    support::leave_out();       \
    return;                     \
  }

// For tests of what only one family's kernels do: 9, 10 or 12 for compute capability 9.x, 10.x or
// 12.x. They are no tests of the other families'.
#define USE_GPU_OF_FAMILY(gpu, family)                              \
  static_assert((family) == 9 || (family) == 10 || (family) == 12); \
  USE_GPU(gpu);                                                     \
  if ((gpu).info.major != (family)) {                               \
    support::leave_out();                                           \
    return;                                                         \
  }

// What nearly every test that includes this names.
using gemm_test::forced;
using gemm_test::Gpu;
using gemm_test::require_bits;
using support::Data;
using support::make_problem;
using support::Problem;
using support::Shape;
