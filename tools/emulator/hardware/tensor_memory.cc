// SPDX-License-Identifier: MIT
// See tensor_memory.h.
#include "tools/emulator/hardware/tensor_memory.h"

#include <algorithm>
#include <cstring>

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

Fault fault(std::string text) { return Fault(FaultKind::tensor_memory, std::move(text)); }

bool legal_size(uint32_t count) {
  return count >= 32 && count <= TensorMemory::columns && (count & (count - 1)) == 0;
}

}  // namespace

std::optional<uint32_t> TensorMemory::allocate(uint32_t count) {
  if (reserved_.empty()) {
    const std::optional<uint32_t> address = take(count);
    if (address) ++allocations_;
    return address;
  }
  const Range mine = reserved_.front();
  if (mine.count != count)
    throw fault(format("tcgen05.alloc of %u columns where the other CTA of the pair allocates %u",
                       count, mine.count));
  reserved_.erase(reserved_.begin());
  ++allocations_;
  return mine.column;
}

void TensorMemory::reserve(uint32_t address, uint32_t count) {
  const std::optional<uint32_t> mine = take(count);
  if (mine != address)
    throw fault(
        format("tcgen05.alloc of %u columns finds column %u in one CTA of the pair and not "
               "in the other; there: %s",
               count, address, describe().c_str()));
  reserved_.push_back({address, count});
}

std::optional<uint32_t> TensorMemory::take(uint32_t count) {
  if (!legal_size(count))
    throw fault(format("tcgen05.alloc of %u columns: 32, 64, 128, 256 or 512", count));
  if (relinquished_)
    throw fault("tcgen05.alloc after tcgen05.relinquish_alloc_permit in the same CTA");
  if (count > smallest_)
    throw fault(format("tcgen05.alloc of %u columns after one of %u: sizes must not increase",
                       count, smallest_));
  if (cells_.empty()) {
    cells_.resize(lanes * columns);
    written_.resize(lanes * columns);
  }
  for (uint32_t first = 0; first + count <= columns; first += 32) {
    bool free = true;
    for (uint32_t c = 0; c < count; ++c) free = free && !allocated_[first + c];
    if (!free) continue;
    for (uint32_t c = 0; c < count; ++c) allocated_.set(first + c);
    // What an earlier owner left behind is no value of the new one.
    for (uint32_t lane = 0; lane < lanes; ++lane)
      std::fill_n(written_.begin() + lane * columns + first, count, State::nothing);
    ranges_.push_back({first, count});
    smallest_ = count;
    return first;
  }
  return std::nullopt;
}

void TensorMemory::deallocate(uint32_t address, uint32_t count) {
  auto it = std::find_if(ranges_.begin(), ranges_.end(),
                         [&](const Range& r) { return r.column == address && r.count == count; });
  if (it == ranges_.end())
    throw fault(
        format("tcgen05.dealloc of %u columns at address 0x%x, which no tcgen05.alloc "
               "returned with that size; %s",
               count, address, describe().c_str()));
  for (uint32_t c = 0; c < count; ++c) allocated_.reset(it->column + c);
  ranges_.erase(it);
  ++deallocations_;
}

void TensorMemory::check_exit() const {
  if (!ranges_.empty())
    throw fault("the CTA ends without tcgen05.dealloc of its tensor memory; " + describe());
}

std::string TensorMemory::describe() const {
  if (ranges_.empty()) return "no tensor memory is allocated";
  std::string text = "allocated columns:";
  for (const Range& r : ranges_) text += format(" [%u, %u)", r.column, r.column + r.count);
  return text;
}

void TensorMemory::require(uint32_t column, uint32_t count, const char* who) const {
  for (const Range& r : ranges_)
    if (column >= r.column && column + count <= r.column + r.count) return;
  for (uint32_t c = column; c < column + count; ++c)
    if (c >= columns || !allocated_[c])
      throw fault(
          format("%s touches tensor memory column %u of [%u, %u), which is not allocated; %s", who,
                 c, column, column + count, describe().c_str()));
}

void TensorMemory::unwritten(uint32_t lane, uint32_t column, const char* who) const {
  throw Fault(FaultKind::uninitialised,
              format("%s reads tensor memory lane %u column %u, which holds no value: ", who, lane,
                     column) +
                  why_none(lane, column));
}

std::string TensorMemory::why_none(uint32_t lane, uint32_t column) const {
  if (written_[lane * columns + column] == State::lost) return lost_why_;
  return "nothing wrote it since the allocation, or a tcgen05.cp took it from bytes nobody wrote";
}

uint32_t TensorMemory::read(uint32_t lane, uint32_t column, const char* who) const {
  return *read_row(lane, column, 1, who);
}

void TensorMemory::write(uint32_t lane, uint32_t column, uint32_t bits, const char* who) {
  *write_row(lane, column, 1, who) = bits;
}

const uint32_t* TensorMemory::read_row(uint32_t lane, uint32_t column, uint32_t count,
                                       const char* who) const {
  require(column, count, who);
  if (const uint32_t* row = known_row(lane, column, count)) return row;
  uint32_t c = column;
  while (has_value(lane, c)) ++c;
  unwritten(lane, c, who);
}

const uint32_t* TensorMemory::known_row(uint32_t lane, uint32_t column, uint32_t count) const {
  const uint32_t first = lane * columns + column;
  const State* const states = &written_[first];
  const bool all = states[0] == State::value && !std::memcmp(states, states + 1, count - 1);
  return all ? cells_.data() + first : nullptr;
}

uint32_t* TensorMemory::write_row(uint32_t lane, uint32_t column, uint32_t count, const char* who) {
  require(column, count, who);
  const uint32_t first = lane * columns + column;
  std::fill_n(written_.begin() + first, count, State::value);
  return cells_.data() + first;
}

uint32_t* TensorMemory::update_row(uint32_t lane, uint32_t column, uint32_t count, const char* who,
                                   uint32_t line) {
  require(column, count, who);
  const uint32_t first = lane * columns + column;
  static_assert(sizeof(State) == 1);
  if (std::memchr(&written_[first], int(State::nothing), count))
    for (uint32_t c = column; c < column + count; ++c)
      if (written_[lane * columns + c] == State::nothing)
        lose(lane, c,
             format("a %s added to tensor memory lane %u column %u, which was never written (PTX "
                    "line %u)",
                    who, lane, c, line));
  return cells_.data() + first;
}

void TensorMemory::lose(uint32_t lane, uint32_t column, const std::string& why) {
  written_[lane * columns + column] = State::lost;
  lost_why_ = why;
}

}  // namespace emu
