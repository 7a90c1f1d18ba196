// SPDX-License-Identifier: MIT
// The arrays that one call reads and writes, by the names of their fields. Every function of the
// library lists its arrays here, so that one comparison, apart(), refuses any overlap.
#pragma once

#include "host/problem/rule.h"

namespace nvfp4 {

enum class Use { read, written };

class Buffers {
 public:
  // An array that ends within the address space. NULL counts as address 0, for questions that give
  // no addresses.
  nvfp4_status add(const char* name, const void* address, int64_t bytes, Use use);
  // The same, but NULL means that there is no such array.
  nvfp4_status add_if_given(const char* name, const void* address, int64_t bytes, Use use);
  // The same, but the array must be given and aligned.
  nvfp4_status add_aligned(const char* name, const void* address, int64_t bytes, uint64_t alignment,
                           Use use);
  // A matrix whose last row ends after k elements.
  nvfp4_status add_matrix(const char* name, const void* address, int64_t rows, int64_t ld,
                          int64_t k, int64_t element_bytes, Use use);
  nvfp4_status add_codes(const void* address, int64_t rows, int64_t ld, int64_t k, Use use);
  nvfp4_status add_scales(const char* name, const void* address, int64_t rows, int64_t k,
                          int32_t layout, int32_t format, Use use);
  // Checks that no written array shares a byte with another array. The message names the later one
  // of the two first, so outputs are added after inputs.
  nvfp4_status apart() const;
  // The same for the array that was added last.
  nvfp4_status last_apart() const;

 private:
  nvfp4_status apart_from_earlier(size_t index) const;

  struct Buffer {
    const char* name;
    AddressRange range;
    Use use;
  };
  static constexpr size_t kMost = 32;  // a gated grouped product has 25
  Buffer buffers_[kMost];
  size_t count_ = 0;
};

}  // namespace nvfp4
