// SPDX-License-Identifier: MIT
#include "tools/emulator/test/support/golden_forms.h"

#include <sstream>

#include "tools/testing/golden_tables.h"

namespace unit {
namespace {

using Out = std::ostringstream;

// Bytes of K that a swizzle permutes, its code in bits 63:61 of a descriptor, and the elements of K
// of the two tiles that smem_desc_kmajor_fp4 has.
constexpr struct Mode {
  const char* name;
  uint32_t span;
  uint64_t code;
  uint32_t k_tiles[2];
} modes[] = {{"SW128", 128, 2, {256, 512}},
             {"SW64", 64, 4, {128, 256}},
             {"SW32", 32, 6, {64, 256}},
             {"NONE", 16, 0, {64, 256}}};

// An atom is `span` bytes of K of every row; atoms follow each other along K.
uint32_t unswizzled(const Mode& mode, uint32_t rows, uint32_t row, uint32_t byte) {
  return byte / mode.span * mode.span * rows + row * mode.span + byte % mode.span;
}

// Bits 9:7 of the offset flip bits 6:4, as many of them as the atom has chunks of 16 bytes.
uint32_t swizzled(const Mode& mode, uint32_t row, uint32_t byte) {
  const uint32_t at = unswizzled(mode, 128, row, byte);
  return at ^ (at >> 3 & (mode.span - 16));
}

void smem_swizzle(Out& out) {
  out << "swizzle,row,k,byte_offset,bit_shift\n";
  for (const Mode& mode : modes) {
    const auto line = [&](uint32_t row, uint32_t k) {
      out << mode.name << ',' << row << ',' << k << ',' << swizzled(mode, row, k / 2) << ','
          << k % 2 * 4 << '\n';
    };
    for (uint32_t row = 0; row < 128; ++row)
      for (uint32_t k = 0; k < 256; k += row < 16 ? 2 : 32) line(row, k);
    for (uint32_t row = 0; row < 4; ++row)
      for (uint32_t k = 1; k < 64; k += 2) line(row, k);
  }
}

// CUTLASS writes 1 into the leading offset of a swizzled operand, where hardware ignores it.
void smem_desc_kmajor(Out& out) {
  out << "swizzle,operand,mn,k_tile,smem_base,k_block,desc\n";
  constexpr struct {
    char name;
    uint32_t rows;
  } operands[] = {{'B', 64}, {'B', 96}, {'A', 128}, {'B', 128}, {'B', 192}, {'B', 256}};
  for (const Mode& mode : modes)
    for (const uint32_t k_tile : mode.k_tiles)
      for (const auto& operand : operands)
        for (const uint32_t base : {0u, 1024u, 65536u, 229376u})
          for (uint32_t block = 0; block < k_tile / 64; ++block) {
            const uint64_t lead = mode.code != 0 ? 1 : operand.rows, stride = mode.span / 2;
            const uint64_t desc = mode.code << 61 | uint64_t(1) << 46 | stride << 32 | lead << 16 |
                                  (base + unswizzled(mode, operand.rows, 0, 32 * block)) / 16;
            char text[32];
            snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(desc));
            out << mode.name << ',' << operand.name << ',' << operand.rows << ',' << k_tile << ','
                << base << ',' << block << ',' << text << '\n';
          }
}

// Lane and column of a register of a thread, by the width of the shape's rows in bits.
struct Cell {
  uint32_t lane, column;
};
Cell loaded(uint32_t width, uint32_t t, uint32_t r) {
  switch (width) {
    case 32: return {t, r};
    case 64: return {t / 4 + 8 * (t % 2), t / 2 % 2 + 2 * r};
    case 128: return {t / 4 + 8 * (r % 2), t % 4 + 4 * (r / 2)};
    default: return {t / 4 + 8 * (r / 2 % 2), t % 4 * 2 + r % 2 + 8 * (r / 4)};
  }
}

void tcgen05_ld(Out& out) {
  out << "shape_num,thread_in_warp,reg,lane,col\n";
  for (const uint32_t width : {32, 64, 128, 256})
    for (const uint32_t times : {1, 2, 4, 16}) {
      if (times == 16 && width != 32) continue;
      const uint32_t registers = times * (width == 32 ? 1 : width / 64);
      for (uint32_t t = 0; t < 32; ++t)
        for (uint32_t r = 0; r < registers; ++r) {
          const Cell at = loaded(width, t, r);
          out << (width == 32 ? 32 : 16) << 'x' << width << "b.x" << times << ',' << t << ',' << r
              << ',' << at.lane << ',' << at.column << '\n';
        }
    }
}

void tcgen05_cp(Out& out) {
  out << "shape,smem_row16B,smem_byte_in_row,lane,col,byte_in_col\n";
  for (uint32_t row = 0; row < 32; ++row)
    for (uint32_t byte = 0; byte < 16; ++byte)
      for (uint32_t lane = row; lane < 128; lane += 32)
        out << "32x128b.warpx4," << row << ',' << byte << ',' << lane << ',' << byte / 4 << ','
            << byte % 4 << '\n';
}

// M = 64 leaves the upper half of each warp's lanes free. In a pair with M = 128 each CTA has 64
// rows: lanes 0 to 63 hold the lower half of N, the other lanes the upper half.
void accumulators(Out& out) {
  out << "frag,m,n,tmem_addr\n";
  for (const char* name : {"1sm_128xN", "1sm_64xN", "2sm_256xN_percta", "2sm_128xN_percta"}) {
    const bool half = std::string(name) == "1sm_64xN";
    const bool split = std::string(name) == "2sm_128xN_percta";
    for (uint32_t m = 0; m < (half || split ? 64 : 128); ++m)
      for (uint32_t n = 0; n < 64; n += 13) {
        const uint32_t lane = half ? m / 16 * 32 + m % 16 : split ? m + n / 32 * 64 : m;
        char text[16];
        snprintf(text, sizeof text, "0x%08x", lane << 16 | (split ? n % 32 : n));
        out << name << ',' << m << ',' << n << ',' << text << '\n';
      }
  }
}

// Shapes and element types are independent fields of an instruction descriptor.
void other_instructions(Out& out) {
  out << "kind_types,M,N,idesc\n";
  constexpr struct {
    const char* name;
    uint32_t bits;
  } kinds[] = {{"f16_f32acc", 0x010},  {"f16_f16acc", 0x000},  {"bf16_f32acc", 0x490},
               {"tf32_f32acc", 0x910}, {"e4m3_f32acc", 0x010}, {"e5m2_f32acc", 0x490},
               {"s8_s32acc", 0x4A0}};
  constexpr uint32_t shapes[][2] = {{64, 64},   {64, 128},  {128, 16},  {128, 64},
                                    {128, 128}, {128, 256}, {256, 128}, {256, 256}};
  for (const auto& kind : kinds)
    for (const auto& [m, n] : shapes) {
      char text[16];
      snprintf(text, sizeof text, "0x%08x", m / 16 << 24 | n / 8 << 17 | kind.bits);
      out << kind.name << ',' << m << ',' << n << ',' << text << '\n';
    }
}

constexpr struct {
  const char* name;
  void (*write)(Out&);
  uint64_t fnv1a;  // of CuTe's text
} forms[] = {
    {"smem_swizzle_128x256_fp4", smem_swizzle, 0x2ca43318efe693d5},
    {"smem_desc_kmajor_fp4", smem_desc_kmajor, 0x421379e2d1f14dd3},
    {"idesc_other", other_instructions, 0xc36be0a7be308aac},
    {"tcgen05_ld_map", tcgen05_ld, 0xa11e5fcd0419165c},
    {"tcgen05_cp_map", tcgen05_cp, 0x28bbf2b0330783d9},
    {"acc_layout", accumulators, 0xa461272e68c11e87},
};

}  // namespace

std::string formed_table(const std::string& name) {
  for (const auto& form : forms) {
    if (name != form.name) continue;
    Out out;
    form.write(out);
    INFO("the closed form of " << name << " is not CuTe's table");
    REQUIRE(golden_tables::fnv1a(out.str()) == form.fnv1a);
    return out.str();
  }
  return golden_tables::table(name);
}

}  // namespace unit
