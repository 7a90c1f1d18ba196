// SPDX-License-Identifier: MIT
// See no_value.h.
#include "tools/emulator/op/no_value.h"

#include "tools/emulator/machine/report.h"

namespace emu::ops {

Reason why_loaded_none(const Instr& in, const Bytes& from, uint32_t at, uint32_t bytes) {
  const Place& p = from.place();
  if (p.space == Space::global)
    return {format("the load of PTX line %u found none at 0x%llx: ", in.pos.line,
                   (unsigned long long)(p.address + at)) +
            from.why_none(at, bytes)};
  if (!p.cta) return {"it was loaded from local memory without one"};
  const uint32_t address = uint32_t(p.offset) + at;
  const std::string variable = report::shared_object(*p.cta, address);
  return {format("the load of PTX line %u found none at shared address 0x%x, %s, which %s",
                 in.pos.line, address, variable.c_str(), from.why_none(at, bytes).c_str()),
          true};
}

std::string why_stored_none(const Warp& w, const Instr& in, const Operand& op, const Place& p,
                            uint32_t lanes) {
  if (p.space == Space::global)
    return format("PTX line %u of kernel %s stores none there: ", in.pos.line,
                  report::kernel_name(w.cta.cluster.launch.function->name).c_str()) +
           w.none_in(op, lanes);
  const Reason reason = w.why(op);
  if (!p.cta || reason.from_shared) return {};
  return format("PTX line %u stores a register without one there", in.pos.line) +
         (reason.text.empty() ? "" : ", as " + reason.text);
}

}  // namespace emu::ops
