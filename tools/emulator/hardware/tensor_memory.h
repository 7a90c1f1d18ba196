// SPDX-License-Identifier: MIT
// Tensor memory of one CTA: 128 lanes x 512 columns x 32 bits, allocated in whole columns.
//
// An address is lane << 16 | column. Each cell has a shadow: a cell that was not written since its
// column was allocated, or that tcgen05.cp filled from bytes nobody wrote, has no value. A cell
// also has no value if a tcgen05.mma computed it from something without a value, or if tcgen05.st
// stored a register without a value to it.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace emu {

class TensorMemory {
 public:
  static constexpr uint32_t lanes = 128, columns = 512;

  static constexpr uint32_t lane_of(uint32_t address) { return (address >> 16 & 0x3FFF) % lanes; }
  static constexpr uint32_t column_of(uint32_t address) { return address & 0xFFFF; }

  // tcgen05.alloc, dealloc, relinquish_alloc_permit (PTX ISA 9.7.16.7). allocate returns the
  // address, or nothing when the columns are taken and the instruction has to wait. Faults:
  // tensor_memory.
  std::optional<uint32_t> allocate(uint32_t count);
  // .cta_group::2: the peer's allocate found `address`. The same columns are reserved here; this
  // CTA's own allocate returns them later. Fault if it would find other ones.
  void reserve(uint32_t address, uint32_t count);
  bool has_reserved() const { return !reserved_.empty(); }
  void deallocate(uint32_t address, uint32_t count);
  void relinquish() { relinquished_ = true; }
  void check_exit() const;  // Fault if columns are still allocated when the CTA ends
  std::string describe() const;
  uint32_t allocations() const { return allocations_; }  // so far, the freed ones included
  uint32_t deallocations() const { return deallocations_; }

  // One cell. Fault outside the allocated columns; read also faults when the cell has no value.
  uint32_t read(uint32_t lane, uint32_t column, const char* who) const;
  bool has_value(uint32_t lane, uint32_t column) const {
    return written_[lane * columns + column] == State::value;
  }
  // The value that `copies` lanes, `step` apart, have in an allocated column. Nothing if one of
  // them has no value or a different one.
  std::optional<uint32_t> agreed(uint32_t lane, uint32_t column, uint32_t copies,
                                 uint32_t step) const {
    const uint32_t first = lane * columns + column;
    bool alike = true;
    for (uint32_t i = 0; i < copies; ++i)
      alike &= written_[first + i * step * columns] == State::value &&
               cells_[first + i * step * columns] == cells_[first];
    return alike ? std::optional(cells_[first]) : std::nullopt;
  }
  void write(uint32_t lane, uint32_t column, uint32_t bits, const char* who);
  void forget(uint32_t lane, uint32_t column) {
    written_[lane * columns + column] = State::nothing;
  }

  // `count` neighbouring columns of one lane, for the tensor core.
  const uint32_t* read_row(uint32_t lane, uint32_t column, uint32_t count, const char* who) const;
  uint32_t* write_row(uint32_t lane, uint32_t column, uint32_t count, const char* who);
  // The same without a Fault, of allocated columns: nullptr where one has no value.
  const uint32_t* known_row(uint32_t lane, uint32_t column, uint32_t count) const;
  // The cells that the MMA of that PTX line adds to. A cell without a value has none afterwards.
  uint32_t* update_row(uint32_t lane, uint32_t column, uint32_t count, const char* who,
                       uint32_t line);
  void lose(uint32_t lane, uint32_t column, const std::string& why);
  std::string why_none(uint32_t lane, uint32_t column) const;  // of a cell without a value

  // Fault unless all of [column, column + count) are allocated.
  void require(uint32_t column, uint32_t count, const char* who) const;

 private:
  struct Range {
    uint32_t column, count;
  };
  std::optional<uint32_t> take(uint32_t count);
  enum class State : uint8_t { nothing, value, lost };
  [[noreturn]] void unwritten(uint32_t lane, uint32_t column, const char* who) const;

  std::vector<Range> ranges_;    // live allocations
  std::vector<Range> reserved_;  // of them, those whose own allocate has not come
  std::bitset<columns> allocated_;
  uint32_t smallest_ = columns;  // of all allocations so far: sizes must not increase
  bool relinquished_ = false;
  uint32_t allocations_ = 0, deallocations_ = 0;
  std::vector<uint32_t> cells_;  // lane * columns + column; empty until the first allocation
  std::vector<State> written_;
  std::string lost_why_;  // of the cells that were lost last
};

}  // namespace emu
