// SPDX-License-Identifier: MIT
// The exported functions for packed weights.
#include "host/reference/pack/pack.h"
#include "host/base/packing.h"
#include "host/pack/check.h"
#include "host/pack/enqueue.h"
#include "host/problem/notes.h"

using namespace nvfp4;

extern "C" {

size_t nvfp4_packed_bytes(int64_t rows, int64_t k, int32_t packing, int32_t format) {
  int64_t bytes;
  return packed_bytes(rows, k, packing, format, &bytes) ? static_cast<size_t>(bytes) : 0;
}

nvfp4_status nvfp4_pack_weights(const nvfp4_pack_desc* desc, void* stream) {
  nvfp4_pack_desc known;
  bool empty;
  NVFP4_TRY(check_pack(desc, PackCall::pack, &known, &empty));
  if (!empty) return enqueue_pack(known, stream);
  note_empty_matrix("nvfp4_pack_weights", known.n, known.k);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_unpack_weights(const nvfp4_pack_desc* desc, void* stream) {
  nvfp4_pack_desc known;
  bool empty;
  NVFP4_TRY(check_pack(desc, PackCall::unpack, &known, &empty));
  if (!empty) return enqueue_unpack(known, stream);
  note_empty_matrix("nvfp4_unpack_weights", known.n, known.k);
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_pack_weights_host(const nvfp4_pack_desc* desc) {
  nvfp4_pack_desc known;
  bool empty;
  NVFP4_TRY(check_pack(desc, PackCall::pack_host, &known, &empty));
  if (empty) {
    note_empty_matrix("nvfp4_pack_weights_host", known.n, known.k);
  } else {
    pack_weights(known);
  }
  return NVFP4_SUCCESS;
}

nvfp4_status nvfp4_unpack_weights_host(const nvfp4_pack_desc* desc) {
  nvfp4_pack_desc known;
  bool empty;
  NVFP4_TRY(check_pack(desc, PackCall::unpack_host, &known, &empty));
  if (empty) {
    note_empty_matrix("nvfp4_unpack_weights_host", known.n, known.k);
  } else {
    unpack_weights(known);
  }
  return NVFP4_SUCCESS;
}

}  // extern "C"
