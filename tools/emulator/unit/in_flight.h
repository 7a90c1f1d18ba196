// SPDX-License-Identifier: MIT
// What the un-completed asynchronous work of one CTA reads and writes, so that using it before the
// required wait is an error whatever order the work completes in.
//
// Work for an mbarrier is in flight until a wait has shown that its phase is over (unobserved.h), a
// bulk store until its effect took place. A program that waited as PTX demands never meets work of
// its own here.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor_memory.h"

namespace emu {

class InFlight {
 public:
  enum Delta : int { begin = 1, end = -1 };

  // Shared memory in 16-byte chunks, which every asynchronous access is a multiple of.
  void read_chunks(const std::vector<uint32_t>& addresses, Delta delta);
  void read_shared(uint32_t address, uint32_t bytes, Delta delta);
  void write_shared(uint32_t address, uint32_t bytes, Delta delta);
  void write_columns(uint32_t column, uint32_t count, Delta delta);
  void read_columns(uint32_t column, uint32_t count, Delta delta);

  // Throw Fault ordering when work in flight gets in the way of what `who` is about to do.
  void check_chunks_read(const std::vector<uint32_t>& addresses, const char* who) const;
  void check_shared_read(uint32_t address, uint32_t bytes, const char* who) const;
  void check_shared_write(uint32_t address, uint32_t bytes, const char* who) const;
  void check_columns_read(uint32_t column, uint32_t count, const char* who) const;
  // `by_pipe`: the writer is itself on the tcgen05 pipe, behind the mma and cp before it.
  void check_columns_write(uint32_t column, uint32_t count, bool by_pipe, const char* who) const;

  // At the end of the CTA: Fault when a copy into its shared memory was never waited for. By the
  // time it lands, the SM may have given the memory to the next CTA.
  void check_exit() const;

 private:
  struct Chunk {
    uint16_t reads = 0, writes = 0;
  };
  Chunk at(uint32_t address) const {
    return address / 16 < chunks_.size() ? chunks_[address / 16] : Chunk{};
  }
  Chunk& grow(uint32_t address);

  std::vector<Chunk> chunks_;  // by address / 16, as far as anything was ever in flight
  uint16_t column_reads_[TensorMemory::columns] = {}, column_writes_[TensorMemory::columns] = {};
};

}  // namespace emu
