// SPDX-License-Identifier: MIT
// See known_code.h.
#include "tools/emulator/driver/known_code.h"

#include <utility>

namespace emu::driver {

std::shared_ptr<ptx::Module> KnownCode::find(std::string_view text) const {
  text = text.substr(0, text.find('\0'));  // as the parser does: a fat binary pads with NULs
  for (const auto& code : latest_)
    if (code->source == text) return code;
  return nullptr;
}

void KnownCode::keep(std::shared_ptr<ptx::Module> code) {
  if (!code->variables.empty()) return;
  if (latest_.size() == most) latest_.erase(latest_.begin());
  latest_.push_back(std::move(code));
}

}  // namespace emu::driver
