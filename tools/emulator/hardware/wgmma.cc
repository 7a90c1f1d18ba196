// SPDX-License-Identifier: MIT
// See wgmma.h. Fragment layouts: PTX ISA, Register Fragments for wgmma.mma_async.
#include "tools/emulator/hardware/wgmma.h"

#include <cstring>

#include "tools/emulator/arithmetic/mma_dot.h"
#include "tools/emulator/hardware/wgmma_descriptor.h"

namespace emu {
namespace {

constexpr const char* a_name = "wgmma.mma_async A";
constexpr const char* b_name = "wgmma.mma_async B";
constexpr uint32_t row_bytes = 32, lanes = 32;

struct Operand {
  uint64_t bits;
  uint32_t rows;
  bool mn_major;
  const char* name;

  WgmmaDescriptor decode() const { return decode_wgmma_descriptor(bits, rows, mn_major, name); }
};

Operand operand_a(const WgmmaCommand& c) { return {c.a, wgmma_rows, c.a_mn_major, a_name}; }
Operand operand_b(const WgmmaCommand& c) { return {c.b, c.n, c.b_mn_major, b_name}; }

// MN-major operands are 16-bit: 16 values of k, eight elements to a chunk.
constexpr uint32_t mn_depth = 16, mn_chunk = 8;

// Calls f for every chunk. K-major: f(row, chunk of K, address). MN-major: f(chunk of M or N, k,
// address).
template <class F>
void each_chunk(const Operand& o, F f) {
  const WgmmaDescriptor d = o.decode();
  if (!o.mn_major) {
    for (uint32_t r = 0; r < o.rows; ++r)
      for (uint32_t c = 0; c < row_bytes / 16; ++c) f(r, c, d.k_chunk(r, c));
  } else {
    for (uint32_t c = 0; c < o.rows / mn_chunk; ++c)
      for (uint32_t k = 0; k < mn_depth; ++k) f(c, k, d.mn_chunk(c, k));
  }
}

// A chunk of an operand; rows of which it lacks bytes go to `missing`.
const uint8_t* chunk(const Operand& o, const SharedMemory& shared, uint32_t row, uint32_t address,
                     MissingRows& missing) {
  if (const uint8_t* whole = shared.readable(address, 16)) return whole;
  const uint8_t* from = shared.view_any(address, 16, o.name);
  const uint32_t rows = o.mn_major ? mn_chunk : 1, bytes = 16 / rows;
  for (uint32_t i = 0; i < rows; ++i)
    if (!shared.has_value(address + i * bytes, bytes, o.name))
      missing.add(row * rows + i, o.name, "shared address", address + i * bytes);
  return from;
}

// Rows of 32 bytes of K, whichever way they lie in shared memory.
std::vector<uint8_t> gather(const Operand& o, const SharedMemory& shared, MissingRows& missing) {
  std::vector<uint8_t> rows(o.rows * row_bytes);
  each_chunk(o, [&](uint32_t row, uint32_t column, uint32_t address) {
    const uint8_t* from = chunk(o, shared, row, address, missing);
    if (!o.mn_major) {
      std::memcpy(&rows[row * row_bytes + column * 16], from, 16);
      return;
    }
    for (uint32_t i = 0; i < mn_chunk; ++i)
      std::memcpy(&rows[(row * mn_chunk + i) * row_bytes + column * 2], from + i * 2, 2);
  });
  return rows;
}

// Register r of a lane: four bytes of row lane / 4 (r odd: eight further down), the second half of
// the row from r = 2 on.
std::vector<uint8_t> gather(const Fragments& a) {
  std::vector<uint8_t> rows(wgmma_rows * row_bytes);
  for (uint32_t w = 0; w < wgmma_warps; ++w)
    for (uint32_t r = 0; r < a_registers; ++r)
      for (uint32_t l = 0; l < lanes; ++l)
        std::memcpy(&rows[fragment_row(w, r, l) * row_bytes + l % 4 * 4 + 16 * (r / 2)],
                    &a[(w * a_registers + r) * lanes + l], 4);
  return rows;
}

// Calls f(index of the fragment register's word, row, column of its first element).
template <class F>
void each_result(const WgmmaCommand& c, F f) {
  const uint32_t registers = c.d_registers(), per = c.d_type == AccumulatorType::f16 ? 2 : 1;
  for (uint32_t w = 0; w < wgmma_warps; ++w)
    for (uint32_t i = 0; i < registers; ++i)
      for (uint32_t l = 0; l < lanes; ++l) {
        // The lane's elements: two in a row, two in the row 8 below, then the same 8 columns on.
        const uint32_t element = i * per;
        f((w * registers + i) * lanes + l, 16 * w + l / 4 + 8 * (element / 2 % 2),
          8 * (element / 4) + 2 * (l % 4) + element % 2);
      }
}

DotOperands dot_operands(const WgmmaCommand& c, const uint8_t* a, const uint8_t* b) {
  DotOperands o{};
  o.a = a;
  o.b = b;
  o.rows = wgmma_rows;
  o.n = c.n;
  o.a_type = c.a_type;
  o.b_type = c.b_type;
  o.d_type = c.d_type;
  o.negate_a = c.negate_a;
  o.negate_b = c.negate_b;
  o.saturate = c.saturate;
  o.accumulate = c.accumulate;
  o.zero_raises = c.zero_raises;
  o.narrow = c.a_type == ElementType::e4m3 || c.a_type == ElementType::e5m2;
  return o;
}

}  // namespace

std::vector<uint32_t> check_wgmma(const WgmmaCommand& c) {
  std::vector<uint32_t> chunks;
  const auto add = [&](uint32_t, uint32_t, uint32_t address) { chunks.push_back(address); };
  if (!c.a_in_registers) each_chunk(operand_a(c), add);
  each_chunk(operand_b(c), add);
  return chunks;
}

bool starts_inside_pattern(const WgmmaCommand& c) {
  const bool a = !c.a_in_registers && operand_a(c).decode().starts_inside_pattern();
  return a || operand_b(c).decode().starts_inside_pattern();
}

void run_wgmma(const WgmmaCommand& c, const SharedMemory& shared, const Fragments& fragments,
               Fragments& d, WgmmaMissing& missing) {
  const std::vector<uint8_t> a =
      c.a_in_registers ? gather(fragments) : gather(operand_a(c), shared, missing.a);
  const std::vector<uint8_t> b = gather(operand_b(c), shared, missing.b);
  std::vector<uint32_t> sums(wgmma_rows * c.n);
  const bool pairs = c.d_type == AccumulatorType::f16;
  if (c.accumulate)
    each_result(c, [&](uint32_t word, uint32_t row, uint32_t column) {
      uint32_t* to = &sums[row * c.n + column];
      to[0] = pairs ? d[word] & 0xFFFF : d[word];
      if (pairs) to[1] = d[word] >> 16;
    });
  mma_dot(dot_operands(c, a.data(), b.data()), sums.data(), c.n);
  each_result(c, [&](uint32_t word, uint32_t row, uint32_t column) {
    const uint32_t* from = &sums[row * c.n + column];
    d[word] = pairs ? from[0] | from[1] << 16 : from[0];
  });
}

std::vector<uint32_t> lost_lanes(const WgmmaCommand& c, const WgmmaMissing& missing) {
  std::vector<uint32_t> lost(wgmma_warps * c.d_registers());
  const uint32_t per = c.d_type == AccumulatorType::f16 ? 2 : 1;
  each_result(c, [&](uint32_t word, uint32_t row, uint32_t column) {
    bool none = missing.a.rows[row];
    for (uint32_t i = 0; i < per; ++i) none |= bool(missing.b.rows[column + i]);
    lost[word / lanes] |= uint32_t(none) << word % lanes;
  });
  return lost;
}

}  // namespace emu
