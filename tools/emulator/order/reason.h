// SPDX-License-Identifier: MIT
// What may be wrong between two accesses to the same bytes: the rows of reasons.def.
#pragma once

#include <cstdint>
#include <string>

#include "tools/emulator/base/findings.h"

namespace emu::order {

enum class Reason : uint8_t {
  ordered,
#define EMU_REASON(name, severity, meaning) name,
#include "tools/emulator/order/reasons.def"
#undef EMU_REASON
};

Severity severity_of(Reason reason);
// The rule's identifier; "" where nothing is wrong.
const char* name_of(Reason reason);
bool is_reason(const std::string& name);

}  // namespace emu::order
