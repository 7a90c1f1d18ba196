// SPDX-License-Identifier: MIT
// The generated pages of tools/emulator/docs. EMU_WRITE_DOCS=1 writes them instead of comparing.
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tools/emulator/ptx/opcode_table.h"
#include "tools/testing/catch.h"

namespace {

std::string folder() {
  const std::string here = __FILE__;
  return here.substr(0, here.find("test/ptx/pages.cc"));
}

std::string read(const std::string& path) {
  std::ifstream in(folder() + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void is_current(const std::string& path, const std::string& text) {
  if (std::getenv("EMU_WRITE_DOCS")) std::ofstream(folder() + path) << text;
  INFO(path << " is written by EMU_WRITE_DOCS=1 build/test_emulator 'the generated pages*'");
  CHECK(read(path) == text);
}

std::string refused_page() {
  std::string text =
      "# What is refused\n\n"
      "Generated from [ptx/absent.def](../ptx/absent.def): instructions of the manual that the "
      "emulator\ndoes not have. A module that contains one is refused when it is loaded; the table "
      "gives the\nreason. [modelled.md](modelled.md#refused) says what else is refused.\n\n"
      "| instruction | what it is |\n|---|---|\n";
#define ABSENT(words, meaning) text += "| `" words "` | " meaning " |\n";
#include "tools/emulator/ptx/absent.def"
#undef ABSENT
  return text;
}

// The opcode that a statement begins with, if the table has it.
const emu::ptx::Opcode* opcode_of(const std::string& statement) {
  const emu::ptx::Opcode* best = nullptr;
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes()) {
    const std::string text = opcode.text;
    if (statement.compare(0, text.size(), text) != 0) continue;
    const char next = statement.size() > text.size() ? statement[text.size()] : ' ';
    if (next != '.' && next != ' ' && next != ';') continue;
    if (!best || text.size() > std::string(best->text).size()) best = &opcode;
  }
  return best;
}

using Counts = std::map<const emu::ptx::Opcode*, std::set<std::string>>;

// Statements of the steps of random programs.
Counts steps() {
  const std::vector<std::string> texts = {
#define STEP(weight, text) text,
#define UNGUARDED(weight, text) text,
#define COLLECTIVE
#include "tools/emulator/test/h200/random.def"
#undef STEP
#undef UNGUARDED
#undef COLLECTIVE
  };
  Counts counts;
  for (const std::string& text : texts) {
    std::stringstream statements(text);
    for (std::string s; std::getline(statements, s, ';');) {
      s.erase(0, s.find_first_not_of(' '));
      if (const auto* opcode = opcode_of(s)) counts[opcode].insert(s.substr(0, s.find(' ')));
    }
  }
  return counts;
}

// What kernels of others are made of.
Counts inventory() {
  Counts counts;
  const std::string text = read("test/op/inventory.def");
  const std::regex row("RUNS(?:_IN)?\\([abc], \"([^\"]+)\"");
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it)
    if (const auto* opcode = opcode_of((*it)[1].str() + " ")) counts[opcode].insert((*it)[1]);
  return counts;
}

std::string probe_of(const std::string& opcode) {
  const std::pair<const char*, const char*> rows[] = {
      {"wgmma.", "wgmma_probe"},   {"mma.sync", "mma_probe"},
      {"wmma.", "fragment_probe"}, {"mma.sp", "fragment_probe"},
      {"mbarrier.", "load_probe"}, {"cp.async.bulk.tensor", "load_probe"},
      {"addc", "carry_probe"},     {"subc", "carry_probe"},
      {"madc", "carry_probe"}};
  for (const auto& [start, probe] : rows)
    if (opcode.rfind(start, 0) == 0) return probe;
  return "";
}

std::string evidence_page() {
  const Counts random = steps(), others = inventory();
  std::string rows;
  size_t on_gpu = 0, in_kernels = 0, manual = 0, forms = 0;
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes()) {
    const std::string probe = probe_of(opcode.text);
    const size_t steps = random.count(&opcode) ? random.at(&opcode).size() : 0;
    const size_t kernels = others.count(&opcode) ? others.at(&opcode).size() : 0;
    const bool gpu = steps || !probe.empty();
    forms += opcode.forms.size();
    on_gpu += gpu;
    in_kernels += !gpu && kernels;
    manual += !gpu && !kernels;
    rows += "| `" + std::string(opcode.text) + "` | " + std::to_string(opcode.forms.size()) +
            " | " + (steps ? std::to_string(steps) : "") + " | " + probe + " | " +
            (kernels ? std::to_string(kernels) : "") + " | " + (gpu || kernels ? "" : "yes") +
            " |\n";
  }
  std::string text =
      "# What confirms each opcode\n\n"
      "Generated from [ptx/opcodes.def](../ptx/opcodes.def) and the tests. Every form is accepted "
      "by ptxas\n13.0 (`test/ptx/legality.cc`); this page is about what the instructions do.\n\n"
      "* *random*: the number of its variants in the random programs, for which an H200 and the "
      "emulator\n"
      "  gave the same words ([test/h200/random.def](../test/h200/random.def))\n"
      "* *probe*: a test in `test/h200/` that ran on an H200, too\n"
      "* *kernels*: the number of its variants in kernels of others that give their known results "
      "here\n"
      "  ([test/op/inventory.def](../test/op/inventory.def))\n"
      "* *manual alone*: none of these; the tests take their values from the manual\n\n" +
      std::to_string(on_gpu + in_kernels + manual) + " opcodes with " + std::to_string(forms) +
      " forms: " + std::to_string(on_gpu) + " confirmed on an H200, " + std::to_string(in_kernels) +
      " in kernels of others alone, " + std::to_string(manual) +
      " by the manual\nalone.\n\n"
      "| opcode | forms | random | probe | kernels | manual alone |\n|---|--:|--:|---|--:|---|\n" +
      rows;
  return text;
}

}  // namespace

TEST_CASE("the generated pages of the emulator's manual are current") {
  is_current("docs/refused.md", refused_page());
  is_current("docs/evidence-opcodes.md", evidence_page());
}
