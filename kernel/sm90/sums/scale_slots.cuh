// SPDX-License-Identifier: MIT
// Scales of D that several lanes find together. Each lane has some columns of the same kSlots
// tokens, and all columns of a block are those of these lanes. In the end each lane has the largest
// magnitude of kOwn tokens, one of each kSlots / kOwn, of which it computes the scales alone.
#pragma once

#include <cstdint>

#include "kernel/common/scaled_d.cuh"
#include "kernel/ptx/convert.cuh"

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

// Divides the columns of one slot, which are at `at`, by its token's step. `s` are those of the
// lane's own tokens.
template <typename Lanes, bool kAllByQuotients, uint32_t kOwn, uint32_t kColumns, uint32_t kSlots>
__device__ void divide_slot(const ScaleOfD (&s)[kOwn], uint32_t lane, uint32_t slot, uint32_t at,
                            float (&x)[kColumns][kSlots]) {
  constexpr uint32_t kEach = kSlots / kOwn;
  const uint32_t from = Lanes::of_slot(lane, slot % kEach);
  const ScaleOfD &first = s[0], &last = s[kOwn - 1];  // a reference chosen here would need memory
  const bool is_first = slot < kEach;
  const bool by_quotients = is_first ? first.by_quotients : last.by_quotients;
  ScaleOfD of_slot{};
  of_slot.step = __shfl_sync(kAllLanes, is_first ? first.step : last.step, from);
  of_slot.reciprocal = __shfl_sync(kAllLanes, is_first ? first.reciprocal : last.reciprocal, from);
  of_slot.by_quotients = kAllByQuotients || __shfl_sync(kAllLanes, by_quotients, from) != 0;
#pragma unroll
  for (uint32_t column = 0; column < kColumns; ++column) {
    x[column][at] = divided(x[column][at], of_slot);
  }
}

// The same for all slots, by the expressions. Registers have no index, so the slots take turns at
// the first place, and the long code is there once.
template <typename Lanes, uint32_t kOwn, uint32_t kColumns, uint32_t kSlots>
__device__ void divide_slots_in_turns(const ScaleOfD (&s)[kOwn], uint32_t lane,
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

// Whether the scale needs no division, known before the scale is.
__device__ inline bool has_quotients(const EpilogueParams& e, float largest, const TensorScale& t) {
  if (e.d_type != kTypeNvfp4) return __float_as_uint(largest) < kF32Infinity;
  return t.plain && (is_plain(largest) || largest == 0);
}

// ue4m3_by_quotients() without a branch, so that scales of several tokens are computed side by
// side. The step is zero, whose codes are zeros anyway, or far from both ends of fp32. There this
// is what __frcp_rn() computes.
__device__ inline ScaleOfD ue4m3_without_branch(float largest, const TensorScale& t) {
  ScaleOfD s;
  s.by_quotients = true;
  const float sixth = quotient(largest, kLargestElement, 1.0f / kLargestElement);
  s.byte = e4m3_code(quotient(sixth, t.t, t.reciprocal));
  s.zeros = s.byte == 0;
  s.step = __fmul_rn(e4m3_value(s.byte), t.t);
  const float guess = ptx::rcp_approx_ftz_f32(s.step);
  s.reciprocal = __fmaf_rn(guess, -__fmaf_rn(s.step, guess, -1.0f), guess);
  return s;
}

// The scales of the lane's tokens, whose blocks have those largest magnitudes; slots are divided by
// theirs.
template <typename Lanes, uint32_t kOwn, uint32_t kColumns, uint32_t kSlots>
__device__ void scale_slots(const EpilogueParams& e, const float (&largest)[kOwn],
                            const TensorScale& t, uint32_t lane, float (&x)[kColumns][kSlots],
                            ScaleOfD (&s)[kOwn]) {
  bool by_quotients = true;
#pragma unroll
  for (uint32_t i = 0; i < kOwn; ++i) {
    by_quotients = by_quotients && has_quotients(e, largest[i], t);
  }
  if (!__all_sync(kAllLanes, by_quotients)) {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) s[i] = scale_of_d(e, largest[i], t);
    return divide_slots_in_turns<Lanes>(s, lane, x);
  }
  if (e.d_type == kTypeNvfp4) {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) s[i] = ue4m3_without_branch(largest[i], t);
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) s[i] = ue8m0_of_d(largest[i], e.d_scale_floors != 0);
  }
#pragma unroll
  for (uint32_t slot = 0; slot < kSlots; ++slot) divide_slot<Lanes, true>(s, lane, slot, slot, x);
}

}  // namespace nvfp4
