// SPDX-License-Identifier: MIT
// Copies and fills. A range that is not inside one allocation gives INVALID_VALUE. The real driver
// gives this status only for addresses outside its allocations, and does not notice an overrun
// within a 2 MiB page. The emulator does.
#include <algorithm>
#include <cstring>

#include "tools/emulator/driver/stream_work.h"
#include "tools/emulator/driver/values.h"

using namespace emu::driver;

namespace {

constexpr CUgraphNodeType copy_node = CU_GRAPH_NODE_TYPE_MEMCPY;

CUresult to_device(Entry entry, CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return in_stream(entry, stream, copy_node, [=](State& s) {
    if (!bytes) return CUDA_SUCCESS;
    if (!from) return CUDA_ERROR_INVALID_VALUE;
    const End host = {const_cast<uint8_t*>(static_cast<const uint8_t*>(from)), 0};
    return copy_values(s, {s.memory->at(to, bytes, 1, "copy from the host"), to}, host, bytes);
  });
}

CUresult to_host(Entry entry, void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return in_stream(entry, stream, copy_node, [=](State& s) {
    if (!bytes) return CUDA_SUCCESS;
    if (!to) return CUDA_ERROR_INVALID_VALUE;
    const End host = {static_cast<uint8_t*>(to), 0};
    return copy_values(s, host, {s.memory->at(from, bytes, 1, "copy to the host"), from}, bytes);
  });
}

CUresult on_the_device(Entry entry, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                       CUstream stream) {
  return in_stream(entry, stream, copy_node, [=](State& s) {
    if (!bytes) return CUDA_SUCCESS;
    const End source = {s.memory->at(from, bytes, 1, "copy on the device"), from};
    return copy_values(s, {s.memory->at(to, bytes, 1, "copy on the device"), to}, source, bytes);
  });
}

// `height` rows of `width` elements, `pitch` bytes apart; one row is the 1-D form. The real driver
// wants the address and, with several rows, the pitch to be multiples of the element.
template <class T>
CUresult fill(Entry entry, CUdeviceptr to, size_t pitch, T value, size_t width, size_t height,
              CUstream stream) {
  return in_stream(entry, stream, CU_GRAPH_NODE_TYPE_MEMSET, [=](State& s) {
    if (!width || !height) return CUDA_SUCCESS;
    if (width > SIZE_MAX / sizeof(T) || to % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    size_t row = width * sizeof(T);
    if (height > 1 && (pitch < row || pitch % sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (SIZE_MAX - row) / pitch < height - 1) return CUDA_ERROR_INVALID_VALUE;
    uint8_t* first = s.memory->at(to, (height - 1) * pitch + row, sizeof(T), "fill");
    for (size_t y = 0; y < height; ++y) {
      T* line = reinterpret_cast<T*>(first + y * pitch);
      std::fill_n(line, width, value);
      s.memory->blank().remove(to + y * pitch, row);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return to_device(Entry::cuMemcpyHtoD_v2, to, from, bytes, nullptr);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return to_device(Entry::cuMemcpyHtoDAsync_v2, to, from, bytes, stream);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return to_host(Entry::cuMemcpyDtoH_v2, to, from, bytes, nullptr);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return to_host(Entry::cuMemcpyDtoHAsync_v2, to, from, bytes, stream);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return on_the_device(Entry::cuMemcpyDtoD_v2, to, from, bytes, nullptr);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return on_the_device(Entry::cuMemcpyDtoDAsync_v2, to, from, bytes, stream);
}

// The names differ in the element alone.
#define EMU_FILL(bits, type)                                                                      \
  CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t n) {                           \
    return fill<type>(Entry::cuMemsetD##bits##_v2, to, 0, value, n, 1, nullptr);                  \
  }                                                                                               \
  CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t n, CUstream stream) {        \
    return fill<type>(Entry::cuMemsetD##bits##Async, to, 0, value, n, 1, stream);                 \
  }                                                                                               \
  CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t w, size_t h) { \
    return fill<type>(Entry::cuMemsetD2D##bits##_v2, to, pitch, value, w, h, nullptr);            \
  }                                                                                               \
  CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value, size_t w, size_t h, \
                                    CUstream stream) {                                            \
    return fill<type>(Entry::cuMemsetD2D##bits##Async, to, pitch, value, w, h, stream);           \
  }
EMU_FILL(8, unsigned char)
EMU_FILL(16, unsigned short)
EMU_FILL(32, unsigned int)
#undef EMU_FILL
