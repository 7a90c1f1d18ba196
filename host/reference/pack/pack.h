// SPDX-License-Identifier: MIT
// Weights between the order of a checkpoint and a packed one (docs/packing.md), on the CPU. The
// reference has an independent implementation, packed_weights.h.
#pragma once

#include "nvfp4_gemm.h"

namespace nvfp4 {

// Both take a desc that passed check_pack() and is not empty.
void pack_weights(const nvfp4_pack_desc& desc);
void unpack_weights(const nvfp4_pack_desc& desc);

}  // namespace nvfp4
