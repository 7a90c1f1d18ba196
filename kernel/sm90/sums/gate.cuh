// SPDX-License-Identifier: MIT
// Computes the elements of D, before rounding, from both sums of a gated product in registers, for
// the entries that have no other epilogue. Each step is the same as in kernel/common/gated.cuh, so
// D has the same bits.
#pragma once

#include <cstdint>

#include "kernel/common/gated.cuh"
#include "kernel/ptx/sync.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/epilogue.cuh"
#include "kernel/sm90/sums/scale_slots.cuh"

namespace nvfp4 {

// Whether a tile's entry can compute D in registers, where both sums are added. For groups such an
// entry has the general epilogue, too, and one of whole sums has that one alone.
template <typename Tile>
constexpr bool kGatesSums = Tile::kGated && (Tile::kPlain || (Tile::kGrouped && !Tile::kWholeSums));

// Bytes in shared memory from the sum with a row of b to the sum with the same row of b2.
template <typename Tile>
constexpr uint32_t kHalvesApart = Tile::kColumnsOfD * 4;

// The steps of finish() for silu(x) * y alone, without a branch: its code is fetched in one piece.
template <uint32_t kCount>
__device__ void multiply_swiglu(float of_x, float of_y, float factor, float (&x)[kCount],
                                float (&y)[kCount]) {
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    x[i] = __fmul_rn(of_x, __fmul_rn(x[i], factor));
    y[i] = __fmul_rn(of_y, __fmul_rn(y[i], factor));
  }
  activate(kActivationSilu, x);
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) x[i] = __fmul_rn(x[i], y[i]);
}

// Factors and biases of a thread's kColumns neighbouring columns, which all rows share.
template <typename Tile, uint32_t kColumns>
struct GateTerms {
  const Sm90Params& p;
  const GateParams& gate;
  uint32_t n;
  GatedColumns of_b, of_b2;
  float bias[2][kColumns];  // the biases of b and of b2, if any

  // Beyond N the last column's terms are loaded, for sums that are not stored. An earlier grid may
  // write what is loaded. The batch is that of the weights, or the group.
  __device__ GateTerms(const Sm90Params& params, uint32_t batch, uint32_t first)
      : p(params),
        gate(gated_params(params).gate),
        n(min(first, params.n - 1)),
        of_b((ptx::griddepcontrol_wait(), params), alpha_of<Tile>(params, batch),
             params.epilogue.alpha_device, params.epilogue.b_tensor_scale, n),
        of_b2(params, alpha2_of<Tile>(params, batch), gate.alpha2_device, gate.b2_tensor_scale, n),
        bias{} {
    const EpilogueParams& e = p.epilogue;
    if (e.bias_type == kTypeNone) return;
    const int64_t bias_first = bias_first_of<Tile>(p, batch);
#pragma unroll
    for (uint32_t i = 0; i < 2 * kColumns; ++i) {
      const uint32_t at = min(n + i / 2, p.n - 1);
      bias[i % 2][i / 2] =
          load_element(i % 2 == 0 ? e.bias : gate.bias2, e.bias_type, bias_first + at, true);
    }
  }

  // silu(x) * y of sums that no row and no bias changes: what most products are.
  __device__ bool is_swiglu() const {
    const EpilogueParams& e = p.epilogue;
    return e.activation == kActivationSilu && gate.silu_alpha == 1 && gate.beta == 0 &&
           !(gate.limit < f32(kF32Infinity)) && e.bias_type == kTypeNone && e.a_scale_per_row == 0;
  }

  // x and y are the sums with rows of b and of b2, kColumns of each row. On return x has the
  // elements of D. row(i) is the i-th row. Rows beyond M have no factors, as their sums are not
  // stored.
  template <uint32_t kCount, typename Row>
  __device__ void finish(uint32_t batch, const Row& row, float (&x)[kCount],
                         float (&y)[kCount]) const {
    const EpilogueParams& e = p.epilogue;
    const float factor = decoding_scale<Tile>(p);
    if (is_swiglu()) return multiply_swiglu(of_b.of_row(1), of_b2.of_row(1), factor, x, y);
    if (e.a_scale_per_row == 0) {
      const float of_x = of_b.of_row(1), of_y = of_b2.of_row(1);
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) {
        x[i] = __fmul_rn(of_x, __fmul_rn(x[i], factor));
        y[i] = __fmul_rn(of_y, __fmul_rn(y[i], factor));
      }
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) {
        const uint32_t m = row(i / kColumns);
        const float a_scale =
            __uint_as_float(ptx::ld_global_b32_if(row_scale_at(p, batch, m), m < p.m));
        x[i] = __fmul_rn(of_b.of_row(a_scale), __fmul_rn(x[i], factor));
        y[i] = __fmul_rn(of_b2.of_row(a_scale), __fmul_rn(y[i], factor));
      }
    }
    if (e.bias_type != kTypeNone) {
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) {
        x[i] = __fadd_rn(x[i], bias[0][i % kColumns]);
        y[i] = __fadd_rn(y[i], bias[1][i % kColumns]);
      }
    }
    multiply_gated(e.activation, gate, x, y);
  }
};

// Prefetches to L1 what all of the CTA's tiles read of it during the loop over K, by a warp that
// does not multiply.
template <typename Tile>
__device__ void ask_for_gate_terms(const Cta90<Tile>& cta, uint32_t lane) {
  const Sm90Params& p = cta.p;
  const EpilogueParams& e = p.epilogue;
  const GateParams& gate = gated_params(p).gate;
  ptx::griddepcontrol_wait();
  const float* const scalars[4] = {e.alpha_device, e.a_tensor_scale, gate.alpha2_device,
                                   e.d_tensor_scale};
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    if (lane == i && scalars[i] != nullptr) ptx::prefetch_global_l1(scalars[i]);
  }
  constexpr uint32_t kLines = Tile::kColumnsOfD / 16;
#pragma unroll 1
  for (uint32_t index = cta.index; index != kNoTile; index = next_tile<Tile>(p, index)) {
    const TileCoordinate tile = tile_of_index(p, index);
    const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + lane / 2 * 16;
    if (lane / 2 >= kLines || n >= p.n) continue;
    const float* const scales = lane % 2 == 0 ? e.b_tensor_scale : gate.b2_tensor_scale;
    const void* const biases = lane % 2 == 0 ? e.bias : gate.bias2;
    if (scales != nullptr) ptx::prefetch_global_l1(scales + n / e.columns_a_factor);
    if (e.bias_type != kTypeNone) {
      const uint32_t bytes = n << log2_bytes(e.bias_type);
      ptx::prefetch_global_l1(static_cast<const uint8_t*>(biases) + bytes);
    }
  }
  __syncwarp();
}

// Stores four columns of a row of D, from n on. If D has scales, the lanes that share a block store
// together.
template <typename Tile>
__device__ void store_gated_four(const Epilogue90<Tile>& out, uint32_t m, const float4& four) {
  const Sm90Params& p = out.p;
  if (!has_scales(p.epilogue.d_type)) return out.store_rounded(m, four);
  if (out.n >= p.n) return;
  float x[4] = {four.x, four.y, four.z, four.w};
  const int64_t element = out.batch * p.d_batch_stride + m * p.d_ld + out.n;
  store_scaled_four(p.epilogue, p.d, element, out.batch, m, out.n, true, x);
}

// Eight codes of each of eight lanes: lane g gets the g-th ones, that of g = 0 in the lowest bits.
// First halves of a word change place between g and g ^ 4, then bytes, then codes.
__device__ inline uint32_t transpose_codes(uint32_t own, uint32_t lane) {
  constexpr uint32_t kLow = 0x0F0F0F0F;
  uint32_t other = __shfl_xor_sync(kAllLanes, own, 16);
  own = __byte_perm(own, other, (lane & 16) == 0 ? 0x5410 : 0x3276);
  other = __shfl_xor_sync(kAllLanes, own, 8);
  own = __byte_perm(own, other, (lane & 8) == 0 ? 0x6240 : 0x3715);
  other = __shfl_xor_sync(kAllLanes, own, 4);
  const bool even = (lane & 4) == 0;
  return even ? (own & kLow) | (other & kLow) << 4 : (other >> 4 & kLow) | (own & ~kLow);
}

// Stores D with scales for a warp's eight columns, from n on, and 32 tokens. A lane has column g of
// eight tokens: slot i is token i/2*8 + 2c + i%2. Two or four neighbouring warps share a block.
// They exchange their largest magnitudes in `exchange`: 128 bytes per warp, in memory that is no
// longer read.
template <typename Tile>
__device__ void store_gated_columns(const Sm90Params& p, const TileCoordinate& tile,
                                    const TensorScale& t, uint32_t n, uint32_t m_first,
                                    uint32_t exchange, uint32_t warp, uint32_t lane,
                                    float (&x)[1][8]) {
  const EpilogueParams& e = p.epilogue;
  const uint32_t warps = e.d_type == kTypeMxfp4 ? 4 : 2;
  const uint32_t g = lane / 4, m = m_first + g / 2 * 8 + lane % 4 * 2 + g % 2;
  const bool stores = n < p.n && m < row_end<Tile>(p, tile);
  float largest[8];
#pragma unroll
  for (uint32_t i = 0; i < 8; ++i) largest[i] = fabsf(x[0][i]);
  float of_token[1] = {largest_of_slots<EightLanes>(largest, lane)};
  ptx::st_shared_f32(exchange + warp * 128 + lane * 4, of_token[0]);
  ptx::named_barrier_sync<kConsumerBarrier, Tile::kConsumerWarps * 32>();
  for (uint32_t other = 1; other < warps; ++other) {
    const uint32_t at = exchange + (warp ^ other) * 128 + lane * 4;
    of_token[0] = max_nan(of_token[0], __uint_as_float(ptx::ld_shared_b32(at)));
  }
  if (!stores) of_token[0] = 1;  // the value does not matter: it is not stored
  ScaleOfD s[1];
  scale_slots<EightLanes>(e, of_token, t, lane, x, s);
  const uint32_t codes = transpose_codes(eight_e2m1(x[0]), lane);
  if (stores) {
    const int64_t element = tile.batch * p.d_batch_stride + m * p.d_ld + n;
    uint8_t* const to = static_cast<uint8_t*>(p.d) + element / 2;
    *reinterpret_cast<uint32_t*>(to) = s[0].zeros ? 0 : codes;
    if (warp % warps == 0) store_scale_of_d(e, tile.batch, m, n, s[0]);
  }
  __syncwarp();  // some lanes have stored
}

// A warp's fragment as rows of D in shared memory, [token][column], with 16-byte columns XOR token
// % 8, as put_rows has them; 32 tokens at a time. A lane has column g of eight. Registers have no
// index, so branches select the sums; the code that follows exists once. D with scales is stored
// from here, and nothing is left to store then.
template <typename Tile, uint32_t kSums>
__device__ void put_gated_rows(const Sm90Params& p, const TileCoordinate& tile, uint32_t m_first,
                               uint32_t at, uint32_t warp, uint32_t lane,
                               const float (&sums)[kSums]) {
  constexpr uint32_t kRowBytes = Tile::kColumnsOfD * 2, kAtOnce = 16;
  static_assert(kSums % kAtOnce == 0 && kRowBytes == 128, "a row hits all banks");
  const uint32_t columns = warp % Tile::kConsumersPerStage * Tile::kWarpColumns;
  const uint32_t n = tile.weight_tile * Tile::kColumnsOfD + columns;
  const GateTerms<Tile, 1> terms(p, tile.batch, n + lane / 4);  // waits for earlier grids
  const bool scaled = has_scales(p.epilogue.d_type);
  const TensorScale t = tensor_scale_of_d(p.epilogue);
  // In four matrices of 8 columns x 8 tokens this lane gives the address of one token.
  uint32_t to = at + lane * kRowBytes + (columns / 8 ^ lane % 8) * 16;
#pragma unroll 1
  for (uint32_t first = 0; first < kSums; first += kAtOnce, to += 2 * kAtOnce * kRowBytes) {
    const uint32_t m = m_first + 2 * first + lane % 4 * 2;
    // Groups have rows of their own, and their warps meet at one barrier.
    if (Tile::kGroups == 1 && m_first + 2 * first >= p.m) break;
    float x[1][kAtOnce / 2], y[kAtOnce / 2];
#pragma unroll
    for (uint32_t from = 0; from < kSums; from += kAtOnce) {
      if (from != first) continue;
#pragma unroll
      for (uint32_t i = 0; i < kAtOnce / 2; ++i) {
        x[0][i] = sums[from + i / 2 * 4 + i % 2];
        y[i] = sums[from + i / 2 * 4 + i % 2 + 2];
      }
    }
    terms.finish(
        tile.batch, [&](uint32_t i) { return m + i / 2 * 8 + i % 2; }, x[0], y);
    if (scaled) {
      constexpr uint32_t kExchangeBytes = Tile::kConsumersPerStage * 128;
      store_gated_columns<Tile>(p, tile, t, n, m_first + 2 * first,
                                at + first / kAtOnce % 2 * kExchangeBytes,
                                warp % Tile::kConsumersPerStage, lane, x);
      continue;
    }
    const auto words = [&](uint32_t i) { return Epilogue90<Tile>::round(x[0][i], x[0][i + 1], p); };
    ptx::stmatrix_x4_trans(to, {words(0), words(2), words(4), words(6)});
  }
}

}  // namespace nvfp4
