// SPDX-License-Identifier: MIT
// Copies that find out on which side their addresses lie, and copies of rectangles.
#include "tools/emulator/driver/stream_work.h"
#include "tools/emulator/driver/values.h"

using namespace emu::driver;

namespace {

constexpr CUgraphNodeType copy_node = CU_GRAPH_NODE_TYPE_MEMCPY;

// Device addresses of allocations, everything else is the host's.
uint8_t* either(State& s, CUdeviceptr address, size_t bytes) {
  if (s.memory->find(address)) return s.memory->at(address, bytes, 1, "copy");
  return reinterpret_cast<uint8_t*>(address);
}

End end_of(State& s, CUdeviceptr address, size_t bytes) {
  return {either(s, address, bytes), s.memory->find(address) ? address : 0};
}

CUresult copy(Entry entry, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return in_stream(entry, stream, copy_node, [=](State& s) {
    if (!bytes) return CUDA_SUCCESS;
    if (!to || !from) return CUDA_ERROR_INVALID_VALUE;
    return copy_values(s, end_of(s, to, bytes), end_of(s, from, bytes), bytes);
  });
}

// One side of a copy of rectangles.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, pitch;
};

// Returns the first byte of `height` rows of `width` bytes, or an End without bytes if there is no
// such rectangle.
End first_byte(State& s, const Side& side, size_t width, size_t height) {
  const bool on_host = side.type == CU_MEMORYTYPE_HOST;
  const auto base = on_host ? CUdeviceptr(reinterpret_cast<uintptr_t>(side.host)) : side.device;
  if (!base || side.pitch < side.x + width) return {};
  const CUdeviceptr first = base + side.y * side.pitch + side.x;
  const size_t bytes = (height - 1) * side.pitch + width;
  if (on_host) return {reinterpret_cast<uint8_t*>(first), 0};
  if (side.type == CU_MEMORYTYPE_UNIFIED) return end_of(s, first, bytes);
  return {s.memory->at(first, bytes, 1, "copy of a rectangle"), first};
}

bool known(CUmemorytype type) {
  return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
         type == CU_MEMORYTYPE_UNIFIED;
}

CUresult copy_2d(Entry entry, const CUDA_MEMCPY2D* given, CUstream stream) {
  const CUDA_MEMCPY2D c = given ? *given : CUDA_MEMCPY2D{};
  const bool arrays =
      c.srcMemoryType == CU_MEMORYTYPE_ARRAY || c.dstMemoryType == CU_MEMORYTYPE_ARRAY;
  return in_stream(entry, stream, copy_node, [=](State& s) {
    if (arrays) return CUDA_ERROR_NOT_SUPPORTED;  // there are no textures
    if (!known(c.srcMemoryType) || !known(c.dstMemoryType)) return CUDA_ERROR_INVALID_VALUE;
    if (!c.WidthInBytes || !c.Height) return CUDA_SUCCESS;
    const Side source = {c.srcMemoryType, c.srcHost, c.srcDevice,
                         c.srcXInBytes,   c.srcY,    c.srcPitch};
    const Side target = {c.dstMemoryType, c.dstHost, c.dstDevice,
                         c.dstXInBytes,   c.dstY,    c.dstPitch};
    const End from = first_byte(s, source, c.WidthInBytes, c.Height);
    const End to = first_byte(s, target, c.WidthInBytes, c.Height);
    if (!from.bytes || !to.bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto row = [](const End& end, size_t by) {
      return End{end.bytes + by, end.device ? end.device + by : 0};
    };
    for (size_t y = 0; y < c.Height; ++y)
      if (CUresult r =
              copy_values(s, row(to, y * c.dstPitch), row(from, y * c.srcPitch), c.WidthInBytes))
        return r;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(Entry::cuMemcpy, to, from, bytes, nullptr);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(Entry::cuMemcpyAsync, to, from, bytes, stream);
}
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* rectangle) {
  return copy_2d(Entry::cuMemcpy2D_v2, rectangle, nullptr);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* rectangle) {
  return copy_2d(Entry::cuMemcpy2DUnaligned_v2, rectangle, nullptr);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rectangle, CUstream stream) {
  return copy_2d(Entry::cuMemcpy2DAsync_v2, rectangle, stream);
}
