// SPDX-License-Identifier: MIT
// The rows of reasons.def.
#include "tools/emulator/order/reason.h"

namespace emu::order {

namespace {

struct Row {
  const char* name;
  Severity severity;
};

// As Reason counts them.
constexpr Row rows[] = {
    {"", Severity::error},
#define EMU_REASON(name, severity, meaning) {#name, Severity::severity},
#include "tools/emulator/order/reasons.def"
#undef EMU_REASON
};

}  // namespace

Severity severity_of(Reason reason) { return rows[size_t(reason)].severity; }

const char* name_of(Reason reason) { return rows[size_t(reason)].name; }

bool is_reason(const std::string& name) {
  for (const Row& row : rows)
    if (!name.empty() && name == row.name) return true;
  return false;
}

}  // namespace emu::order
