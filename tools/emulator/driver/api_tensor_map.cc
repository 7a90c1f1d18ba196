// SPDX-License-Identifier: MIT
// Tensor maps: hardware/tensor_map.h knows the rules and the encoding. Although nothing in a map
// belongs to a context, the driver wants one to be current (measured).
#include <cstring>

#include "tools/emulator/base/tell.h"
#include "tools/emulator/driver/call.h"
#include "tools/emulator/hardware/tensor_map_bits.h"

using namespace emu::driver;

namespace {

constexpr uintptr_t map_alignment = 64;

// What an encoder said, as a status; the map is written if it said nothing.
CUresult answer(const char* entry, const std::string& why, const emu::TensorMap& encoded,
                CUtensorMap* map) {
  static_assert(sizeof *map == sizeof(emu::EncodedMap));
  if (why.empty()) {
    const emu::EncodedMap bytes = encoded;
    memcpy(map, &bytes, sizeof bytes);
    return CUDA_SUCCESS;
  }
  emu::tell(std::string(entry) + ": " + why);
  return CUDA_ERROR_INVALID_VALUE;
}

emu::TensorMapArguments arguments(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                  void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                  const cuuint32_t* element_strides,
                                  CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                  CUtensorMapL2promotion l2_promotion,
                                  CUtensorMapFloatOOBfill oob_fill) {
  emu::TensorMapArguments a;
  a.map = map;
  a.type = uint32_t(type);
  a.rank = rank;
  a.address = uint64_t(address);
  a.dims = dims;
  a.strides = strides;
  a.element_strides = element_strides;
  a.interleave = uint32_t(interleave);
  a.swizzle = uint32_t(swizzle);
  a.l2_promotion = uint32_t(l2_promotion);
  a.oob_fill = uint32_t(oob_fill);
  return a;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill oob_fill) {
  return in_context(Entry::cuTensorMapEncodeTiled, [&](State& s, Context&) {
    if (!s.device->clusters()) return CUDA_ERROR_NOT_SUPPORTED;  // no TMA before 9.0
    emu::TensorMapArguments a = arguments(map, type, rank, address, dims, strides, element_strides,
                                          interleave, swizzle, l2_promotion, oob_fill);
    a.box = box;
    emu::TensorMap encoded;
    const std::string why = emu::encode_tiled(a, s.device->capability, &encoded);
    return answer("cuTensorMapEncodeTiled", why, encoded, map);
  });
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                 const int* lower, const int* upper, cuuint32_t channels,
                                 cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion l2_promotion,
                                 CUtensorMapFloatOOBfill oob_fill) {
  return in_context(Entry::cuTensorMapEncodeIm2col, [&](State& s, Context&) {
    if (!s.device->clusters()) return CUDA_ERROR_NOT_SUPPORTED;
    const emu::TensorMapArguments a =
        arguments(map, type, rank, address, dims, strides, element_strides, interleave, swizzle,
                  l2_promotion, oob_fill);
    emu::TensorMap encoded;
    const std::string why =
        emu::encode_im2col(a, {lower, upper, channels, pixels}, s.device->capability, &encoded);
    return answer("cuTensorMapEncodeIm2col", why, encoded, map);
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return in_context(Entry::cuTensorMapReplaceAddress, [&](State&, Context&) {
    bool placed = map && uintptr_t(map) % map_alignment == 0;
    if (!placed || uintptr_t(address) % 16) return CUDA_ERROR_INVALID_VALUE;
    emu::EncodedMap held;
    memcpy(held.words.data(), map, sizeof held);
    emu::TensorMap fields;
    if (!held.by_a_call() || !held.decode(&fields)) return CUDA_ERROR_INVALID_VALUE;
    fields.address = uint64_t(address);
    held = fields;
    memcpy(map, &held, sizeof held);
    return CUDA_SUCCESS;
  });
}
