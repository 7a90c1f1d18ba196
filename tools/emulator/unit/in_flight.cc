// SPDX-License-Identifier: MIT
// See in_flight.h.
#include "in_flight.h"

#include "../fault.h"

namespace emu {
namespace {

[[noreturn]] void shared_hazard(const char* who, uint32_t address, const char* does,
                                const char* pending) {
  throw Fault(FaultKind::ordering, format("%s %s shared address 0x%x while %s is not known to be "
                                          "complete: wait for its mbarrier or "
                                          "group first",
                                          who, does, address, pending));
}

[[noreturn]] void column_hazard(const char* who, uint32_t column, const char* does,
                                const char* pending) {
  throw Fault(FaultKind::ordering,
              format("%s %s tensor memory column %u while %s", who, does, column, pending));
}

constexpr const char* reader =
    "an asynchronous read (tcgen05.mma, tcgen05.cp or a bulk store) of it";
constexpr const char* writer = "an asynchronous copy that writes it";

}  // namespace

InFlight::Chunk& InFlight::grow(uint32_t address) {
  const size_t i = address / 16;
  if (i >= chunks_.size()) chunks_.resize(i + 1);
  return chunks_[i];
}

void InFlight::read_chunks(const std::vector<uint32_t>& addresses, Delta delta) {
  for (uint32_t a : addresses) grow(a).reads += uint16_t(delta);
}

void InFlight::read_shared(uint32_t address, uint32_t bytes, Delta delta) {
  for (uint32_t a = address; a < address + bytes; a += 16) grow(a).reads += uint16_t(delta);
}

void InFlight::write_shared(uint32_t address, uint32_t bytes, Delta delta) {
  for (uint32_t a = address; a < address + bytes; a += 16) grow(a).writes += uint16_t(delta);
}

void InFlight::write_columns(uint32_t column, uint32_t count, Delta delta) {
  for (uint32_t c = column; c < column + count; ++c) column_writes_[c] += uint16_t(delta);
}

void InFlight::read_columns(uint32_t column, uint32_t count, Delta delta) {
  for (uint32_t c = column; c < column + count; ++c) column_reads_[c] += uint16_t(delta);
}

void InFlight::check_chunks_read(const std::vector<uint32_t>& addresses, const char* who) const {
  for (uint32_t a : addresses)
    if (at(a).writes) shared_hazard(who, a, "reads", writer);
}

void InFlight::check_shared_read(uint32_t address, uint32_t bytes, const char* who) const {
  for (uint32_t a = address; a < address + bytes; a += 16)
    if (at(a).writes) shared_hazard(who, a, "reads", writer);
}

void InFlight::check_shared_write(uint32_t address, uint32_t bytes, const char* who) const {
  for (uint32_t a = address; a < address + bytes; a += 16) {
    if (at(a).writes) shared_hazard(who, a, "overwrites", writer);
    if (at(a).reads) shared_hazard(who, a, "overwrites", reader);
  }
}

void InFlight::check_columns_read(uint32_t column, uint32_t count, const char* who) const {
  for (uint32_t c = column; c < column + count; ++c)
    if (column_writes_[c])
      column_hazard(who, c, "reads",
                    "a tcgen05.mma or tcgen05.cp that writes it is not known to be complete: wait "
                    "for the mbarrier "
                    "of its tcgen05.commit first");
}

void InFlight::check_columns_write(uint32_t column, uint32_t count, bool by_pipe,
                                   const char* who) const {
  for (uint32_t c = column; c < column + count; ++c) {
    if (column_writes_[c] && !by_pipe)
      column_hazard(who, c, "overwrites",
                    "a tcgen05.mma or tcgen05.cp that writes it is not known to be complete: wait "
                    "for the mbarrier "
                    "of its tcgen05.commit first");
    if (column_reads_[c])
      column_hazard(who, c, "overwrites",
                    "a tcgen05.ld of it has not been waited for with tcgen05.wait::ld");
  }
}

void InFlight::check_exit() const {
  for (size_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].writes)
      throw Fault(
          FaultKind::ordering,
          format("the CTA ends while a copy into its shared memory at 0x%zx is not known to "
                 "be complete: wait for its mbarrier first",
                 i * 16));
}

}  // namespace emu
