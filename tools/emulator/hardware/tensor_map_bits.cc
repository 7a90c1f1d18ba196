// SPDX-License-Identifier: MIT
// See tensor_map_bits.h.
#include "tools/emulator/hardware/tensor_map_bits.h"

#include <algorithm>

#include "tools/emulator/hardware/tensor_map_rules.h"

namespace emu {
namespace {

constexpr uint64_t mark_of_ours = 0x50414D2D524F5354;  // "TSOR-MAP"
constexpr uint8_t code_f32 = 7, code_f32_ftz = 8;

// tensormap.replace's numbers of element types, by CUtensorMapDataType; packed types have none
// here.
constexpr uint8_t type_codes[] = {0,        1,           2, 3, 4, 5, 6, 7, 9, 10, code_f32_ftz,
                                  code_f32, code_f32_ftz};

// The fields as the words hold them.
struct Fields {
  uint64_t address[1] = {}, rank[1] = {}, type[1] = {}, interleave[1] = {}, swizzle[1] = {},
           nan_fill[1] = {}, tf32[1] = {}, l2_promotion[1] = {}, stride[4] = {}, dim[5] = {},
           element_stride[5] = {}, box[5] = {}, large[1] = {}, packed_type[1] = {},
           atomicity[1] = {}, im2col[1] = {}, pixels[1] = {}, corner[6] = {}, mark[1] = {};
};

constexpr uint64_t ones(uint32_t count) { return count == 64 ? ~0ull : (1ull << count) - 1; }

void put(std::array<uint64_t, 16>& words, const Fields& f) {
#define BITS(field, index, from, count, word, first) \
  words[word] |= (f.field[index] >> from & ones(count)) << first;
#define OWN BITS
#include "tools/emulator/hardware/tensor_map_bits.def"
#undef OWN
#undef BITS
}

Fields fields_of(const std::array<uint64_t, 16>& words) {
  Fields f;
#define BITS(field, index, from, count, word, first) \
  f.field[index] |= (words[word] >> first & ones(count)) << from;
#define OWN BITS
#include "tools/emulator/hardware/tensor_map_bits.def"
#undef OWN
#undef BITS
  return f;
}

uint8_t type_of(const Fields& f) {
  if (f.packed_type[0]) return uint8_t(u4_align8 + f.packed_type[0] - 1);
  if (f.tf32[0]) return f.type[0] == code_f32 ? tf32 : tf32_ftz;
  return uint8_t(std::find(type_codes, type_codes + tf32, f.type[0]) - type_codes);
}

bool legal_type(const Fields& f) {
  if (f.packed_type[0]) return !f.type[0] && !f.tf32[0];
  return f.tf32[0] ? f.type[0] == code_f32 || f.type[0] == code_f32_ftz : type_of(f) < tf32;
}

}  // namespace

EncodedMap::EncodedMap(const TensorMap& m) {
  Fields f;
  f.address[0] = m.address;
  f.rank[0] = m.rank - 1u;
  const bool packed = m.type >= u4_align8;
  f.type[0] = packed ? 0 : type_codes[m.type];
  f.packed_type[0] = packed ? m.type - u4_align8 + 1 : 0;
  f.tf32[0] = m.type == tf32 || m.type == tf32_ftz;
  f.interleave[0] = m.interleave;
  f.swizzle[0] = m.swizzle;
  f.nan_fill[0] = m.oob_fill;
  f.l2_promotion[0] = m.l2_promotion;
  f.large[0] = 1;
  for (uint32_t i = 0; i + 1 < TensorMap::max_rank; ++i) f.stride[i] = m.strides[i] / 16;
  for (uint32_t i = 0; i < TensorMap::max_rank; ++i) {
    f.dim[i] = m.dims_minus_1[i];
    f.element_stride[i] = std::max<uint32_t>(m.element_strides[i], 1) - 1;
    f.box[i] = std::max<uint32_t>(m.box[i], 1) - 1;
  }
  f.atomicity[0] = m.atomicity;
  f.im2col[0] = m.im2col;
  f.pixels[0] = m.pixels;
  for (uint32_t i = 0; i < 3; ++i) {
    f.corner[i] = uint16_t(m.lower[i]);
    f.corner[3 + i] = uint16_t(m.upper[i]);
  }
  f.mark[0] = mark_of_ours;
  put(words, f);
}

bool EncodedMap::by_a_call() const { return words[15] == mark_of_ours; }

bool EncodedMap::decode(TensorMap* map) const {
  const Fields f = fields_of(words);
  std::array<uint64_t, 16> again = {};
  put(again, f);
  const bool nothing_of_ours = !words[12] && !words[13] && !words[14] && !words[15];
  if (again != words || !(by_a_call() || nothing_of_ours)) return false;
  if (f.rank[0] >= TensorMap::max_rank || !legal_type(f)) return false;
  TensorMap m;
  m.address = f.address[0];
  m.rank = uint8_t(f.rank[0] + 1);
  m.type = type_of(f);
  m.interleave = uint8_t(f.interleave[0]);
  m.swizzle = uint8_t(f.swizzle[0]);
  m.oob_fill = uint8_t(f.nan_fill[0]);
  m.l2_promotion = uint8_t(f.l2_promotion[0]);
  for (uint32_t i = 0; i + 1 < TensorMap::max_rank; ++i) m.strides[i] = f.stride[i] * 16;
  for (uint32_t i = 0; i < TensorMap::max_rank; ++i) {
    m.dims_minus_1[i] = uint32_t(f.dim[i]);
    m.element_strides[i] = uint8_t(f.element_stride[i] + 1);
    m.box[i] = uint32_t(f.box[i] + 1);
  }
  m.atomicity = uint8_t(f.atomicity[0]);
  m.im2col = uint8_t(f.im2col[0]);
  m.pixels = uint16_t(f.pixels[0]);
  for (uint32_t i = 0; i < 3; ++i) {
    m.lower[i] = int16_t(f.corner[i]);
    m.upper[i] = int16_t(f.corner[3 + i]);
  }
  *map = m;
  return true;
}

}  // namespace emu
