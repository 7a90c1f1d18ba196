// SPDX-License-Identifier: MIT
// Scales of D that several lanes find together. Each lane has some columns of the same kSlots
// tokens, and all columns of a block are those of these lanes. In the end each lane has the largest
// magnitude of one token, of which it computes the scale alone.
#pragma once

#include <cstdint>

#include "kernel/common/scaled_d.cuh"

namespace nvfp4 {

constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// Which lanes share blocks: kCount of them, kApart from one to the next. The lane of a slot among
// those that share a lane's blocks:
struct EightLanes {  // lanes 4g+c of one c
  static constexpr uint32_t kCount = 8, kApart = 4;
  static __device__ uint32_t of_slot(uint32_t lane, uint32_t slot) { return slot * 4 + lane % 4; }
};
struct FourLanes {  // neighbours
  static constexpr uint32_t kCount = 4, kApart = 1;
  static __device__ uint32_t of_slot(uint32_t lane, uint32_t slot) { return (lane & 28) + slot; }
};

// The lanes reduce their slots to the largest value of each. The result of a slot ends in the lanes
// whose number among them, modulo kSlots, is the slot; a lane gives away the slots that are not its
// own.
template <typename Lanes, uint32_t kSlots>
__device__ float largest_of_slots(float (&largest)[kSlots], uint32_t lane) {
#pragma unroll
  for (uint32_t kept = kSlots / 2; kept > 0; kept /= 2) {
    const bool upper = (lane & kept * Lanes::kApart) != 0;
#pragma unroll
    for (uint32_t i = 0; i < kept; ++i) {
      const float own = upper ? largest[i + kept] : largest[i];
      const float others = upper ? largest[i] : largest[i + kept];
      largest[i] = max_nan(own, __shfl_xor_sync(kAllLanes, others, kept * Lanes::kApart));
    }
  }
#pragma unroll
  for (uint32_t g = kSlots; g < Lanes::kCount; g *= 2) {
    largest[0] = max_nan(largest[0], __shfl_xor_sync(kAllLanes, largest[0], g * Lanes::kApart));
  }
  return largest[0];
}

// Divides the columns of one slot by its token's step. `s` is that of the lane's own token.
template <typename Lanes, bool kAllByQuotients, uint32_t kColumns, uint32_t kSlots>
__device__ void divide_slot(const ScaleOfD& s, uint32_t lane, uint32_t slot, uint32_t at,
                            float (&x)[kColumns][kSlots]) {
  const uint32_t from = Lanes::of_slot(lane, slot);
  ScaleOfD of_slot{};
  of_slot.step = __shfl_sync(kAllLanes, s.step, from);
  of_slot.reciprocal = __shfl_sync(kAllLanes, s.reciprocal, from);
  of_slot.by_quotients = kAllByQuotients || __shfl_sync(kAllLanes, s.by_quotients, from) != 0;
#pragma unroll
  for (uint32_t column = 0; column < kColumns; ++column) {
    x[column][at] = divided(x[column][at], of_slot);
  }
}

// The same for all slots, by the expressions. Registers have no index, so the slots take turns at
// the first place, and the long code is there once.
template <typename Lanes, uint32_t kColumns, uint32_t kSlots>
__device__ void divide_slots_in_turns(const ScaleOfD& s, uint32_t lane,
                                      float (&x)[kColumns][kSlots]) {
#pragma unroll 1
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    divide_slot<Lanes, false>(s, lane, slot, 0, x);
#pragma unroll
    for (uint32_t column = 0; column < kColumns; ++column) {
      const float first = x[column][0];
#pragma unroll
      for (uint32_t i = 1; i < kSlots; ++i) x[column][i - 1] = x[column][i];
      x[column][kSlots - 1] = first;
    }
  }
}

// Whether scale_of_d_by_quotients() is right, known before the scale is.
__device__ inline bool has_quotients(const EpilogueParams& e, float largest, const TensorScale& t) {
  if (e.d_type != kTypeNvfp4) return __float_as_uint(largest) < kF32Infinity;
  return t.plain && (is_plain(largest) || largest == 0);
}

// The scale of the lane's token, whose block has that largest magnitude; slots are divided by
// theirs.
template <typename Lanes, uint32_t kColumns, uint32_t kSlots>
__device__ ScaleOfD scale_slots(const EpilogueParams& e, float largest, const TensorScale& t,
                                uint32_t lane, float (&x)[kColumns][kSlots]) {
  const bool by_quotients = __all_sync(kAllLanes, has_quotients(e, largest, t));
  ScaleOfD s;
  if (by_quotients) {
    s = scale_of_d_by_quotients(e, largest, t);
#pragma unroll
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      divide_slot<Lanes, true>(s, lane, slot, slot, x);
    }
  } else {
    s = scale_of_d(e, largest, t);
    divide_slots_in_turns<Lanes>(s, lane, x);
  }
  return s;
}

}  // namespace nvfp4
