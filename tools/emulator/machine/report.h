// SPDX-License-Identifier: MIT
// What a fault says: where in the grid, where in the PTX text, and what happened.
#pragma once

#include <string>

#include "tools/emulator/machine/machine.h"

namespace emu::report {

// The rows of rules.def.
enum class Rule : uint8_t {
#define EMU_RULE(name, kind, meaning) name,
#include "tools/emulator/machine/rules.def"
#undef EMU_RULE
};

const char* name(FaultKind kind);
// The same as a rule's identifier: misaligned_address.
std::string rule(FaultKind kind);
bool is_rule(const std::string& name);  // of a fault or of rules.def
// A kernel as a person knows it: its name in the source, or of a long one its path and a number.
std::string kernel_name(const std::string& symbol);
// "a.cu:29, from a.cu:64, PTX line 7:1: " and the instruction's text.
std::string place(const Cluster& cluster, const ptx::Instr& in,
                  Severity severity = Severity::error);

// Where the warp's lanes outside `active` are, a line for each group.
std::string elsewhere(const Warp& warp, uint32_t active);
// The variable at a shared address: "s" + 0x10 (.shared, 64 bytes at 0x400), or its like.
std::string shared_object(const Cta& cta, uint32_t address);
// The mbarriers that one of the warps has waited for and the other has arrived at, or may arrive
// at: the count of each, and who has arrived. Lines of their own.
std::string mbarriers_between(const Warp& one, const Warp& other);

// The fault of one instruction, executed by the lanes `active` of `warp`.
Fault located(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active,
              Severity severity = Severity::error);
// The same, of asynchronous work that those lanes issued by it.
Fault located_effect(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active,
                     Severity severity = Severity::error);
// A finding of class formal, if anybody wants them; counted, and told once per instruction.
void formal(Rule rule, const std::string& text, const Warp& warp, const ptx::Instr& in,
            uint32_t active);
// The same of the cluster's end, once for each line (0: of no instruction) and CTA.
void formal(Rule rule, const std::string& text, const Cluster& cluster, const char* during,
            uint32_t line, uint32_t rank);
// The same of asynchronous work that takes effect, and was issued by the cluster's `actor`.
void formal_effect(Rule rule, const std::string& text, const Cluster& cluster);
// A fault of asynchronous work that no instruction issued, or of a check at the end of a CTA or
// cluster.
Fault located(const Fault& fault, const Cluster& cluster, const char* during);
// Nothing in the cluster can go on: every warp with its reason, every barrier, what is pending.
Fault deadlock(const Cluster& cluster);

}  // namespace emu::report
