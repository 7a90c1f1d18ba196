// SPDX-License-Identifier: MIT
// See pool.h.
#include "tools/emulator/driver/pool.h"

#include <algorithm>

namespace emu::driver {

void MemoryPool::take(uint64_t bytes) {
  used_ += bytes;
  used_high_ = std::max(used_high_, used_);
  reserved_high_ = std::max(reserved_high_, used_);
}

int* MemoryPool::reuse(CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return &follow_events_;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return &opportunistic_;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return &internal_dependencies_;
    default: return nullptr;
  }
}

CUresult MemoryPool::get(CUmemPool_attribute attribute, void* value) const {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (const int* flag = const_cast<MemoryPool*>(this)->reuse(attribute))
    return *static_cast<int*>(value) = *flag, CUDA_SUCCESS;
  auto answer = [&](uint64_t bytes) {
    return *static_cast<cuuint64_t*>(value) = bytes, CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return answer(release_threshold_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return answer(used_);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return answer(reserved_high_);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return answer(used_high_);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult MemoryPool::set(CUmemPool_attribute attribute, const void* value) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (int* flag = reuse(attribute))
    return *flag = *static_cast<const int*>(value) != 0, CUDA_SUCCESS;
  const auto reset = [&](uint64_t& high) {  // a high watermark starts again from what there is
    if (*static_cast<const cuuint64_t*>(value)) return CUDA_ERROR_INVALID_VALUE;
    return high = used_, CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return release_threshold_ = *static_cast<const cuuint64_t*>(value), CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return reset(reserved_high_);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return reset(used_high_);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace emu::driver
