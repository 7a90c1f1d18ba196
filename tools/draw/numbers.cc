// SPDX-License-Identifier: MIT
// What tools/draw/draw.py draws, out of the kernel's own headers: a line "tile name value" each.
#include <cstdio>

#include "kernel/common/offset.h"
#include "kernel/sm100/tile.h"

namespace {

template <uint32_t kTokens>
void print() {
  using Tile = nvfp4::Sm100Tile<kTokens>;
  const auto line = [](const char* name, uint32_t value) {
    std::printf("%u %s %u\n", kTokens, name, value);
  };
  line("stages", Tile::kStages);
  line("steps", Tile::kSteps);
  line("weights_at", NVFP4_OFFSET_OF(typename Tile::Ring, weights));
  line("tokens_at", NVFP4_OFFSET_OF(typename Tile::Ring, tokens));
  line("weight_scales_at", NVFP4_OFFSET_OF(typename Tile::Ring, weight_scales));
  line("token_scales_at", NVFP4_OFFSET_OF(typename Tile::Ring, token_scales));
  line("barriers_at", Tile::kBarriersAt);
  line("bytes", Tile::kSharedBytes);
  line("accumulator_columns", Tile::kTokens);
  line("scale_columns_at", Tile::kScaleColumnsAt);
  line("weight_scale_columns", Tile::kWeightScaleColumns);
  line("token_scale_columns", Tile::kTokenScaleColumns);
  line("columns_used", Tile::kColumnsUsed);
  line("columns_allocated", Tile::kColumnsAllocated);
}

}  // namespace

int main() {
  print<64>();
  print<128>();
  print<256>();
  return 0;
}
