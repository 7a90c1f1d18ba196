// SPDX-License-Identifier: MIT
// What tools/draw/draw.py draws, out of the kernel's own headers: a line "tile name value" each,
// for every tile that the kernel is compiled for (kernel/sm100/tiles.def).
#include <cstdio>

#include "kernel/common/offset.h"
#include "kernel/sm100/tile.h"

namespace {

template <typename Tile>
void print(const char* label) {
  const auto line = [&](const char* name, uint32_t value) {
    std::printf("%s %s %u\n", label, name, value);
  };
  line("ctas", Tile::kCtas);
  line("stages", Tile::kStages);
  line("steps", Tile::kSteps);
  line("weights_at", NVFP4_OFFSET_OF(typename Tile::Ring, weights));
  line("tokens_at", NVFP4_OFFSET_OF(typename Tile::Ring, tokens));
  line("code_bytes", Tile::kWeightBytes);  // of weights in a stage, before their scales
  line("token_scales_at", NVFP4_OFFSET_OF(typename Tile::Ring, token_scales));
  line("staging_at", Tile::kStagingAt);
  line("barriers_at", Tile::kBarriersAt);
  line("bytes", Tile::kSharedBytes);
  line("accumulators", Tile::kAccumulators);
  line("second_at", Tile::kSecondAt);
  line("scale_stages", Tile::kScaleStages);
  line("scale_columns_at", Tile::kScaleColumnsAt);
  line("weight_scale_columns", Tile::kWeightScaleColumns);
  line("token_scale_columns", Tile::kTokenScaleColumns);
  line("columns_used", Tile::kColumnsUsed);
  line("columns_allocated", Tile::kColumnsAllocated);
}

}  // namespace

int main() {
#define SM100_TILE(weights, tokens) \
  print<nvfp4::Sm100Tile_##weights##x##tokens>(#weights "x" #tokens);
#include "kernel/sm100/tiles.def"
  return 0;
}
