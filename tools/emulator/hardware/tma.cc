// SPDX-License-Identifier: MIT
// See tma.h. Alignments, fill, byte counts and clipping were measured on Hopper hardware.
#include "tools/emulator/hardware/tma.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/tensor_map_rules.h"
#include "tools/emulator/hardware/tma_rows.h"

namespace emu {
namespace {

constexpr uint32_t granule = 16;            // bytes: swizzle chunk, inner start, store clipping
constexpr uint32_t shared_alignment = 128;  // of the box, in every swizzle mode
constexpr uint32_t max_row = 256 * 8;       // bytes of a box row

// Calls f(row, shared address of its first byte before swizzling) for all rows of the box.
template <class F>
void for_rows(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address, F f) {
  each_row(m, c, [&](const TmaRow& row, uint32_t r) {
    f(row, shared_address + r * m.shared_row_bytes());
  });
}

uint32_t row_count(const TensorMap& m, const TmaCoordinates& c) {
  if (c.mode == TmaMode::rows4) return 4;
  return m.box_bytes() / m.row_bytes();
}

std::string text(const TensorMap& m, const TmaCoordinates& c) {
  std::string s = "{";
  const uint32_t n = c.mode == TmaMode::rows4 ? TensorMap::max_rank : m.rank;
  for (uint32_t i = 0; i < n; ++i) s += format("%s%d", i ? ", " : "", c.at[i]);
  return s + "}";
}

[[noreturn]] void refuse(const std::string& what) {
  throw Fault(FaultKind::illegal_instruction, what);
}

void check_mode(const char* who, const TensorMap& m, const TmaCoordinates& c) {
  if ((c.mode == TmaMode::im2col) != bool(m.im2col))
    refuse(format("%s: an im2col tensor map and .im2col go together", who));
  if (c.mode == TmaMode::rows4 && (m.rank != 2 || m.box[1] != 1))
    refuse(
        format("%s of four rows: the tensor map has rank %u and a box of %u rows, must be rank 2 "
               "and one row",
               who, m.rank, m.box[1]));
}

// PTX ISA 5.5.4.1: how far offsets go, and where the first pixel lies.
void check_pixels(const char* who, const TensorMap& m, const TmaCoordinates& c) {
  const uint32_t spatial = m.rank - 2u, bits = spatial == 1 ? 16 : spatial == 2 ? 8 : 5;
  for (uint32_t i = 1; i <= spatial; ++i) {
    if (c.offset[i - 1] >> bits)
      refuse(
          format("%s: im2col offset %u, has %u bits in %uD", who, c.offset[i - 1], bits, m.rank));
    if (c.at[i] < m.lower[i - 1] || c.at[i] > last_pixel(m, i))
      refuse(
          format("%s at %s: the first pixel is outside the pixel box in dimension %u, which goes "
                 "from %d to %lld",
                 who, text(m, c).c_str(), i, m.lower[i - 1], (long long)last_pixel(m, i)));
  }
}

bool converts(uint32_t type) { return type == f32_ftz || type == tf32 || type == tf32_ftz; }

void check(const char* who, const TensorMap& m, uint32_t rank, const TmaCoordinates& c,
           uint32_t shared) {
  if (rank != m.rank) refuse(format("%s.%ud with a tensor map of rank %u", who, rank, m.rank));
  check_mode(who, m, c);
  if (shared % shared_alignment)
    throw Fault(FaultKind::misaligned_address,
                format("%s: shared address 0x%x is not 128-byte aligned", who, shared));
  if (int64_t(c.at[0]) * m.element_bits() % (granule * 8))
    refuse(format("%s at %s: the box starts at no multiple of 16 bytes along dimension 0", who,
                  text(m, c).c_str()));
  if (m.padded() && c.at[0] % int32_t(m.box[0]))
    refuse(format("%s at %s: boxes of this type start at multiples of %u along dimension 0", who,
                  text(m, c).c_str(), m.box[0]));
  if (c.mode == TmaMode::im2col) check_pixels(who, m, c);
}

// 16 elements to every 16 bytes of shared memory, whose rest has no value (PTX ISA 5.5.1.1).
void write_padded_row(const TensorMap& m, uint32_t address, const uint8_t* row,
                      SharedMemory& shared) {
  const uint32_t piece = granule * uint32_t(m.element_bits()) / 8;
  for (uint32_t i = 0; i * piece < m.row_bytes(); ++i) {
    const uint32_t to = m.place(address + i * granule);
    shared.write(to, row + i * piece, piece, 0, "TMA load");
    shared.forget(to + piece, granule - piece, "TMA load");
  }
}

// Writes a row as long as the pattern is wide: its pieces only change places within it. False: it
// is no such row, or its place lies outside or holds an mbarrier, for which write() has the Fault.
bool write_line(const TensorMap& m, uint32_t address, const uint8_t* row, uint32_t piece,
                SharedMemory& shared) {
  constexpr uint32_t line = swizzle_span(Swizzle::b128);
  if (m.row_bytes() != line || address % line) return false;
  uint8_t* const to = shared.writable(address, line);
  if (!to) return false;
  for (uint32_t i = 0; i < line; i += piece)
    std::memcpy(to + (m.place(address + i) - address), row + i, piece);
  shared.have_values(address, line);
  return true;
}

void write_row(const TensorMap& m, uint32_t address, const uint8_t* row, SharedMemory& shared) {
  constexpr const char* who = "TMA load";
  if (m.padded()) return write_padded_row(m, address, row, shared);
  if (!m.swizzle) return shared.write(address, row, m.row_bytes(), 0, who);
  const uint32_t piece = Atom(m.atomicity) == Atom::b32_flip_8 ? granule / 2 : granule;
  if (write_line(m, address, row, piece, shared)) return;
  for (uint32_t i = 0; i < m.row_bytes(); i += piece)
    shared.write(m.place(address + i), row + i, piece, 0, who);
}

}  // namespace

uint32_t tma_bytes(const TensorMap& m, const TmaCoordinates& c) {
  return row_count(m, c) * m.row_bytes();
}

uint32_t tma_shared_bytes(const TensorMap& m, const TmaCoordinates& c) {
  return row_count(m, c) * m.shared_row_bytes();
}

void check_tma_load(const TensorMap& m, uint32_t rank, const TmaCoordinates& c, uint32_t shared) {
  check("TMA load", m, rank, c, shared);
  if (m.padded() && Atom(m.atomicity) == Atom::b64)
    refuse("TMA load: with this data type 64-byte atoms are for stores only");
}

void check_tma_store(const TensorMap& m, uint32_t rank, const TmaCoordinates& c, uint32_t shared) {
  check("TMA store", m, rank, c, shared);
  if (Atom(m.atomicity) == Atom::b32_flip_8)
    refuse("TMA store: the swizzle that flips 8 bytes is for loads only");
  if (m.padded() && m.element_bits() == 4)
    refuse("TMA store: 4-bit elements with gaps are for loads only");
  if (converts(m.type))
    refuse(format("TMA store of data type %u is not emulated: no manual says whether it converts",
                  m.type));
  const uint32_t coordinates = c.mode == TmaMode::rows4 ? TensorMap::max_rank : m.rank;
  for (uint32_t i = 0; i < coordinates; ++i)
    if (c.at[i] < 0)
      refuse(
          format("TMA store at %s: coordinates of a store are not negative", text(m, c).c_str()));
  if (c.mode != TmaMode::im2col) return;
  for (uint32_t i = 0; i + 2 < m.rank; ++i)
    if (m.lower[i] < 0 || m.upper[i] > 0)
      refuse("TMA store: the pixel box of a store lies inside the tensor");
}

namespace {

// Outside the tensor: zeros, or the NaN that the multiply-add takes as zero. Which NaN is not
// documented; the 16-bit pattern 0x7ff7 is what a public emulator of the TMA fills in.
void fill(uint8_t* row, size_t bytes, bool nan) {
  for (size_t i = 0; i < bytes; ++i) row[i] = nan ? (i % 2 ? 0x7F : 0xF7) : 0;
}

// .f32.ftz: a subnormal becomes the zero of its sign, as .ftz means everywhere in PTX.
void flush(uint8_t* row, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 4)
    if (!(row[i + 3] & 0x7F) && !(row[i + 2] & 0x80)) {
      row[i] = row[i + 1] = row[i + 2] = 0;
      row[i + 3] &= 0x80;
    }
}

// .tf32: to 10 bits of fraction, to the nearest, ties to even; infinities and NaN stay what they
// are. No manual says so; an sm_120 does it (triton-lang/triton pull request 11751).
void round_to_tf32(uint8_t* row, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 4) {
    uint32_t bits;
    std::memcpy(&bits, row + i, 4);
    if ((bits & 0x7F800000) == 0x7F800000) continue;
    bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu;
    std::memcpy(row + i, &bits, 4);
  }
}

void convert(uint32_t type, uint8_t* row, size_t bytes) {
  if (type == f32_ftz || type == tf32_ftz) flush(row, bytes);
  if (type == tf32 || type == tf32_ftz) round_to_tf32(row, bytes);
}

// 12 bytes of packed elements from the low 6 bits of each of 16 bytes.
void pack6(const uint8_t* from, uint8_t* to) {
  for (uint32_t i = 0; i < 16; i += 4) {
    uint32_t word = 0;
    for (uint32_t k = 0; k < 4; ++k) word |= uint32_t(from[i + k] & 63) << 6 * k;
    std::memcpy(to + i / 4 * 3, &word, 3);
  }
}

}  // namespace

namespace {

// The part of a row that lies inside the tensor: where, and what of the row.
struct Inside {
  uint64_t address, from, bytes;
};

// Pieces of the row in shared memory with bytes that have no value in global memory.
void forget_blank(const TensorMap& m, uint32_t address, int64_t row_bytes, SharedMemory& shared,
                  const GlobalMemory& global, const Inside& inside) {
  const uint64_t pieces = m.shared_row_bytes() / granule;
  const uint64_t bytes = pieces ? uint64_t(row_bytes) / pieces : 0;  // of a piece in global memory
  if (!bytes) return;
  for (const BlankBytes::Range& r : global.blank().within(inside.address, inside.bytes)) {
    const uint64_t first = inside.from + (r.address - inside.address);
    for (uint64_t p = first / bytes; p <= (first + r.bytes - 1) / bytes; ++p)
      shared.forget(m.place(address + uint32_t(p) * granule), granule, "TMA load",
                    "the TMA load found none in global memory: " + r.why);
  }
}

}  // namespace

void tma_load(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address,
              SharedMemory& shared, const GlobalMemory& global) {
  const int64_t row_bytes = m.row_bytes(), end = int64_t(m.inner_bytes(m.dim(0)));
  uint8_t buffer[max_row];
  for_rows(m, c, shared_address, [&](const TmaRow& row, uint32_t address) {
    const int64_t from = std::clamp<int64_t>(-row.start, 0, row_bytes);
    const int64_t to = row.inside ? std::clamp<int64_t>(end - row.start, from, row_bytes) : from;
    if (to - from < row_bytes) fill(buffer, size_t(row_bytes), m.oob_fill);
    if (to > from)
      std::memcpy(
          buffer + from,
          global.at(row.address + uint64_t(row.start + from), uint64_t(to - from), 1, "TMA load"),
          size_t(to - from));
    convert(m.type, buffer, size_t(row_bytes));
    write_row(m, address, buffer, shared);
    if (to > from)
      forget_blank(m, address, row_bytes, shared, global,
                   {row.address + uint64_t(row.start + from), uint64_t(from), uint64_t(to - from)});
  });
}

namespace {

// Packs a padded row as global memory has it and stores it, always in whole pieces.
void store_padded_row(const TensorMap& m, const TmaRow& row, uint32_t address,
                      const SharedMemory& shared, const GlobalMemory& global) {
  if (!row.inside || uint64_t(row.start) >= m.inner_bytes(m.dim(0))) return;
  uint8_t* to = global.at(row.address + uint64_t(row.start), m.row_bytes(), granule, "TMA store");
  const uint64_t there = row.address + uint64_t(row.start);
  global.blank().remove(there, m.row_bytes());
  for (uint32_t i = 0; i < m.box[0] / granule; ++i) {
    const uint32_t from = m.place(address + i * granule);
    pack6(shared.view_any(from, granule, "TMA store"), to + i * 12);
    if (!shared.has_value(from, granule, "TMA store"))  // their bits lie across its bytes
      global.blank().add({there + i * 12, 12,
                          format("TMA store of 16 bytes at shared address 0x%x with one that %s",
                                 from, shared.why_none(from).c_str())});
  }
}

}  // namespace

// A store writes whole 16-byte pieces: the one that holds the last element of dimension 0 is
// written completely, over what follows the row in memory.
void tma_store(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address,
               const SharedMemory& shared, const GlobalMemory& global) {
  const int64_t row_bytes = m.row_bytes();
  const int64_t end = (int64_t(m.inner_bytes(m.dim(0))) + granule - 1) / granule * granule;
  for_rows(m, c, shared_address, [&](const TmaRow& row, uint32_t address) {
    if (m.padded()) return store_padded_row(m, row, address, shared, global);
    if (!row.inside) return;
    const int64_t bytes = std::clamp<int64_t>(end - row.start, 0, row_bytes);
    if (bytes == 0) return;
    uint8_t* to =
        global.at(row.address + uint64_t(row.start), uint64_t(bytes), granule, "TMA store");
    const uint64_t there = row.address + uint64_t(row.start);
    for (uint32_t i = 0; i < bytes; i += granule) {
      const uint32_t from = m.place(address + i);
      std::memcpy(to + i, shared.view_any(from, granule, "TMA store"), granule);
      shared.hand_on_blank(from, global, there + i, granule, "TMA store");
    }
  });
}

std::vector<Rows> tma_rows(const TensorMap& m, const TmaCoordinates& c, TmaUse use) {
  int64_t end = int64_t(m.inner_bytes(m.dim(0)));
  if (use == TmaUse::store) end = (end + granule - 1) / granule * granule;
  std::vector<Rows> all;
  for_rows(m, c, 0, [&](const TmaRow& row, uint32_t) {
    const int64_t from = std::clamp<int64_t>(-row.start, 0, m.row_bytes());
    const int64_t to = std::clamp<int64_t>(end - row.start, from, m.row_bytes());
    if (!row.inside || to == from) return;
    const uint64_t address = row.address + uint64_t(row.start + from), bytes = uint64_t(to - from);
    Rows* last = all.empty() ? nullptr : &all.back();
    const bool alike = last && last->bytes == bytes && address > last->address;
    if (alike && last->count == 1) last->stride = address - last->address;
    if (alike && address == last->address + last->stride * last->count)
      ++last->count;
    else
      all.push_back({address, bytes, 0, 1});
  });
  return all;
}

void tma_update(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address,
                const SharedMemory& shared, const GlobalMemory& global, const TmaUpdate& update) {
  const uint32_t size = uint32_t(m.element_bits() / 8);
  const int64_t end = int64_t(m.inner_bytes(m.dim(0)));
  for_rows(m, c, shared_address, [&](const TmaRow& row, uint32_t address) {
    if (!row.inside) return;
    const int64_t bytes = std::clamp<int64_t>(end - row.start, 0, m.row_bytes());
    if (bytes == 0) return;
    uint8_t* to =
        global.at(row.address + uint64_t(row.start), uint64_t(bytes), size, "TMA reduction");
    global.require_values(row.address + uint64_t(row.start), uint64_t(bytes), "TMA reduction");
    for (uint32_t i = 0; i < bytes; i += size)
      update(to + i, shared.view(m.place(address + i), size, "TMA reduction"));
  });
}

void check_bulk_copy(uint64_t destination, uint64_t source, uint32_t bytes) {
  if (destination % granule || source % granule)
    throw Fault(FaultKind::misaligned_address,
                format("cp.async.bulk from 0x%llx to 0x%llx: both must be 16-byte aligned",
                       (unsigned long long)source, (unsigned long long)destination));
  // The hardware raises no error and never completes the copy.
  if (bytes % granule)
    throw Fault(
        FaultKind::illegal_instruction,
        format("cp.async.bulk of %u bytes: the size must be a multiple of 16, or the copy never "
               "completes",
               bytes));
}

}  // namespace emu
