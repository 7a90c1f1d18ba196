// SPDX-License-Identifier: MIT
// See mma_block_scaled.h. The emulator's inner loop: it works on 32 columns at a time in plain
// loops of constant length, so that compilers vectorise them. It uses only integers and exact
// operations on doubles, so every clone (one for each instruction set, mma_vector.h) and every host
// gives the same bits.
#include "tools/emulator/arithmetic/mma_block_scaled.h"

#include <algorithm>
#include <cstring>

#include "tools/emulator/arithmetic/mma_blocks.h"
#include "tools/emulator/arithmetic/mma_exact.h"
#include "tools/emulator/arithmetic/mma_groups.h"

namespace emu {
namespace {

struct Way {
  ScaledSum model;
  ScaleType type;
  bool accumulate, exact;  // exact: sums that meet the conditions of mma_exact.h take its path
};

EMU_CLONES void run_columns(const Row* rows, uint32_t count, const Columns& columns, uint32_t used,
                            uint32_t* d, size_t stride, const Way& way) {
  alignas(64) uint32_t given[mma_width] = {}, result[mma_width];
  BlockSums blocks;
  Specials specials;
  const uint32_t* const c = specials.finite;
  for (uint32_t r = 0; r < count; ++r, d += stride) {
    if (rows[r].nan) {
      std::fill_n(d, used, nan_f32);
      continue;
    }
    if (way.accumulate) std::memcpy(given, d, used * sizeof *d);
    find_specials(columns, given, specials);
    sum_blocks(rows[r], columns, blocks);
    if (way.exact && nothing_is_cut(rows[r], columns, c) &&
        exact_sums(rows[r], columns, blocks, c, result)) {
    } else if (way.model == ScaledSum::groups) {
      sum_by_groups(rows[r], columns, blocks, c, way.type, result);
    } else {
      sum_by_blocks(rows[r], columns, blocks, c, way.model == ScaledSum::blocks_zero_raises,
                    result);
    }
    put_specials(specials, result);
    std::memcpy(d, result, used * sizeof *d);
  }
}

void run(const MmaOperands& o, uint32_t* d, size_t stride, const Way& way) {
  constexpr uint32_t batch = 128;
  Row rows[batch];
  Columns columns;
  for (uint32_t top = 0; top < o.rows; top += batch) {
    const uint32_t count = std::min(batch, o.rows - top);
    for (uint32_t r = 0; r < count; ++r) load_row(o, top + r, rows[r]);
    for (uint32_t first = 0; first < o.n; first += mma_width) {
      load_columns(o, first, columns);
      run_columns(rows, count, columns, std::min(uint32_t(mma_width), o.n - first),
                  d + top * stride + first, stride, way);
    }
  }
}

}  // namespace

void mma_block_scaled(const MmaOperands& o, uint32_t* d, size_t stride, bool accumulate,
                      ScaledSum model) {
  run(o, d, stride, {model, o.scale, accumulate, true});
}

void mma_block_scaled_cutting(const MmaOperands& o, uint32_t* d, size_t stride, bool accumulate,
                              ScaledSum model) {
  run(o, d, stride, {model, o.scale, accumulate, false});
}

}  // namespace emu
