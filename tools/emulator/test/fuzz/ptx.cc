// SPDX-License-Identifier: MIT
// PTX text into the emulator's front end: a module, or a refusal that says where. The first byte
// chooses the compute capability.
#include <algorithm>

#include "tools/emulator/op/load.h"
#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/opcode_table.h"
#include "tools/emulator/test/support/ptx_samples.h"
#include "tools/testing/fuzz_input.h"

namespace {

constexpr int kCapabilities[] = {100, 90, 103, 75, 120};

size_t count_lines(const std::string& text) {
  return 1 + size_t(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz::Input input(data, bytes);
  const int capability = input.pick(kCapabilities);
  const std::string text(bytes > 1 ? reinterpret_cast<const char*>(data) + 1 : "",
                         bytes > 1 ? bytes - 1 : 0);
  try {
    fuzz::expect(emu::ops::load(text, capability) != nullptr, "load answers nothing");
  } catch (const emu::PtxError& refusal) {
    fuzz::expect(!refusal.text.empty(), "a refusal without a sentence");
    fuzz::expect(refusal.pos.line >= 1 && refusal.pos.column >= 1, "a refusal without a place",
                 refusal.what());
    fuzz::expect(refusal.pos.line <= count_lines(text), "a refusal after the text", refusal.what());
  }
  return 0;
}

// ---- mutations that know the grammar: libFuzzer's own find no instruction -----------------------

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t bytes, size_t most) __attribute__((weak));

namespace {

std::string any_instruction(std::mt19937& random) {
  const auto& opcodes = emu::ptx::OpcodeTable::get().opcodes();
  const emu::ptx::Opcode& opcode = opcodes[random() % opcodes.size()];
  const emu::ptx::Form& form = opcode.forms[random() % opcode.forms.size()];
  const std::string sample = ptx_test::random_sample(opcode, form, random);
  return random() % 2 ? sample : ptx_test::mutant(sample, random);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t bytes, size_t most, unsigned seed) {
  std::mt19937 random(seed);
  if (bytes == 0 || random() % 4 == 0) return LLVMFuzzerMutate(data, bytes, most);
  std::string text(reinterpret_cast<const char*>(data), bytes);
  size_t at = text.find('\n', random() % text.size());
  if (at == std::string::npos) at = text.size() - 1;
  text.insert(at + 1, any_instruction(random) + "\n");
  if (text.size() > most) return bytes;
  memcpy(data, text.data(), text.size());
  return text.size();
}
