// SPDX-License-Identifier: MIT
// The buffers of one call by name: each there, aligned, inside the address space, and apart from
// others.
#pragma once

#include "host/problem/rule.h"

namespace nvfp4 {

class Buffers {
 public:
  nvfp4_status add(const char* name, const void* address, int64_t bytes, uint64_t alignment,
                   bool written);
  // A matrix of elements of which the last row ends with its k-th.
  nvfp4_status add_matrix(const char* name, const void* address, int64_t rows, int64_t ld,
                          int64_t k, int64_t element_bytes, bool written);
  nvfp4_status add_codes(const void* address, int64_t rows, int64_t ld, int64_t k, bool written);
  nvfp4_status add_scales(const void* address, int64_t rows, int64_t k, int32_t layout,
                          int32_t format, bool written);
  // What is written meets nothing else.
  nvfp4_status apart() const;

 private:
  struct Buffer {
    const char* name;
    AddressRange range;
    bool written;
  };
  Buffer buffers_[8];
  size_t count_ = 0;
};

}  // namespace nvfp4
