// SPDX-License-Identifier: MIT
// See tma.h. Alignments, fill, byte counts and clipping were measured on Hopper hardware.
#include "tma.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "../fault.h"

namespace emu {
namespace {

constexpr uint32_t granule = 16;            // bytes: swizzle chunk, inner start, store clipping
constexpr uint32_t shared_alignment = 128;  // of the box, in every swizzle mode
constexpr uint32_t max_row = 256 * 8;       // bytes of a box row

// A row of the box: where it lies in the tensor.
struct Row {
  bool inside = true;    // in bounds in dimensions 1 and up
  uint64_t address = 0;  // of element 0 of dimension 0
  int64_t start = 0;     // bytes from there to the row's start, negative = before the tensor
};

// Calls f(row, shared address of its first byte before swizzling) for all rows of the box.
template <class F>
void for_rows(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address, F f) {
  uint32_t rows = 1;
  for (uint32_t i = 1; i < m.rank; ++i) rows *= m.extent(i);
  for (uint32_t r = 0; r < rows; ++r) {
    Row row{true, m.address, int64_t(c.at[0]) * m.element_bits() / 8};
    for (uint32_t i = 1, rest = r; i < m.rank; rest /= m.extent(i), ++i) {
      const int64_t at = int64_t(c.at[i]) + rest % m.extent(i) * m.element_strides[i];
      row.inside = row.inside && at >= 0 && uint64_t(at) < m.dim(i);
      row.address += uint64_t(at) * m.stride(i);
    }
    f(row, shared_address + r * m.row_bytes());
  }
}

std::string text(const TensorMap& m, const TmaCoordinates& c) {
  std::string s = "{";
  for (uint32_t i = 0; i < m.rank; ++i) s += format("%s%d", i ? ", " : "", c.at[i]);
  return s + "}";
}

void check(const char* who, const TensorMap& m, uint32_t rank, const TmaCoordinates& c,
           uint32_t shared) {
  if (rank != m.rank)
    throw Fault(FaultKind::illegal_instruction,
                format("%s.%ud with a tensor map of rank %u", who, rank, m.rank));
  if (shared % shared_alignment)
    throw Fault(FaultKind::misaligned_address,
                format("%s: shared address 0x%x is not 128-byte aligned", who, shared));
  if (int64_t(c.at[0]) * m.element_bits() % (granule * 8))
    throw Fault(FaultKind::illegal_instruction,
                format("%s at %s: the box starts at no multiple of 16 bytes along dimension 0", who,
                       text(m, c).c_str()));
}

void write_row(const TensorMap& m, uint32_t address, const uint8_t* row, SharedMemory& shared) {
  constexpr const char* who = "TMA load";
  if (!m.swizzle) return shared.write(address, row, m.row_bytes(), 0, who);
  const uint32_t piece = Atom(m.atomicity) == Atom::b32_flip_8 ? granule / 2 : granule;
  for (uint32_t i = 0; i < m.row_bytes(); i += piece)
    shared.write(m.place(address + i), row + i, piece, 0, who);
}

}  // namespace

void check_tma_load(const TensorMap& m, uint32_t rank, const TmaCoordinates& c, uint32_t shared) {
  check("TMA load", m, rank, c, shared);
}

void check_tma_store(const TensorMap& m, uint32_t rank, const TmaCoordinates& c, uint32_t shared) {
  check("TMA store", m, rank, c, shared);
  if (Atom(m.atomicity) == Atom::b32_flip_8)
    throw Fault(FaultKind::illegal_instruction,
                "TMA store: the swizzle that flips 8 bytes is for loads only");
  for (uint32_t i = 0; i < m.rank; ++i)
    if (c.at[i] < 0)
      throw Fault(
          FaultKind::illegal_instruction,
          format("TMA store at %s: coordinates of a store are not negative", text(m, c).c_str()));
}

namespace {

// Outside the tensor: zeros, or the NaN that the multiply-add takes as zero. Which NaN is not
// documented; the 16-bit pattern 0x7ff7 is what a public emulator of the TMA fills in.
void fill(uint8_t* row, size_t bytes, bool nan) {
  for (size_t i = 0; i < bytes; ++i) row[i] = nan ? (i % 2 ? 0x7F : 0xF7) : 0;
}

}  // namespace

void tma_load(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address,
              SharedMemory& shared, const GlobalMemory& global) {
  const int64_t row_bytes = m.row_bytes(), end = int64_t(m.inner_bytes(m.dim(0)));
  uint8_t buffer[max_row];
  for_rows(m, c, shared_address, [&](const Row& row, uint32_t address) {
    const int64_t from = std::clamp<int64_t>(-row.start, 0, row_bytes);
    const int64_t to = row.inside ? std::clamp<int64_t>(end - row.start, from, row_bytes) : from;
    fill(buffer, size_t(row_bytes), m.oob_fill);
    if (to > from)
      std::memcpy(
          buffer + from,
          global.at(row.address + uint64_t(row.start + from), uint64_t(to - from), 1, "TMA load"),
          size_t(to - from));
    write_row(m, address, buffer, shared);
  });
}

// A store writes whole 16-byte pieces: the one that holds the last element of dimension 0 is
// written completely, over what follows the row in memory.
void tma_store(const TensorMap& m, const TmaCoordinates& c, uint32_t shared_address,
               const SharedMemory& shared, const GlobalMemory& global) {
  const int64_t row_bytes = m.row_bytes();
  const int64_t end = (int64_t(m.inner_bytes(m.dim(0))) + granule - 1) / granule * granule;
  for_rows(m, c, shared_address, [&](const Row& row, uint32_t address) {
    if (!row.inside) return;
    const int64_t bytes = std::clamp<int64_t>(end - row.start, 0, row_bytes);
    if (bytes == 0) return;
    uint8_t* to =
        global.at(row.address + uint64_t(row.start), uint64_t(bytes), granule, "TMA store");
    for (uint32_t i = 0; i < bytes; i += granule)
      std::memcpy(to + i, shared.view(m.place(address + i), granule, "TMA store"), granule);
  });
}

std::vector<Rows> tma_rows(const TensorMap& m, const TmaCoordinates& c, TmaUse use) {
  int64_t end = int64_t(m.inner_bytes(m.dim(0)));
  if (use == TmaUse::store) end = (end + granule - 1) / granule * granule;
  std::vector<Rows> all;
  for_rows(m, c, 0, [&](const Row& row, uint32_t) {
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
  for_rows(m, c, shared_address, [&](const Row& row, uint32_t address) {
    if (!row.inside) return;
    const int64_t bytes = std::clamp<int64_t>(end - row.start, 0, m.row_bytes());
    if (bytes == 0) return;
    uint8_t* to =
        global.at(row.address + uint64_t(row.start), uint64_t(bytes), size, "TMA reduction");
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
