// SPDX-License-Identifier: MIT
// The rules of nvfp4_pack_desc.
#pragma once

#include "host/base/status.h"

namespace nvfp4 {

enum class PackCall { pack, unpack, pack_host, unpack_host };

// `known` is the desc, its `rows` the number of those that the call converts.
nvfp4_status check_pack(const nvfp4_pack_desc* desc, PackCall call, nvfp4_pack_desc* known,
                        bool* empty);

}  // namespace nvfp4
