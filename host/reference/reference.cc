// SPDX-License-Identifier: MIT
// The reference: exact integers, then the header's NUMERICS. Operands of a wide range are in
// reference_wide.cc. It shares no layout code with the kernel, the converters or the emulator: this
// file indexes nibbles and scales from the header's prose.
//
//   element   = integer * 2^-1    |integer| <= 12
//   scale     = integer * 2^-9    integer <= 448 * 512
//   16 of K   : (sum of 16 products of element integers) * scale * scale, unit 2^-20, below 2^47
//   K <= 2^20 : 2^16 such blocks stay below 2^63
//
// Allocates nothing. Works on 32 x 32 tiles of D and panels of 256 along K, decoded once per tile,
// so that the inner loop is a dot product of 16-bit integers.
#include "host/reference/reference.h"

#include <cstring>

#include "host/base/formats.h"
#include "host/problem/fields.h"
#include "host/reference/pack/packed_weights.h"
#include "host/reference/reference_epilogue.h"
#include "host/reference/reference_wide.h"

namespace nvfp4 {

namespace {

constexpr int kRows = 32;    // rows of A, of B and of D in a tile
constexpr int kPanel = 256;  // elements of K that are decoded at a time
constexpr int kBlock = 16;   // elements per scale
constexpr int kPanelBlocks = kPanel / kBlock;
constexpr int kUnit = -20;  // unit of the exact sums: 2^-1 * 2^-1 * 2^-9 * 2^-9

int64_t at_least_one_per(int64_t size, int64_t per) { return (size + per - 1) / per; }

// One batch of A or B.
struct Matrix {
  const uint8_t* elements;
  const uint8_t* scales;
  int64_t rows, k, ld;
  int32_t layout;
  const PackedWeights* packed;  // elements and scales, if it is not NULL

  // `count` elements of a row, from an even one on; `gathered` is for those of packed weights.
  const uint8_t* bytes(int64_t row, int64_t first, int count, uint8_t* gathered) const {
    if (packed == nullptr) return elements + (row * ld + first) / 2;
    for (int i = 0; i < count; i += 2) gathered[i / 2] = packed->byte(row, first + i);
    return gathered;
  }
  // Header, "Where the scale of (row, k) is stored".
  uint8_t scale(int64_t row, int64_t ks) const {
    if (packed != nullptr) return packed->scale(row, ks);
    if (layout == NVFP4_SCALE_LAYOUT_LINEAR) return scales[row * (k / 16) + ks];
    const int64_t tile = (row / 128) * at_least_one_per(k, 64) + ks / 4;
    return scales[tile * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + ks % 4];
  }
};

// 8 columns of D, as the compiler's vector type, which every machine has.
constexpr int kLanes = 8;
typedef int16_t Lanes __attribute__((vector_size(2 * kLanes)));

// Scales of up to 32 rows of an operand for one panel of K.
struct PanelScales {
  int32_t of[kPanelBlocks][kRows];  // times 2^9
  bool nan[kRows];                  // a NaN scale anywhere in the row, over all panels
};

// Elements of the panel, as twice their value: rows of A, and columns along K of B.
struct PanelA {
  int16_t element[kRows][kPanel];
  PanelScales scales;
};
struct PanelB {
  Lanes element[kPanel][kRows / kLanes];
  PanelScales scales;
};

struct BytePair {
  int16_t low, high;
};
struct ByteTable {
  BytePair of[256];
};

// Two elements per byte, the one with the lower k in the low nibble.
void fill_byte_table(ByteTable* table) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table->of[byte] = {static_cast<int16_t>(e2m1_doubled(byte & 0xF)),
                       static_cast<int16_t>(e2m1_doubled(byte >> 4))};
  }
}

void decode_scales(const Matrix& x, int64_t row, int64_t k_first, int blocks, int slot,
                   PanelScales* scales) {
  for (int block = 0; block < blocks; ++block) {
    const uint8_t scale = x.scale(row, k_first / kBlock + block);
    scales->of[block][slot] = ue4m3_units(scale);
    if (is_nan_scale(scale)) scales->nan[slot] = true;
  }
}

// Decodes a part of an operand. store(row, k, element) keeps each element, counted within the part.
struct Region {
  int64_t row, k;
  int rows, k_count;
};
template <typename Store>
void decode(const ByteTable& table, const Matrix& x, const Region& region, PanelScales* scales,
            Store store) {
  uint8_t gathered[kPanel / 2];
  for (int row = 0; row < region.rows; ++row) {
    const uint8_t* bytes = x.bytes(region.row + row, region.k, region.k_count, gathered);
    for (int i = 0; i < region.k_count / 2; ++i) {
      store(row, 2 * i, table.of[bytes[i]].low);
      store(row, 2 * i + 1, table.of[bytes[i]].high);
    }
    decode_scales(x, region.row + row, region.k, region.k_count / kBlock, row, scales);
  }
}

void decode_a(const ByteTable& table, const Matrix& x, const Region& region, PanelA* panel) {
  decode(table, x, region, &panel->scales,
         [panel](int row, int k, int16_t element) { panel->element[row][k] = element; });
}

void decode_b(const ByteTable& table, const Matrix& x, const Region& region, PanelB* panel) {
  decode(table, x, region, &panel->scales, [panel](int row, int k, int16_t element) {
    panel->element[k][row / kLanes][row % kLanes] = element;
  });
}

// Sums of one block: row i of A times 32 columns of D.
void dot_block(const PanelA& a, int i, const PanelB& b, int block, int16_t dot[kRows]) {
  constexpr int kVectors = kRows / kLanes;
  Lanes sum[kVectors] = {};
  for (int k = block * kBlock; k < (block + 1) * kBlock; ++k) {
    for (int v = 0; v < kVectors; ++v) sum[v] += a.element[i][k] * b.element[k][v];
  }
  memcpy(dot, sum, sizeof sum);
}

// acc: the exact sum rounded once to fp32; a zero is positive.
F32 round_sum(int64_t sum, bool nan) {
  if (nan) return kNan;
  const uint64_t magnitude = sum < 0 ? -static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  return {(sum < 0 ? 0x80000000u : 0) | round_to(kF32, magnitude, kUnit)};
}

// About 54 KB on the stack: a thread with a small stack can still call it.
struct Workspace {
  ByteTable table;
  PanelA a;
  PanelB b;
  int64_t sum[kRows][kRows];
  F32 acc[2][kRows][kRows];  // sums with the rows of b; in a gated product, [1] with those of b2
};

void add_panel(Workspace* w, int rows, int blocks) {
  int16_t dot[kRows];
  for (int i = 0; i < rows; ++i) {
    for (int block = 0; block < blocks; ++block) {
      dot_block(w->a, i, w->b, block, dot);
      const int32_t scale = w->a.scales.of[block][i];
      for (int j = 0; j < kRows; ++j) {
        // 2304 * 448 * 512 fits 31 bits.
        w->sum[i][j] += static_cast<int64_t>(dot[j] * scale) * w->b.scales.of[block][j];
      }
    }
  }
}

// Columns beyond the matrix take part in the arithmetic as zeros.
void clear(Workspace* w) {
  memset(&w->a.scales, 0, sizeof w->a.scales);
  memset(&w->b, 0, sizeof w->b);
  memset(&w->sum, 0, sizeof w->sum);
}

int smaller(int64_t a, int b) { return a < b ? static_cast<int>(a) : b; }

void multiply_tile(Workspace* w, const Matrix& a, const Matrix& b, int64_t m, int64_t n,
                   F32 (&acc)[kRows][kRows]) {
  const int rows = smaller(a.rows - m, kRows), columns = smaller(b.rows - n, kRows);
  clear(w);
  for (int64_t k = 0; k < a.k; k += kPanel) {
    const int k_count = smaller(a.k - k, kPanel);
    decode_a(w->table, a, {m, k, rows, k_count}, &w->a);
    decode_b(w->table, b, {n, k, columns, k_count}, &w->b);
    add_panel(w, rows, k_count / kBlock);
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const bool nan = w->a.scales.nan[i] || w->b.scales.nan[j];
      acc[i][j] = round_sum(w->sum[i][j], nan);
    }
  }
}

void store_tile(const Workspace& w, int rows, int columns, const ReferenceEpilogue& epilogue,
                const Place& first) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      epilogue.store({first.batch, first.row + i, first.column + j}, w.acc[0][i][j],
                     w.acc[1][i][j]);
    }
  }
}

Matrix batch_of_a(const nvfp4_gemm_desc& g, int64_t batch) {
  return {static_cast<const uint8_t*>(g.a) + batch * g.a_batch_stride / 2,
          static_cast<const uint8_t*>(g.a_scales) + batch * g.a_scales_batch_stride_bytes,
          g.m,
          g.k,
          g.a_ld,
          g.a_scale_layout,
          nullptr};
}

// The weights are the rows of b, or of b2. `packed` are the same, if they are packed.
Matrix batch_of_weights(const nvfp4_gemm_desc& g, const void* codes, const void* scales,
                        int64_t batch, const PackedWeights* packed) {
  if (g.b_packing != NVFP4_PACKING_NONE) return {nullptr, nullptr, g.n, g.k, 0, 0, packed};
  return {static_cast<const uint8_t*>(codes) + batch * g.b_batch_stride / 2,
          static_cast<const uint8_t*>(scales) + batch * g.b_scales_batch_stride_bytes,
          g.n,
          g.k,
          g.b_ld,
          g.b_scale_layout,
          nullptr};
}

}  // namespace

void reference_gemm(const nvfp4_gemm_desc& g) {
  const bool nvfp4 = g.operand_format == NVFP4_OPERAND_FORMAT_NVFP4;
  const bool codes = g.a_type == NVFP4_TYPE_NONE && g.a_packing == NVFP4_PACKING_NONE;
  if (!codes || !nvfp4) return reference_gemm_wide(g);
  Workspace w;
  memset(w.acc[1], 0, sizeof w.acc[1]);
  fill_byte_table(&w.table);
  const ReferenceEpilogue epilogue(g);
  for (int64_t batch = 0; batch < g.l; ++batch) {
    const PackedWeights packed = packed_batch(g, g.b, batch),
                        packed2 = packed_batch(g, g.b2, batch);
    const Matrix a = batch_of_a(g, batch);
    const Matrix b = batch_of_weights(g, g.b, g.b_scales, batch, &packed);
    const Matrix b2 = is_gated(g) ? batch_of_weights(g, g.b2, g.b2_scales, batch, &packed2) : b;
    for (int64_t m = 0; m < g.m; m += kRows) {
      for (int64_t n = 0; n < g.n; n += kRows) {
        multiply_tile(&w, a, b, m, n, w.acc[0]);
        if (is_gated(g)) multiply_tile(&w, a, b2, m, n, w.acc[1]);
        store_tile(w, smaller(g.m - m, kRows), smaller(g.n - n, kRows), epilogue, {batch, m, n});
      }
    }
  }
}

}  // namespace nvfp4
