// SPDX-License-Identifier: MIT
// From complete sums to D on Hopper: the fast epilogue (alpha, rounding to fp16, 8-byte stores
// along n), or the general epilogue from shared memory.
#pragma once

#include <cstdint>

#include "kernel/common/epilogue.cuh"
#include "kernel/ptx/convert.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode.cuh"
#include "kernel/sm90/params.h"

namespace nvfp4 {

// The decoding factor: a power of two, so multiplying by it rounds nothing.
template <typename Tile>
constexpr float kDecodingScale = Tile::kBlockSums       ? kBlockSumScale
                                 : Tile::kNaturalTokens ? kWeightScale
                                                        : kSumScale;
template <typename Tile>
constexpr float kUe8m0DecodingScale = Tile::kBlockSums ? kUe8m0BlockSumScale : kUe8m0WeightScale;
template <typename Tile>
__device__ float decoding_scale(const Sm90Params& p) {
  if (Tile::kMxfp4) return kUe8m0DecodingScale<Tile>;
  if (kTakesUe8m0<Tile> && p.weight_format != kFormatNvfp4) return kUe8m0DecodingScale<Tile>;
  return kDecodingScale<Tile>;
}

// Factor and biases of a thread's kCount columns, which are kStep apart. They share one tensor
// scale of B, hence one factor, but each has its own bias. A missing bias is -0, which changes no
// number.
template <typename Tile, uint32_t kCount, uint32_t kStep>
struct ColumnTerms {
  float scale;  // if A has a tensor scale for each row: without it and B's
  float bias[kCount];

  // Beyond N the last column's terms are loaded, for sums that are not stored.
  __device__ ColumnTerms(const Sm90Params& p, float alpha, uint32_t n) : scale(alpha) {
    const EpilogueParams& e = p.epilogue;
#pragma unroll
    for (float& one : bias) one = -0.0f;
    if (!has_columns_terms<Tile>(p)) return;
    ptx::griddepcontrol_wait();  // an earlier grid may write what follows reads
    scale = scale_of_rows(e, alpha);
    if (!has_row_terms<Tile>(p)) scale = __fmul_rn(scale, b_scale(p, n));
    if (e.bias_type == kTypeNone) return;
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      bias[i] = load_element(e.bias, e.bias_type, min(n + i * kStep, p.n - 1), true);
    }
  }

  // For sums that are left in shared memory.
  __device__ ColumnTerms() : scale(1), bias{} {}

  static __device__ float b_scale(const Sm90Params& p, uint32_t n) {
    return scale_of_columns(p.epilogue, min(n, p.n - 1));
  }
  // The factor for a row of A that has its own tensor scale. Beyond M none is loaded, because those
  // sums are not stored.
  __device__ float of_row(const Sm90Params& p, uint32_t batch, uint32_t m, float of_columns) const {
    const uint32_t a_scale = ptx::ld_global_b32_if(row_scale_at(p, batch, m), m < p.m);
    return ColumnScale(scale, of_columns).of_row(__uint_as_float(a_scale));
  }
};

// Whether sums are left in shared memory for an epilogue that reads them there.
template <typename Tile>
__device__ bool leaves_sums(const Sm90Params& p) {
  return Tile::kScaledD || Tile::kFields || has_general_epilogue<Tile>(p);
}

// Terms of the four columns that a lane stores in a row.
template <typename Tile>
using FourTerms = ColumnTerms<Tile, 4, 1>;
template <typename Tile>
__device__ FourTerms<Tile> terms_of_lane(const Cta90<Tile>& cta, uint32_t lane) {
  if (Tile::kScaledD || Tile::kFields) return {};
  const uint32_t column = lane % (Tile::kColumnsOfD / 4) * 4;
  const float alpha = alpha_of<Tile>(cta.p, cta.tile.batch);
  return FourTerms<Tile>(cta.p, alpha, cta.tile.weight_tile * Tile::kColumnsOfD + column);
}

// Prefetches the terms of all of the CTA's tiles to L1 during the loop over K, by a warp that does
// not multiply.
template <typename Tile>
__device__ void ask_for_column_terms(const Cta90<Tile>& cta, uint32_t lane) {
  const Sm90Params& p = cta.p;
  if (!has_columns_terms<Tile>(p)) return;
  const EpilogueParams& e = p.epilogue;
  ptx::griddepcontrol_wait();
  if (lane == 0 && e.alpha_device != nullptr) ptx::prefetch_global_l1(e.alpha_device);
  if (lane == 1 && e.a_tensor_scale != nullptr) ptx::prefetch_global_l1(e.a_tensor_scale);
  if (lane == 2 && Tile::kScaledD && e.d_tensor_scale != nullptr) {
    ptx::prefetch_global_l1(e.d_tensor_scale);
  }
#pragma unroll 1
  for (uint32_t index = cta.index; index != kNoTile; index = next_tile<Tile>(p, index)) {
    const TileCoordinate tile = tile_of_index(p, index);
    const uint32_t m = tile.token_tile * Tile::kTokens + lane * 32;
    if (has_row_terms<Tile>(p) && lane * 32 < Tile::kTokens && m < p.m) {
      ptx::prefetch_global_l1(row_scale_at(p, tile.batch, m));
    }
    const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + lane * 16;
    if (lane >= Tile::kWeights / 16 || n >= p.n) continue;
    if (e.b_tensor_scale != nullptr) {
      ptx::prefetch_global_l1(e.b_tensor_scale + n / e.columns_a_factor);
    }
    if (e.bias_type != kTypeNone) {
      const uint32_t bytes = n << log2_bytes(e.bias_type);
      ptx::prefetch_global_l1(static_cast<const uint8_t*>(e.bias) + bytes);
    }
  }
  __syncwarp();
}

// Stores four neighbouring weights of any token, from n on, to D in fp16 or bf16, or unrounded in
// fp32. Only scaled() and round() define what happens to a sum; only store() and store_floats()
// write D.
template <typename Tile>
struct Epilogue90 {
  const Sm90Params& p;
  uint32_t n, batch;
  bool vectors;
  uint8_t* d;

  __device__ Epilogue90(const Sm90Params& params, const TileCoordinate& tile, uint32_t first)
      : p(params),
        n(first),
        batch(tile.batch),
        vectors(((p.d_ld | p.d_batch_stride) & 3) == 0 && n + 4 <= p.n),
        d(static_cast<uint8_t*>(p.d) +
          ((tile.batch * p.d_batch_stride + n) << (has_float_d<Tile>(p) ? 2 : 1))) {}

  // Scales a sum, beginning with the decoding factor.
  static __device__ float scaled(const Sm90Params& p, float sum, float scale) {
    return __fmul_rn(scale, sum * decoding_scale<Tile>(p));
  }

  static __device__ uint32_t round(float low, float high, const Sm90Params& p) {
    return p.epilogue.d_type == kTypeBf16 ? ptx::cvt_rn_bf16x2_f32(high, low)
                                          : ptx::cvt_rn_f16x2_f32(high, low);
  }

  __device__ void store(uint32_t m, const uint2& four) const {
    uint16_t* out = reinterpret_cast<uint16_t*>(d) + m * p.d_ld;
    if (vectors) {
      *reinterpret_cast<uint2*>(out) = four;
      return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t word = k < 2 ? four.x : four.y;
      if (n + k < p.n) out[k] = static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16);
    }
  }

  // With four floats at a time the loop over K of one tile would spill a register.
  __device__ void store_floats(uint32_t m, const float (&x)[4]) const {
    constexpr bool kSpills = Tile::kTokens == 16 && Tile::kWeights == 128;
    float* out = reinterpret_cast<float*>(d) + m * p.d_ld;
    if (!kSpills && vectors) {
      *reinterpret_cast<float4*>(out) = make_float4(x[0], x[1], x[2], x[3]);
      return;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
      if (n + k < p.n) out[k] = x[k];
    }
  }

  __device__ void store_sums(uint32_t m, const float4& sum, const FourTerms<Tile>& terms) const {
    float scale = terms.scale;
    if (has_row_terms<Tile>(p)) scale = terms.of_row(p, batch, m, terms.b_scale(p, n));
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) x[i] = scaled(p, x[i], scale);
    if constexpr (Tile::kPlain) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) x[i] = __fadd_rn(x[i], terms.bias[i]);
    }
    if (has_float_d<Tile>(p)) return store_floats(m, x);
    store(m, make_uint2(round(x[0], x[1], p), round(x[2], x[3], p)));
  }

  __device__ void store_rounded(uint32_t m, const float4& x) const {
    store(m, make_uint2(round(x.x, x.y, p), round(x.z, x.w, p)));
  }
};

// What all rows of the product, or of a group of it, share in columns from n on.
template <typename Tile>
__device__ GeneralColumns columns_of(const Sm90Params& p, uint32_t batch, uint32_t n) {
  GeneralColumns columns(p, alpha_of<Tile>(p, batch), n, bias_first_of<Tile>(p, batch));
  if constexpr (Tile::kGrouped) {
    columns.d_scales.tensor_scale = d_tensor_scale_of_group(groups_of(p), batch);
  }
  return columns;
}

// Stores the sums that a thread has left for the general epilogue. A kernel has this code only
// once.
template <typename Tile, uint32_t kRowsOfC>
__device__ void store_general_90(const Sm90Params& p, SumRows rows) {
  if (!has_general_epilogue<Tile>(p)) return;
  if (rows.m < rows.m_end) {
    const GeneralColumns columns = columns_of<Tile>(p, rows.batch, rows.n);
    if (Tile::kGrouped) rows.batch = 0;  // A, C and D have no batches
    store_general<kRowsOfC>(p, rows, columns, decoding_scale<Tile>(p));
  }
  __syncwarp();  // some lanes have stored
}

// The same as a called function, for tiles whose loop over K has no register to spare: inlined it
// spills one or two.
template <typename Tile>
__device__ __noinline__ void call_store_general(const Sm90Params& p, SumRows rows) {
  const GeneralColumns columns = columns_of<Tile>(p, rows.batch, rows.n);
  if (Tile::kGrouped) rows.batch = 0;
  store_general(p, rows, columns, decoding_scale<Tile>(p));
}
template <typename Tile>
__device__ void store_general_of_few(const Sm90Params& p, const SumRows& rows) {
  constexpr bool kSpills = Tile::kTokens == 16 && (Tile::kWeights == 128 || Tile::kNaturalTokens);
  if constexpr (!kSpills) return store_general_90<Tile, 1>(p, rows);
  if (!has_general_epilogue<Tile>(p)) return;
  if (rows.m < rows.m_end) call_store_general<Tile>(p, rows);
  __syncwarp();  // some lanes have stored
}

// Stores a thread's complete sum of one token to D. For the general epilogue it stores the sum
// where its first partial sum was.
template <typename Tile>
__device__ SumRows store_one_sum(const Cta90<Tile>& cta, uint32_t n, uint32_t m, uint32_t at,
                                 const float4& sum, const FourTerms<Tile>& terms) {
  if (!leaves_sums<Tile>(cta.p)) {
    Epilogue90<Tile>(cta.p, cta.tile, n).store_sums(m, sum, terms);
    return {};
  }
  ptx::st_shared_v4_f32(at, sum);
  return {at, 0, cta.tile.batch, n, m, 1, m + 1};
}

}  // namespace nvfp4
