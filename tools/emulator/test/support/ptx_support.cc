// SPDX-License-Identifier: MIT
// See ptx_support.h.
#include "tools/emulator/test/support/ptx_support.h"

#include <cstring>

#include "tools/emulator/op/load.h"
#include "tools/emulator/ptx/target.h"

namespace ptx_test {

std::string module_head(const std::string& target, int version) {
  return ".version " + emu::ptx::dotted(version) + "\n.target " + target + "\n.address_size 64\n";
}

std::string declarations(int version) {
  const std::string wide = version < 83 ? "" : ".reg .b128 q<32>; ";
  return wide +
         ".reg .pred p<32>; .reg .b8 b<32>; .reg .b16 h<32>; .reg .b32 r<32>; .reg .b64 d<32>; "
         ".reg .f32 f<32>; .reg .u32 u<32>; .reg .s32 i<32>; .reg .f16x2 x<32>; "
         ".reg .f16 e<32>; .reg .f64 g<32>; "
         ".shared .align 16 .b8 s[1024]; .local .align 16 .b8 loc[64];\n";
}

std::string module_text(const std::string& body, const std::string& target) {
  return module_head(target) + ".visible .entry k(.param .u64 out) {\n" + declarations() + body +
         "\n}\n";
}

std::unique_ptr<emu::ptx::Module> load(const std::string& text, int compute_capability) {
  return emu::ops::load(text, compute_capability);
}

std::vector<emu::ptx::Instr> code(const std::string& body) {
  try {
    return load(module_text(body))->functions.at(0)->code;
  } catch (const emu::PtxError& e) {
    FAIL("line " << e.pos.line << ": " << e.text);
  }
  return {};
}

namespace {

// "accepted", or the refusal, whose lines count from `first_line`.
std::string verdict(const std::string& text, int compute_capability, uint32_t first_line,
                    emu::ptx::Reading reading) {
  try {
    emu::ops::load(text, compute_capability, reading);
    return "accepted";
  } catch (const emu::PtxError& e) {
    return std::to_string(int(e.pos.line) - int(first_line) + 1) + ":" +
           std::to_string(e.pos.column) + ": " + e.text;
  }
}

// Whether kernels are read at once or when they are asked for makes no difference.
std::string verdict(const std::string& text, int compute_capability, uint32_t first_line) {
  const std::string now = verdict(text, compute_capability, first_line, emu::ptx::Reading::now);
  const std::string later =
      verdict(text, compute_capability, first_line, emu::ptx::Reading::when_asked);
  return now == later ? now : now + "; read when asked for: " + later;
}

}  // namespace

std::string verdict(const std::string& text, int compute_capability) {
  return verdict(text, compute_capability, 1);
}

std::string target_of(const std::string& instruction) {
  const auto has = [&](const char* text) { return instruction.find(text) != std::string::npos; };
  if (has("wgmma.")) return "sm_90a";
  return has("mma.sync") && (has(".kind::mx") || has(".kind::f8f6f4")) ? "sm_120a" : "sm_100a";
}

int capability_of(const std::string& instruction) {
  return std::stoi(target_of(instruction).substr(strlen("sm_")));
}

std::string body_verdict(const std::string& body) {
  return verdict(module_text(body, target_of(body)), capability_of(body), body_line);
}

}  // namespace ptx_test
