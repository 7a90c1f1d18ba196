// SPDX-License-Identifier: MIT
// What `make test` takes of a long sweep on emulated GPUs. An emulated Hopper has fourteen tiles
// and decodes weights instruction by instruction: there a test of what all tiles share takes
// some of them, and as many tokens as meet a second tile and a rest. `make test-long` takes
// everything, as a GPU does.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "kernel/sm100/tile.h"
#include "kernel/sm80/tile.h"
#include "kernel/sm90/tile.h"
#include "test/gemm/gpu.h"

namespace gemm_test {

inline bool everything() { return std::getenv("NVFP4_LONG") != nullptr; }

inline bool emulated() { return support::devices(support::Driver::get()).at(0).emulated(); }

// One of the three tiles of at most four tokens, of the five of at most 32 and of the six beyond,
// others for each `turn`: of 9.0. All of 10.x and of 12.x.
inline std::vector<const char*> some_variants(size_t turn) {
  const std::vector<const char*> all = variants();
  if (all.size() <= 4 || everything() || !emulated()) return all;
  return {all[turn % 3], all[3 + turn % 5], all[8 + turn % 6]};
}
#define SOME_VARIANTS(turn) GENERATE(from_range(gemm_test::taken(gemm_test::some_variants(turn))))

// The tiles for tokens in 16 bits: in the emulator their type alternates by tile, and a test of the
// other parity of `turn` takes the other one.
inline std::vector<HalfVariant> some_half_variants(size_t turn) {
  const std::vector<HalfVariant> all = half_variants();
  if (everything() || !emulated()) return all;
  std::vector<HalfVariant> some;
  const size_t tiles = all.size() / 2;
  for (size_t i = 0; i < tiles; ++i) some.push_back(all[i + (i + turn) % 2 * tiles]);
  return some;
}

// Stages of the rings of a tile, the longer of weights and tokens where it has both.
template <typename Tile>
constexpr int64_t ring_stages() {
  if constexpr (requires { Tile::kSlotsPerStage; }) {
    return std::max<int64_t>(Tile::kStages, Tile::kSlots / Tile::kSlotsPerStage);
  }
  return Tile::kStages;
}

// The same by the variant's name.
inline int64_t ring_stages(const std::string& variant) {
  using namespace nvfp4;
#define VARIANT(family, label, tile, ...) \
  if (variant == #family "_" #label "x" + std::to_string(tile::kK)) return ring_stages<tile>();
#include "host/plan/variants.def"
  throw std::logic_error(variant + " is no variant");
}

// A K whose two K partitions go twice round the rings and a stage further, of which the last one
// has a quarter.
inline int64_t k_twice_round(const std::string& variant) {
  const int64_t stage = tile_of(variant).k;
  return 2 * (2 * ring_stages(variant) + 1) * stage - stage * 3 / 4;
}

// As many of m tokens as fill a tile and begin another.
inline int64_t few_tokens(const Gpu& gpu, const char* variant, int64_t m) {
  return gpu.small() && !everything() ? std::min(m, 2 * tile_tokens(variant) + 1) : m;
}

// Whether the variant takes the combination of that number, one of `parts`.
inline bool takes(const Gpu& gpu, const char* variant, size_t number, size_t parts) {
  return !gpu.small() || everything() || (number + variant_number(variant)) % parts == 0;
}

}  // namespace gemm_test
