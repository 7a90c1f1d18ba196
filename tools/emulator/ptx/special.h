// SPDX-License-Identifier: MIT
// The special registers by name (PTX ISA 10).
#pragma once

#include <cstdint>
#include <string_view>

#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

struct SpecialRegister {
  std::string_view name, field;
  Special id;
  uint32_t bits;
};

const SpecialRegister* find_special(std::string_view name, std::string_view field);

}  // namespace emu::ptx
