// SPDX-License-Identifier: MIT
// Packs and unpacks weights on a stream of the current context.
#pragma once

#include "host/base/status.h"

namespace nvfp4 {

// Both take a desc that passed check_pack() and is not empty.
nvfp4_status enqueue_pack(const nvfp4_pack_desc& desc, void* stream);
nvfp4_status enqueue_unpack(const nvfp4_pack_desc& desc, void* stream);

}  // namespace nvfp4
