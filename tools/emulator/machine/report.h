// SPDX-License-Identifier: MIT
// What a fault says: where in the grid, where in the PTX text, and what happened.
#pragma once

#include <string>

#include "tools/emulator/machine/machine.h"

namespace emu::report {

const char* name(FaultKind kind);
// The same as a rule's identifier: misaligned_address.
std::string rule(FaultKind kind);
bool is_rule(const std::string& name);
// The line of an instruction and its text.
std::string place(const Cluster& cluster, const ptx::Instr& in);

// Where the warp's lanes outside `active` are, a line for each group.
std::string elsewhere(const Warp& warp, uint32_t active);
// The variable at a shared address: "s" + 0x10 (.shared, 64 bytes at 0x400), or its like.
std::string shared_object(const Cta& cta, uint32_t address);

// The fault of one instruction, executed by the lanes `active` of `warp`.
Fault located(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active);
// The same, of asynchronous work that those lanes issued by it.
Fault located_effect(const Fault& fault, const Warp& warp, const ptx::Instr& in, uint32_t active);
// A finding of class formal, if anybody wants them; counted, and told once per instruction.
void formal(FaultKind kind, const std::string& text, const Warp& warp, const ptx::Instr& in,
            uint32_t active);
// The same of the cluster's end, once for each `place`.
void formal(FaultKind kind, const std::string& text, const Cluster& cluster, const char* during,
            uint64_t place);
// A fault of asynchronous work that no instruction issued, or of a check at the end of a CTA or
// cluster.
Fault located(const Fault& fault, const Cluster& cluster, const char* during);
// Nothing in the cluster can go on: every warp with its reason, every barrier, what is pending.
Fault deadlock(const Cluster& cluster);

}  // namespace emu::report
