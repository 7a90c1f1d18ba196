// SPDX-License-Identifier: MIT
// See slots.h.
#include "tools/emulator/ptx/slots.h"

#include <cstring>
#include <utility>

#include "tools/emulator/ptx/cfg.h"

namespace emu::ptx {
namespace {

struct Life {
  static constexpr uint32_t never = ~0u;
  uint32_t first = never, last = 0;  // instructions that name the register
  uint32_t block = 0;
  bool shares = true, placed = false, over = false;
};

// An instruction whose opcode has no dot is over at once and gives all its lanes a result.
bool is_plain(const Instr& in) { return !std::strchr(in.opcode, '.'); }
bool owns_registers(const Instr& in) {
  return !std::strncmp(in.opcode, "wgmma.", 6) || !std::strncmp(in.opcode, "tcgen05.", 8);
}

template <class F>
void each_register(std::vector<Operand>& ops, F f) {
  for (Operand& op : ops) {
    if (op.reg != no_register) f(op);
    each_register(op.elements, f);
  }
}

class Sharing {
 public:
  explicit Sharing(Function& function)
      : function_(function), lives_(function.register_slots), slot_(function.register_slots) {}

  void run() {
    find_lives();
    keep();
    share();
    rename();
  }

 private:
  void find_lives() {
    const std::vector<bool> starts = block_starts(function_.code);
    uint32_t block = 0;
    for (uint32_t i = 0; i < function_.code.size(); ++i) {
      Instr& in = function_.code[i];
      block += starts[i];
      if (in.guard != no_register) lives_[in.guard].shares = false;
      each_register(in.ops, [&](const Operand& op) { see(in, i, block, op); });
    }
  }

  void see(const Instr& in, uint32_t i, uint32_t block, const Operand& op) {
    Life& life = lives_[op.reg];
    const bool begins = life.first == Life::never;
    if (begins) {
      life.first = i;
      life.block = block;
    }
    life.last = i;
    const bool fits = begins ? op.written && in.guard == no_register && is_plain(in)
                             : block == life.block && (i > life.first || op.written);
    if (!fits || owns_registers(in)) life.shares = false;
    if (op.declared != Type::b128) return;
    life.shares = false;
    lives_[op.reg + 1].shares = false;
  }

  bool is_shared(uint32_t reg) const {
    return lives_[reg].shares && lives_[reg].first != Life::never;
  }

  // In their order: of a .b128 the two stay together.
  void keep() {
    for (uint32_t reg = 0; reg < lives_.size(); ++reg) {
      if (lives_[reg].shares) continue;
      slot_[reg] = slots_++;
      names_.push_back(std::move(function_.register_names[reg]));
    }
  }

  // A slot is free again after the last instruction that names its register. For a result that no
  // instruction reads, that is the instruction that writes it.
  void share() {
    std::vector<uint32_t> free, over;
    for (uint32_t i = 0; i < function_.code.size(); ++i) {
      each_register(function_.code[i].ops, [&](const Operand& op) {
        if (!is_shared(op.reg)) return;
        Life& life = lives_[op.reg];
        if (life.first == i && !life.placed) {
          life.placed = true;
          if (free.empty()) free.push_back(slots_++);
          slot_[op.reg] = free.back();
          free.pop_back();
        }
        if (life.last == i && !life.over) {
          life.over = true;
          over.push_back(slot_[op.reg]);
        }
      });
      free.insert(free.end(), over.begin(), over.end());
      over.clear();
    }
  }

  void rename() {
    names_.resize(slots_);
    std::vector<uint32_t> name(lives_.size(), no_register);
    for (uint32_t reg = 0; reg < lives_.size(); ++reg) {
      if (!is_shared(reg)) continue;
      name[reg] = uint32_t(names_.size());
      names_.push_back(std::move(function_.register_names[reg]));
    }
    for (Instr& in : function_.code) {
      if (in.guard != no_register) in.guard = slot_[in.guard];
      each_register(in.ops, [&](Operand& op) {
        op.name = name[op.reg];
        op.reg = slot_[op.reg];
      });
    }
    function_.register_slots = slots_;
    function_.register_names = std::move(names_);
  }

  Function& function_;
  std::vector<Life> lives_;
  std::vector<uint32_t> slot_;
  std::vector<std::string> names_;
  uint32_t slots_ = 0;
};

}  // namespace

void share_slots(Function& function) {
  if (function.routines.empty()) Sharing(function).run();
}

}  // namespace emu::ptx
