// SPDX-License-Identifier: MIT
// State spaces (PTX ISA 5.1).
#pragma once

#include <cstdint>

namespace emu {

enum class Space : uint8_t { generic, param, shared_cta, shared_cluster, global, local, constant };

}  // namespace emu
