// SPDX-License-Identifier: MIT
// See ptx_support.h.
#include "tools/emulator/test/support/ptx_support.h"

#include <cctype>
#include <cstring>

#include "tools/emulator/op/load.h"
#include "tools/emulator/ptx/target.h"

namespace ptx_test {

std::string module_head(const std::string& target, int version) {
  return ".version " + emu::ptx::dotted(version) + "\n.target " + target + "\n.address_size 64\n";
}

namespace {

struct Registers {
  char name;
  const char* type;
};
constexpr Registers all_registers[] = {
    {'q', "b128"}, {'p', "pred"}, {'b', "b8"},  {'h', "b16"},   {'r', "b32"}, {'d', "b64"},
    {'f', "f32"},  {'u', "u32"},  {'i', "s32"}, {'x', "f16x2"}, {'e', "f16"}, {'g', "f64"}};

bool is_part_of_a_name(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '%';
}

bool is_named(char name, std::string_view text) {
  for (size_t at = text.find(name); at < text.size(); at = text.find(name, at + 1))
    if (at + 1 < text.size() && isdigit(static_cast<unsigned char>(text[at + 1])) &&
        (at == 0 || !is_part_of_a_name(text[at - 1])))
      return true;
  return false;
}

template <class Wanted>
std::string declarations_of(int version, Wanted wanted) {
  std::string out;
  for (const Registers& r : all_registers)
    if ((version >= 83 || r.name != 'q') && wanted(r.name))
      out += std::string(".reg .") + r.type + " " + r.name + "<32>; ";
  return out + ".shared .align 16 .b8 s[1024]; .local .align 16 .b8 loc[64];\n";
}

}  // namespace

std::string declarations(int version) {
  return declarations_of(version, [](char) { return true; });
}

std::string declarations_for(std::string_view text, int version) {
  return declarations_of(version, [&](char name) { return is_named(name, text); });
}

std::string module_text(const std::string& body, const std::string& target) {
  return module_head(target) + ".visible .entry k(.param .u64 out) {\n" +
         declarations_for(body) + body + "\n}\n";
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
