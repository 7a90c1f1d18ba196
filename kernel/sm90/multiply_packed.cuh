// SPDX-License-Identifier: MIT
// The consumer warps of gemm.cu for packed weights and fp16 or bf16 tokens. In a unit of 64 weights
// x 64 of K a lane's codes are one 16-byte word, whose four words are the A operands of four steps.
// Elements have their natural order of K, so D has the bits of the product whose weights are not
// packed.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernel/common/clocks.cuh"
#include "kernel/ptx/mbarrier.cuh"
#include "kernel/ptx/memory.cuh"
#include "kernel/ptx/select.cuh"
#include "kernel/sm90/cta.cuh"
#include "kernel/sm90/decode_packed.cuh"
#include "kernel/sm90/load.cuh"
#include "kernel/sm90/multiply_a16.cuh"

namespace nvfp4 {

// What a lane reads of a unit.
struct PackedUnit {
  uint4 codes;
  uint2 scales;  // steps 0 and 1, steps 2 and 3: the even and the odd bytes of a word
};

// Addresses of a lane in stage 0, for the first unit.
struct PackedLane {
  using Unit = PackedUnit;

  uint32_t codes, scales, full;

  template <typename Tile>
  __device__ PackedLane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane, uint32_t unit_bytes)
      : PackedLane(cta, warp % Tile::kConsumersPerStage / kPackedSlabs, warp % kPackedSlabs, lane,
                   unit_bytes) {}

  template <typename Units>
  __device__ PackedUnit load(const Units& units, uint32_t at, uint32_t i) const {
    return units.load(*this, at, i);
  }
  static __device__ const PackedUnit& joined(const PackedUnit& unit) { return unit; }

 protected:
  // For the slab of a unit: of the block-th 64 weights of the tile.
  template <typename Tile>
  __device__ PackedLane(const Cta90<Tile>& cta, uint32_t block, uint32_t slab, uint32_t lane,
                        uint32_t unit_bytes) {
    const uint32_t units = cta.weights(0) + block * (Tile::kSteps * unit_bytes);
    const uint32_t scale_bytes = unit_bytes - kPackedCodeBytes;
    codes = units + slab * kPackedSlabBytes + lane * 16;
    scales = units + kPackedCodeBytes + slab * (scale_bytes / 4) + lane / 4 * (scale_bytes / 32);
    full = cta.weights_full(0);
  }
};

// What a lane of a gated product reads: of b and of b2, first the one whose row has its place in
// the fragment.
struct GatedPackedUnit {
  PackedUnit in_place, other;
};

// A fragment of a gated product has eight rows of b and the same eight of b2 (wide/tile.h). One
// warp takes the rows g of a slab, and the next one the rows g + 8. So b has its place in the words
// of the first warp, and b2 in those of the second. The other operand's bits move to the place of
// the slab's other rows: magnitudes by three bits, signs by one, scales by two bytes.
struct GatedPackedLane : PackedLane {
  using Unit = GatedPackedUnit;

  uint32_t apart;   // bytes from the operand that has its place to the other one
  uint32_t place;   // bits of codes that have their place
  uint32_t rotate;  // by how many bits to the left the other magnitudes move
  uint32_t rotate_signs;
  uint32_t bytes;  // of both words of scales, for __byte_perm

  template <typename Tile>
  __device__ GatedPackedLane(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                             uint32_t unit_bytes)
      : PackedLane(cta, warp % 2, warp % Tile::kConsumersPerStage / 2, lane, unit_bytes) {
    const bool first = warp % 2 == 0;
    const uint32_t units = Tile::kSteps * unit_bytes;
    apart = first ? units : 0u - units;
    place = first ? 0xA1C7A1C7 : 0x5E385E38;
    rotate = first ? 3 : 32 - 3;
    rotate_signs = first ? 32 - 1 : 1;
    bytes = first ? 0x5410 : 0x3276;
  }

  template <typename Units>
  __device__ GatedPackedUnit load(const Units& units, uint32_t at, uint32_t i) const {
    return {units.load(*this, at, i), units.load(*this, at + apart, i)};
  }
  __device__ uint32_t joined(uint32_t in_place, uint32_t other) const {
    constexpr uint32_t kSigns = 0xF000F000;
    const uint32_t moved = ptx::lop3_select(kSigns, __funnelshift_l(other, other, rotate_signs),
                                            __funnelshift_l(other, other, rotate));
    return ptx::lop3_select(place, in_place, moved);
  }
  __device__ PackedUnit joined(const GatedPackedUnit& unit) const {
    const uint4 &x = unit.in_place.codes, &y = unit.other.codes;
    const uint2 &s = unit.in_place.scales, &t = unit.other.scales;
    return {make_uint4(joined(x.x, y.x), joined(x.y, y.y), joined(x.z, y.z), joined(x.w, y.w)),
            make_uint2(__byte_perm(s.x, t.x, bytes), __byte_perm(s.y, t.y, bytes))};
  }
};

template <typename Tile>
using PackedLaneOf = std::conditional_t<Tile::kGated, GatedPackedLane, PackedLane>;

// Each kind of scales has a struct: how units lie, and how a unit is decoded. load() reads the unit
// that is `at` bytes behind the first one of stage 0. begin_stage() comes before the first unit of
// a k-block, which is `at` bytes behind.
template <Sm90TokenType kType>
struct PackedNvfp4 : PackedOperand<kType> {
  __device__ explicit PackedNvfp4(const Sm90Params&) {}
  static __device__ uint32_t unit_bytes() { return kPackedUnitBytes; }
  static __device__ void begin_stage(const PackedLane&, uint32_t) {}
  static __device__ PackedUnit load(const PackedLane& lane, uint32_t at, uint32_t) {
    return {ptx::ld_shared_v4_b32(lane.codes + at), ptx::ld_shared_v2_b32(lane.scales + at)};
  }
  static __device__ void decode(const PackedUnit& unit, const PackedPowers& by,
                                uint32_t (&a)[4][4]) {
    decode_packed_unit<PackedOperand<kType>>(unit.codes, unit.scales, by, a);
  }
};

// UE8M0 scales in the entry for any product, of 16 or of 32 elements. Four steps of the latter have
// one word: its even bytes for two steps, then its odd ones.
struct PackedUe8m0 : PackedOperand<Sm90TokenType::bf16> {
  bool of_32;
  __device__ explicit PackedUe8m0(const Sm90Params& p) : of_32(p.weight_format == kFormatMxfp4) {}
  __device__ uint32_t unit_bytes() const { return of_32 ? kPackedUnitBytesOf32 : kPackedUnitBytes; }
  __device__ void begin_stage(const PackedLane&, uint32_t) const {}
  __device__ PackedUnit load(const PackedLane& lane, uint32_t at, uint32_t) const {
    const uint32_t first = ptx::ld_shared_b32(lane.scales + at);
    const uint32_t second = ptx::ld_shared_b32(lane.scales + at + (of_32 ? 0 : 4));
    return {ptx::ld_shared_v4_b32(lane.codes + at),
            make_uint2(__byte_perm(first, 0, of_32 ? 0x2200 : 0x3210),
                       __byte_perm(second, 0, of_32 ? 0x3311 : 0x3210))};
  }
  static __device__ void decode(const PackedUnit& unit, const PackedPowers& by,
                                uint32_t (&a)[4][4]) {
    decode_packed_unit<PackedUe8m0Operand>(unit.codes, unit.scales, by, a);
  }
};

// MXFP4 in an entry for such weights only, which asks once per k-block whether all scales of the
// warp are at most 1 (decode_packed_mxfp4).
struct PackedMxfp4 : PackedOperand<Sm90TokenType::bf16> {
  uint32_t scales[4];
  bool near = true;
  __device__ explicit PackedMxfp4(const Sm90Params&) {}
  static __device__ uint32_t unit_bytes() { return kPackedUnitBytesOf32; }
  __device__ void begin_stage(const PackedLane& lane, uint32_t at) {
    uint32_t all = 0;
#pragma unroll
    for (uint32_t unit = 0; unit < 4; ++unit) {
      scales[unit] = ptx::ld_shared_b32(lane.scales + at + unit * kPackedUnitBytesOf32);
      all |= scales[unit];
    }
    near = !__any_sync(0xFFFFFFFF, (all & 0x80808080) != 0);
  }
  __device__ PackedUnit load(const PackedLane& lane, uint32_t at, uint32_t unit) const {
    return {ptx::ld_shared_v4_b32(lane.codes + at), make_uint2(scales[unit], 0)};
  }
  __device__ void decode(const PackedUnit& unit, const PackedPowers& by,
                         uint32_t (&a)[4][4]) const {
    decode_packed_mxfp4(unit.codes, unit.scales.x, near, by, a);
  }
};

// Works like multiply_a16_step.
template <typename Tile, typename Units, uint32_t kBlockStep>
__device__ void multiply_packed_step(const Cta90<Tile>& cta, const PackedLaneOf<Tile>& at,
                                     uint32_t stage, const Units& units, const PackedPowers& by,
                                     uint32_t lane, bool first,
                                     typename PackedLaneOf<Tile>::Unit& unit, TokenSlot<Tile>& slot,
                                     float (&sums)[Tile::kTokens / 2]) {
  uint32_t a[4][4];
  units.decode(at.joined(unit), by, a);
  if (kBlockStep < 3) {
    unit = at.load(units, stage + (kBlockStep + 1) * units.unit_bytes(), kBlockStep + 1);
  }
  issue_part<Tile, Units, kBlockStep>(cta, a, lane, first, slot, sums);
}

// Works like multiply().
template <typename Tile, typename Units>
__device__ void multiply_packed_as(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                   WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  constexpr uint32_t kEmpty = Tile::kWeightsEmptyAt - Tile::kWeightsFullAt;
  const uint32_t group = warp / Tile::kConsumersPerStage;
  if (Tile::kGroups > 1 && group >= cta.count) {
#pragma unroll
    for (float& sum : sums) sum = 0;
    return;
  }
  Units units(cta.p);
  const PackedLaneOf<Tile> at(cta, warp, lane, units.unit_bytes());
  const PackedPowers by(min(cta.p.batches, 1));
  RingPosition<Tile::kStages>& stage = position.stage;
  TokenSlot<Tile>& slot = position.slot;
  const int32_t all = static_cast<int32_t>(cta.count - group);
  for (int32_t left = all; left > 0; left -= Tile::kGroups, stage.advance(Tile::kGroups)) {
    const uint32_t full = at.full + 8 * stage.stage;
    ptx::mbarrier_wait(full, stage.parity);
    note_stage(cta, cta.count - left);
    const uint32_t from = stage.stage * Tile::kWeightBytes;
    const bool first = left == all;
    units.begin_stage(at, from);
    typename PackedLaneOf<Tile>::Unit unit = at.load(units, from, 0);
    multiply_packed_step<Tile, Units, 0>(cta, at, from, units, by, lane, first, unit, slot, sums);
    multiply_packed_step<Tile, Units, 1>(cta, at, from, units, by, lane, false, unit, slot, sums);
    multiply_packed_step<Tile, Units, 2>(cta, at, from, units, by, lane, false, unit, slot, sums);
    multiply_packed_step<Tile, Units, 3>(cta, at, from, units, by, lane, false, unit, slot, sums);
    ptx::mbarrier_arrive(full + kEmpty);  // each lane for what it read, as in multiply()
  }
  ptx::wgmma_wait_group<0>();
  if (lane == 0) note_last_clock(kClock_last_commit);
  if (Tile::kSeveralTiles && lane == 0) ptx::mbarrier_arrive(cta.tokens_empty(slot.before));
}

// As multiply_a16(): each kind of scales has its own loop.
template <typename Tile>
__device__ void multiply_packed(const Cta90<Tile>& cta, uint32_t warp, uint32_t lane,
                                WidePosition<Tile>& position, float (&sums)[Tile::kTokens / 2]) {
  if constexpr (Tile::kMxfp4) {
    return multiply_packed_as<Tile, PackedMxfp4>(cta, warp, lane, position, sums);
  }
  if constexpr (kTakesUe8m0<Tile>) {
    if (cta.p.weight_format != kFormatNvfp4) {
      return multiply_packed_as<Tile, PackedUe8m0>(cta, warp, lane, position, sums);
    }
  }
  multiply_packed_as<Tile, PackedNvfp4<Tile::kTokenType>>(cta, warp, lane, position, sums);
}

}  // namespace nvfp4
