// SPDX-License-Identifier: MIT
// The buffers of one call by name. Each must be given, aligned, inside the address space, and apart
// from the others.
#pragma once

#include "host/problem/rule.h"

namespace nvfp4 {

class Buffers {
 public:
  nvfp4_status add(const char* name, const void* address, int64_t bytes, uint64_t alignment,
                   bool written);
  // Adds a matrix whose last row ends after k elements.
  nvfp4_status add_matrix(const char* name, const void* address, int64_t rows, int64_t ld,
                          int64_t k, int64_t element_bytes, bool written);
  nvfp4_status add_codes(const void* address, int64_t rows, int64_t ld, int64_t k, bool written);
  nvfp4_status add_scales(const void* address, int64_t rows, int64_t k, int32_t layout,
                          int32_t format, bool written);
  // Checks that no written buffer overlaps another one.
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
