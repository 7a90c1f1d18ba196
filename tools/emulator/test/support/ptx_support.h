// SPDX-License-Identifier: MIT
// What the tests of the PTX front end share: modules around a few lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/emulator/ptx/module.h"
#include "tools/testing/catch.h"

namespace ptx_test {

// Registers p0.. (.pred) b (.b8) h (.b16) r (.b32) d (.b64) q (.b128) f (.f32) u (.u32) i (.s32)
// x (.f16x2) e (.f16) g (.f64), 32 each; shared variable s, local variable loc. .b128 is of 8.3.
std::string declarations(int version = 90);
// The same without the kinds of registers that `text` does not name: declaring all takes longer
// than reading the instruction.
std::string declarations_for(std::string_view text, int version = 90);

// .version (90 = 9.0), .target, .address_size
std::string module_head(const std::string& target = "sm_100a", int version = 90);

// A module with one entry k(.param .u64 out) around `body`, which starts in line body_line.
std::string module_text(const std::string& body, const std::string& target = "sm_100a");
constexpr uint32_t body_line = 6;

std::unique_ptr<emu::ptx::Module> load(const std::string& text, int compute_capability = 100);
// The code of the only function of module_text(body).
std::vector<emu::ptx::Instr> code(const std::string& body);

// The target whose instruction this is: sm_90a has wgmma, sm_120a block-scaled mma.sync, sm_100a
// everything else; and its number.
std::string target_of(const std::string& instruction);
int capability_of(const std::string& instruction);

// "line:column: text" of the refusal, or "accepted".
std::string verdict(const std::string& text, int compute_capability = 100);
// The same for a body, for its target_of(); lines count from 1 in the body.
std::string body_verdict(const std::string& body);

}  // namespace ptx_test
