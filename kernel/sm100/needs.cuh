// SPDX-License-Identifier: MIT
// What the general epilogue of 10.x does for one D.
#pragma once

#include <cstdint>

#include "kernel/common/activation.cuh"
#include "kernel/common/amax.cuh"
#include "kernel/common/scaled_d.cuh"
#include "kernel/sm100/params.h"
#include "kernel/sm100/scaled.cuh"

namespace nvfp4 {

// What a tile's rows need of the epilogue, a bit each, found once. ptxas would load each field anew
// where it is tested, in every trip, and wait for it.
enum Need : uint32_t {
  kNeedsC = 1,
  kNeedsRowFactors = 2,
  kNeedsRowBias = 4,
  kNeedsActivation = 8,
  kNeedsAmax = 16,
  kNeedsScales = 32,
  kNeedsTma = 64,       // D leaves in boxes
  kNeedsColumns = 128,  // D is stored by columns
  kNeedsSilu = 256,     // and no factor
  kNeedsLimit = 512,    // of a gated product
  kNeedsGateBeta = 1024,
  kNeedsBytes = 2048  // no 8 bytes of D with scales can be stored at once
};

struct Needs {
  static constexpr uint32_t kTypeShift = 12;
  uint32_t bits;

  template <typename Tile, bool kScales>
  __device__ static Needs of(const Sm100Params& p, bool reads_c, bool by_tma) {
    const EpilogueParams& e = p.epilogue;
    const uint32_t activation = e.activation % kTakesAmax;
    uint32_t bits = e.d_type << kTypeShift;
    if (reads_c) bits |= kNeedsC;
    if (e.a_scale_per_row != 0) bits |= kNeedsRowFactors;
    if (e.bias_type != kTypeNone && e.bias_per_row != 0) bits |= kNeedsRowBias;
    if (activation != kActivationNone) bits |= kNeedsActivation;
    if (activation == kActivationSilu) bits |= kNeedsSilu;
    if (has_amax(e)) bits |= kNeedsAmax;
    if ((kScales || Tile::kGated) && has_scales(e.d_type)) bits |= kNeedsScales;
    if (!LaneBlock::is_aligned(p)) bits |= kNeedsBytes;
    if (by_tma) bits |= kNeedsTma;
    if (e.d_column != 1) bits |= kNeedsColumns;
    if constexpr (Tile::kGated) {
      const GateParams& gate = gated_params(p).gate;
      if (gate.limit < f32(kF32Infinity)) bits |= kNeedsLimit;
      if (gate.beta != 0) bits |= kNeedsGateBeta;
      if (gate.silu_alpha != 1) bits &= ~kNeedsSilu;
    }
    return {bits};
  }
  __device__ uint32_t type() const { return bits >> kTypeShift; }  // of D
  __device__ bool any_of(uint32_t some) const { return (bits & some) != 0; }
};

}  // namespace nvfp4
