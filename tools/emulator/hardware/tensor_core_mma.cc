// SPDX-License-Identifier: MIT
// tcgen05.mma: checks what the instruction says, gathers the operands, computes. See tensor_core.h.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tools/emulator/arithmetic/mma_block_scaled.h"
#include "tools/emulator/arithmetic/mma_dot.h"
#include "tools/emulator/arithmetic/mma_element.h"
#include "tools/emulator/hardware/mma_layout.h"
#include "tools/emulator/hardware/mma_operand.h"
#include "tools/emulator/hardware/tensor_core.h"

namespace emu {
namespace {

constexpr uint32_t band = 32;                      // lanes between the copies of a scale word
constexpr uint32_t words = operand_row_bytes / 4;  // columns of a row of A in tensor memory

// An instruction that was found to make sense.
struct Mma {
  MmaShape shape;
  DataPath path;
  uint32_t lane;  // where layout F starts: 0 or 16
  MmaOperand a, b;
  uint32_t a_rows, b_rows;  // of each CTA
};

uint32_t element_bytes(ElementType t) { return operand_row_bytes / element_count(t); }

// Kinds whose elements may be 4, 6 or 8 bits wide keep 16 of them in 16 bytes.
uint32_t chunk_data(MmaKind kind, ElementType t) {
  if (is_packed_fp4(kind)) return 16;
  return t == ElementType::e2m1 ? 8 : t == ElementType::e2m3 || t == ElementType::e3m2 ? 12 : 16;
}

// CUTLASS keeps the scale id in bits 31:30 of the address as well; the descriptor decides.
void check_scale_address(const char* name, uint32_t address, uint32_t id, uint32_t columns,
                         const TensorMemory& tensor) {
  const uint32_t column = TensorMemory::column_of(address);
  if (const uint32_t tag = address >> 30; tag && tag != id)
    throw Fault(FaultKind::illegal_instruction,
                format("%s address 0x%08x carries scale id %u in bits 31:30, the instruction "
                       "descriptor says %u",
                       name, address, tag, id));
  if (column % 2)
    throw Fault(FaultKind::misaligned_address,
                format("%s address 0x%08x: column %u is odd, scales start at an even one", name,
                       address, column));
  if (TensorMemory::lane_of(address))
    throw Fault(FaultKind::illegal_instruction,
                format("%s address 0x%08x: scales start at lane 0", name, address));
  tensor.require(column, columns, name);
}

void check_disjoint(uint32_t d, uint32_t n, const char* name, uint32_t address, uint32_t count) {
  const uint32_t first = TensorMemory::column_of(address);
  if (d < first + count && first < d + n)
    throw Fault(FaultKind::tensor_memory,
                format("tcgen05.mma: D in columns [%u, %u) overlaps %s in [%u, %u)", d, d + n, name,
                       first, first + count));
}

void check_scales(const MmaCommand& c, const Mma& m, const TensorMemory& tensor) {
  const uint32_t d = TensorMemory::column_of(c.d), n = accumulator_columns(m.shape, m.path);
  const uint32_t sfa = sfa_columns(m.path), sfb = sfb_columns(m.shape, m.path);
  check_scale_address("tcgen05.mma SFA", c.sfa, m.shape.sfa_id, sfa, tensor);
  check_scale_address("tcgen05.mma SFB", c.sfb, m.shape.sfb_id, sfb, tensor);
  check_disjoint(d, n, "SFA", c.sfa, sfa);
  check_disjoint(d, n, "SFB", c.sfb, sfb);
}

// Layout F uses half the lanes, those from 0 or from 16 on, and A and D the same ones.
void check_lanes(const MmaCommand& c, const Mma& m) {
  const auto check = [&](const char* name, uint32_t address) {
    const uint32_t lane = TensorMemory::lane_of(address);
    if (lane == 0 || (lane == 16 && m.path == DataPath::f)) return;
    throw Fault(FaultKind::illegal_instruction,
                format("tcgen05.mma: %s address 0x%08x: with M = %u it starts at lane 0%s", name,
                       address, m.shape.m, m.path == DataPath::f ? " or 16" : ""));
  };
  check("D", c.d);
  if (!c.a_in_tensor) return;
  check("A", uint32_t(c.a));
  if (TensorMemory::lane_of(uint32_t(c.a)) != m.lane)
    throw Fault(FaultKind::illegal_instruction,
                format("tcgen05.mma: A at 0x%08x and D at 0x%08x: M = 64 wants both in the same "
                       "half of the lanes",
                       uint32_t(c.a), c.d));
}

void check_a_in_tensor(const MmaCommand& c, const Mma& m, const TensorMemory& tensor) {
  const uint32_t column = TensorMemory::column_of(uint32_t(c.a));
  if (m.shape.transpose_a)
    throw Fault(FaultKind::illegal_instruction,
                "tcgen05.mma: A in tensor memory cannot be transposed (bit 15 of the instruction "
                "descriptor)");
  if (!is_packed_fp4(c.kind) && m.shape.a >= ElementType::e2m3 && m.shape.a <= ElementType::e2m1)
    throw Fault(FaultKind::illegal_instruction,
                "tcgen05.mma with 4- or 6-bit elements of A in tensor memory is not emulated: how "
                "they lie in their bytes is not known here");
  tensor.require(column, words, "tcgen05.mma A");
  check_disjoint(TensorMemory::column_of(c.d), accumulator_columns(m.shape, m.path), "A",
                 uint32_t(c.a), words);
}

// The manual's examples of masks (9.7.16.4.3) and its table of the mask's fields disagree on which
// span has the zeros. No known program uses a mask.
void check_zero_columns(const MmaCommand& c) {
  const bool mask = c.zero_columns >> 39 & 1;
  const uint32_t shift = c.zero_columns >> 56 & 63;
  if (mask || shift)
    throw Fault(
        FaultKind::illegal_instruction,
        format("tcgen05.mma.ws with the zero-column mask descriptor 0x%016llx is not "
               "emulated: bit 39 (there is a mask) and bits 61:56 (a shift of columns) have "
               "to be 0",
               (unsigned long long)c.zero_columns));
}

Mma check(const MmaCommand& c, const Memories& ctas) {
  const bool pair = ctas.size() == 2;
  Mma m;
  m.shape = decode_instruction_descriptor(c.instruction, c.kind, c.block, pair, c.weights);
  m.path = data_path(m.shape, pair, c.weights);
  check_zero_columns(c);
  m.lane = TensorMemory::lane_of(c.d);
  m.a_rows = m.shape.m / uint32_t(ctas.size());
  m.b_rows = m.shape.n / uint32_t(ctas.size());
  m.a = {c.a,
         m.a_rows,
         m.shape.transpose_a,
         element_bytes(m.shape.a),
         "tcgen05.mma A",
         chunk_data(c.kind, m.shape.a)};
  m.b = {c.b,
         m.b_rows,
         m.shape.transpose_b,
         element_bytes(m.shape.b),
         "tcgen05.mma B",
         chunk_data(c.kind, m.shape.b)};
  check_lanes(c, m);
  each_cta(ctas, [&](uint32_t i) {
    const TensorMemory& tensor = ctas[i].tensor;
    tensor.require(TensorMemory::column_of(c.d), accumulator_columns(m.shape, m.path),
                   "tcgen05.mma D");
    if (c.a_in_tensor) check_a_in_tensor(c, m, tensor);
    if (is_block_scaled(c.kind)) check_scales(c, m, tensor);
  });
  return m;
}

// Returns a row of A in a lane of tensor memory. If the row lacks a value, adds it to `missing` as
// row `r` and returns nullptr.
const uint32_t* row_in(const TensorMemory& tensor, uint32_t lane, uint32_t column, uint32_t r,
                       const char* who, MissingRows& missing) {
  if (const uint32_t* row = tensor.known_row(lane, column, words)) return row;
  while (tensor.has_value(lane, column)) ++column;
  missing.add(r, who, "tensor memory", lane << 16 | column);
  return nullptr;
}

// With .ws each part of N has its own copy of A. If the copies differ, the parts of D are products
// of different matrices: FlashMLA's kernels, in use on B200s, need that.
void gather_copies(const MmaCommand& c, const TensorMemory& tensor, uint8_t* packed,
                   MissingRows& missing) {
  const uint32_t column = TensorMemory::column_of(uint32_t(c.a));
  for (uint32_t lane = 0; lane < TensorMemory::lanes; ++lane)
    if (const uint32_t* row = row_in(tensor, lane, column, lane, "tcgen05.mma.ws A", missing))
      std::memcpy(packed + lane * operand_row_bytes, row, operand_row_bytes);
}

// The rows of this CTA are those from `first` on in `missing`.
void gather_a_from_tensor(const MmaCommand& c, const Mma& m, const TensorMemory& tensor,
                          uint8_t* packed, uint32_t first, MissingRows& missing) {
  constexpr const char* who = "tcgen05.mma A";
  const uint32_t column = TensorMemory::column_of(uint32_t(c.a));
  if (c.weights) return gather_copies(c, tensor, packed, missing);
  for (uint32_t r = 0; r < m.a_rows; ++r) {
    const std::vector<uint32_t> lanes = operand_lanes(m.path, r, m.lane);
    const uint32_t* row = row_in(tensor, lanes[0], column, first + r, who, missing);
    for (size_t i = 1; row && i < lanes.size(); ++i) {
      const uint32_t* copy = row_in(tensor, lanes[i], column, first + r, who, missing);
      if (copy && std::memcmp(row, copy, operand_row_bytes))
        throw Fault(FaultKind::tensor_memory,
                    format("%s: row %u differs between its copies in lanes %u and %u", who, r,
                           lanes[0], lanes[i]));
      row = copy;
    }
    if (row) std::memcpy(packed + r * operand_row_bytes, row, operand_row_bytes);
  }
}

// Chooses the copy of a word of scales that the sums in a band of lanes read.
ScaleCell copy_for(const ScaleCell& cell, ScaleBands which, uint32_t of_band) {
  if (which == ScaleBands::equal) return cell;
  const uint32_t copy = which == ScaleBands::own ? of_band % cell.bands : 0;
  return {cell.lane + band * copy, cell.column, 1};
}

// One 32-bit word of scales. Which of its copies the hardware reads is not known, so they have to
// agree.
uint32_t scale_word(const TensorMemory& tensor, const ScaleCell& cell, uint32_t address,
                    uint32_t row, const char* who, MissingRows& missing) {
  const uint32_t column = TensorMemory::column_of(address) + cell.column;
  if (const auto word = tensor.agreed(cell.lane, column, cell.bands, band)) return *word;
  for (uint32_t i = 0; i < cell.bands; ++i) {
    const uint32_t lane = cell.lane + band * i;
    if (tensor.has_value(lane, column)) continue;
    missing.add(row, who, "tensor memory", lane << 16 | column);
    return 0;
  }
  const uint32_t word = tensor.read(cell.lane, column, who);
  for (uint32_t i = 1; i < cell.bands; ++i) {
    const uint32_t lane = cell.lane + band * i, other = tensor.read(lane, column, who);
    if (other != word)
      throw Fault(
          FaultKind::tensor_memory,
          format("%s: the scales of row %u differ between lane bands: column %u has 0x%08x in "
                 "lane %u and 0x%08x in lane %u",
                 who, row, column, word, cell.lane, other, lane));
  }
  return word;
}

// The codes of a row as the arithmetic wants them: one for mxf8f6f4, and four for the 4-bit kinds,
// one per group of 16. With block 32 the word has two of them, from byte `id` on, and each serves
// two groups.
struct Scales {
  uint32_t per_row, block, id;
  std::vector<uint8_t> codes;

  void set(uint32_t row, uint32_t word) {
    for (uint32_t g = 0; g < per_row; ++g)
      codes[row * per_row + g] = uint8_t(word >> 8 * (per_row == 1  ? id
                                                      : block == 16 ? g
                                                                    : id + g / 2));
  }
};

struct Operands {
  std::vector<uint8_t> a, b;
  std::vector<Scales> sfa, sfb;  // one for all lanes, or one for each band
  // Rows whose operand or scales lack a value. `no_a` numbers the rows as `a` does.
  MissingRows no_a, no_b;
};

void gather_sfb(const MmaCommand& c, const Mma& m, const Memories& ctas, uint32_t of_band,
                Scales& scales, MissingRows& missing) {
  constexpr const char* who = "tcgen05.mma SFB";
  for (uint32_t n = 0; n < m.shape.n; ++n) {
    const ScaleCell cell = copy_for(sfb_cell(m.shape, m.path, n), c.scale_bands, of_band);
    uint32_t word = 0;
    each_cta(ctas, [&](uint32_t i) {
      const uint32_t mine = scale_word(ctas[i].tensor, cell, c.sfb, n, who, missing);
      if (i && mine != word && !missing.rows[n])
        throw Fault(FaultKind::tensor_memory,
                    format("%s: the scales of row %u are 0x%08x here and 0x%08x in the even CTA; "
                           "both CTAs of a pair have all of SFB",
                           who, n, mine, word));
      word = mine;
    });
    scales.set(n, word);
  }
}

void gather_scales(const MmaCommand& c, const Mma& m, const Memories& ctas, Operands& o) {
  const uint32_t per_row = c.kind == MmaKind::mxf8f6f4 ? 1 : 4;
  const MmaShape& s = m.shape;
  const uint32_t bands = c.scale_bands == ScaleBands::own ? TensorMemory::lanes / band : 1;
  for (uint32_t b = 0; b < bands; ++b) {
    Scales sfa{per_row, s.block, s.sfa_id, std::vector<uint8_t>(s.m * per_row)};
    Scales sfb{per_row, s.block, s.sfb_id, std::vector<uint8_t>(s.n * per_row)};
    each_cta(ctas, [&](uint32_t i) {
      for (uint32_t r = 0; r < m.a_rows; ++r) {
        const uint32_t row = i * m.a_rows + r;
        const ScaleCell cell = copy_for(sfa_cell(r), c.scale_bands, b);
        sfa.set(row, scale_word(ctas[i].tensor, cell, c.sfa, row, "tcgen05.mma SFA", o.no_a));
      }
    });
    gather_sfb(c, m, ctas, b, sfb, o.no_b);
    o.sfa.push_back(std::move(sfa));
    o.sfb.push_back(std::move(sfb));
  }
}

Operands gather(const MmaCommand& c, const Mma& m, const Memories& ctas) {
  const MmaShape& s = m.shape;
  Operands o{std::vector<uint8_t>(std::max(s.m, TensorMemory::lanes) * operand_row_bytes),
             std::vector<uint8_t>(s.n * operand_row_bytes),
             {},
             {},
             {std::vector<uint8_t>(std::max(s.m, TensorMemory::lanes)), ""},
             {std::vector<uint8_t>(s.n), ""}};
  each_cta(ctas, [&](uint32_t i) {
    uint8_t* a = o.a.data() + i * m.a_rows * operand_row_bytes;
    if (c.a_in_tensor)
      gather_a_from_tensor(c, m, ctas[i].tensor, a, i * m.a_rows, o.no_a);
    else
      m.a.gather(ctas[i].shared, a, i * m.a_rows, o.no_a);
    const uint32_t first = i * m.b_rows;
    m.b.gather(ctas[i].shared, o.b.data() + first * operand_row_bytes, first, o.no_b);
  });
  if (is_block_scaled(c.kind)) gather_scales(c, m, ctas, o);
  return o;
}

// Where a strip's rows of A start in Operands::a.
uint32_t first_row(const MmaCommand& c, const Strip& strip) {
  return c.weights && c.a_in_tensor ? strip.lane : strip.row;
}

void multiply(const MmaCommand& c, const MmaShape& s, const Operands& o, const Strip& strip,
              uint32_t* d) {
  const uint32_t row = first_row(c, strip);
  const uint8_t *a = &o.a[row * operand_row_bytes], *b = &o.b[strip.n * operand_row_bytes];
  const bool scaled = is_block_scaled(c.kind);
  const size_t of_band = o.sfa.size() > 1 ? strip.lane / band : 0;
  const auto codes = [&](const std::vector<Scales>& all, uint32_t first) {
    return scaled ? &all[of_band].codes[first * all[of_band].per_row] : nullptr;
  };
  const uint8_t *sfa = codes(o.sfa, strip.row), *sfb = codes(o.sfb, strip.n);
  if (is_packed_fp4(c.kind))
    return mma_block_scaled(
        {a, b, sfa, sfb, strip.rows, strip.columns, s.scale, s.negate_a, s.negate_b}, d,
        TensorMemory::columns, c.accumulate, c.scaled_sum);
  mma_dot(
      {a, b, sfa, sfb, strip.rows, strip.columns, s.a, s.b, s.d, s.negate_a, s.negate_b, s.saturate,
       c.accumulate, c.zero_raises, c.scale_d, false, scaled && c.scaled_sum == ScaledSum::groups},
      d, TensorMemory::columns);
}

bool is_disabled(const MmaCommand& c, uint32_t cta, uint32_t lane) {
  return c.disabled[cta * 4 + lane / 32] >> lane % 32 & 1;
}

// The first run of rows of a strip, from row `from` on, that disable-output-lane does not mask. If
// bands have scales of their own, it ends with its band.
Strip enabled(const MmaCommand& c, const Strip& strip, uint32_t from) {
  while (from < strip.rows && is_disabled(c, strip.cta, strip.lane + from)) ++from;
  uint32_t to = from;
  uint32_t end = strip.rows;
  if (c.scale_bands == ScaleBands::own)
    end = std::min(end, from + band - (strip.lane + from) % band);
  while (to < end && !is_disabled(c, strip.cta, strip.lane + to)) ++to;
  return {strip.cta, strip.lane + from, strip.row + from, to - from, strip.n, strip.columns};
}

// Marks the sums that depend on a row of A or B without a value: the sums have no value either.
void lose(const MmaCommand& c, const Operands& o, const Strip& strip, TensorMemory& tensor) {
  const uint32_t column = TensorMemory::column_of(c.d);
  const std::string at = format(" (PTX line %u)", c.line);
  const std::string why_a = o.no_a.why + at, why_b = o.no_b.why + at;
  for (uint32_t r = 0; r < strip.rows; ++r) {
    const bool no_a = o.no_a.rows[first_row(c, strip) + r];
    for (uint32_t n = 0; n < strip.columns; ++n)
      if (no_a || o.no_b.rows[strip.n + n])
        tensor.lose(strip.lane + r, column + n, no_a ? why_a : why_b);
  }
}

void run_strip(const MmaCommand& c, const Mma& m, const Operands& o, const Strip& strip,
               TensorMemory& tensor) {
  const uint32_t column = TensorMemory::column_of(c.d);
  uint32_t* d = nullptr;
  for (uint32_t lane = strip.lane + strip.rows; lane-- > strip.lane;)
    d = c.accumulate ? tensor.update_row(lane, column, strip.columns,
                                         "tcgen05.mma with enable-input-d", c.line)
                     : tensor.write_row(lane, column, strip.columns, "tcgen05.mma D");
  multiply(c, m.shape, o, strip, d);
  if (o.no_a.any() || o.no_b.any()) lose(c, o, strip, tensor);
}

}  // namespace

namespace {

// The groups of 16 lanes that are touched: layout F leaves half of them to others.
uint16_t written_groups(const MmaCommand& c, const Mma& m, uint32_t cta) {
  uint16_t groups = 0;
  for (const Strip& s : accumulator_strips(m.shape, m.path, m.lane))
    for (uint32_t lane = s.lane; s.cta == cta && lane < s.lane + s.rows; ++lane)
      if (!is_disabled(c, cta, lane)) groups |= uint16_t(1u << lane / 16);
  return groups;
}

uint16_t read_groups(const Mma& m) {
  uint16_t groups = 0;
  for (uint32_t r = 0; r < m.a_rows; ++r)
    for (uint32_t lane : operand_lanes(m.path, r, m.lane)) groups |= uint16_t(1u << lane / 16);
  return groups;
}

}  // namespace

std::vector<Footprint> check_mma(const MmaCommand& c, const Memories& ctas) {
  const Mma m = check(c, ctas);
  const uint64_t depth = element_count(m.shape.a) * (is_packed_fp4(c.kind) ? 2 : 1);
  std::vector<Footprint> all;
  each_cta(ctas, [&](uint32_t i) {
    Footprint f{{},
                TensorMemory::column_of(c.d),
                accumulator_columns(m.shape, m.path),
                m.a_rows * m.shape.n * depth};
    if (is_block_scaled(c.kind))
      f.reads = {{TensorMemory::column_of(c.sfa), sfa_columns(m.path)},
                 {TensorMemory::column_of(c.sfb), sfb_columns(m.shape, m.path)}};
    f.groups = written_groups(c, m, i);
    if (c.a_in_tensor)
      f.reads.push_back({TensorMemory::column_of(uint32_t(c.a)), words, read_groups(m)});
    else
      f.chunks = m.a.chunks();
    const std::vector<uint32_t> b = m.b.chunks();
    f.chunks.insert(f.chunks.end(), b.begin(), b.end());
    all.push_back(std::move(f));
  });
  return all;
}

void run_mma(const MmaCommand& c, const Memories& ctas) {
  const Mma m = check(c, ctas);
  const Operands o = gather(c, m, ctas);
  for (const Strip& strip : accumulator_strips(m.shape, m.path, m.lane))
    for (Strip part = enabled(c, strip, 0); part.rows;
         part = enabled(c, strip, part.lane - strip.lane + part.rows))
      each_cta(ctas, [&](uint32_t i) {
        if (i == part.cta) run_strip(c, m, o, part, ctas[i].tensor);
      });
}

}  // namespace emu
