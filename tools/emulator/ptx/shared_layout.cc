// SPDX-License-Identifier: MIT
// Layout and the patching of operands.
#include "tools/emulator/ptx/shared_layout.h"

#include <algorithm>

namespace emu::ptx {
namespace {

constexpr uint32_t window_start =
    0x400;  // SharedMemory::window_start; the front end knows no machine

uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

bool refers(const Operand& op) {
  const bool names = op.kind == Operand::Kind::symbol || op.base_is_symbol;
  return names && op.space == Space::shared_cta;
}

template <class F>
void each_reference(Function& function, F f) {
  for (Instr& in : function.code)
    for (Operand& op : in.ops)
      if (refers(op)) f(op);
}

}  // namespace

void SharedLayout::place(Function& function, SourcePos pos) {
  each_reference(function, [&](Operand& op) { variables[op.variable].named = true; });
  uint64_t end = 0;
  uint32_t dynamic_align = 0;
  for (Variable& v : variables) {
    if (!v.named) continue;
    if (v.dynamic) {
      dynamic_align = std::max(dynamic_align, v.align);
      continue;
    }
    end = align_up(end, v.align);
    v.address = window_start + uint32_t(end);
    end += v.bytes;
    if (end >= 1u << 24) throw PtxError(pos, "more than 16 MiB of shared variables");
  }
  function.static_shared_bytes = uint32_t(end);
  if (dynamic_align) function.dynamic_shared_align = dynamic_align;
  const uint64_t dynamic = align_up(end, function.dynamic_shared_align);
  for (Variable& v : variables)
    if (v.dynamic) v.address = window_start + uint32_t(dynamic);
  for (const Variable& v : variables)
    if (v.named)
      function.shared.push_back({std::string(v.name), v.address, uint32_t(v.bytes), v.dynamic});
  each_reference(function, [&](Operand& op) {
    op.imm += variables[op.variable].address;
    op.variable = no_variable;
  });
}

}  // namespace emu::ptx
