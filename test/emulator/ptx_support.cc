// SPDX-License-Identifier: MIT
// See ptx_support.h.
#include "ptx_support.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace ptx_test {
namespace {

const char* const head = ".address_size 64\n";

std::string header(const std::string& target) {
  return ".version 9.0\n.target " + target + "\n" + head;
}

struct TemporaryFile {
  char name[32] = "/tmp/ptx_test_XXXXXX";
  explicit TemporaryFile(const std::string& text) {
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text.data(), text.size()) == ssize_t(text.size()));
    close(fd);
  }
  ~TemporaryFile() { unlink(name); }
};

// Exit status and output of `ptxas text`.
int run_ptxas(const std::string& text, std::string* output) {
  const TemporaryFile file(text);
  const std::string command =
      std::string("ptxas -O0 -arch=sm_100a -o /dev/null ") + file.name + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  char line[4096];
  output->clear();
  while (fgets(line, sizeof line, pipe)) *output += line;
  return pclose(pipe);
}

// "ptxas /tmp/x, line 12; error   : text" per line number; the number of a fatal error, or 0.
unsigned long read_errors(const std::string& output, std::map<unsigned long, std::string>& errors) {
  unsigned long fatal = 0;
  for (size_t at = 0; (at = output.find(", line ", at)) != std::string::npos;) {
    at += strlen(", line ");
    const unsigned long line = strtoul(output.c_str() + at, nullptr, 10);
    const std::string rest = output.substr(at, output.find('\n', at) - at);
    if (rest.find("; fatal") != std::string::npos) fatal = line;
    if (rest.find("warning") == std::string::npos) errors.emplace(line, rest);
  }
  return fatal;
}

}  // namespace

std::string declarations() {
  return ".reg .pred p<32>; .reg .b8 b<32>; .reg .b16 h<32>; .reg .b32 r<32>; .reg .b64 d<32>; "
         ".reg .b128 q<32>; .reg .f32 f<32>; .reg .u32 u<32>; .reg .s32 i<32>; .reg .f16x2 x<32>; "
         ".reg .f16 e<32>; .reg .f64 g<32>; "
         ".shared .align 16 .b8 s[1024]; .local .align 16 .b8 loc[64];\n";
}

std::string module_text(const std::string& body, const std::string& target) {
  return header(target) + ".visible .entry k(.param .u64 out) {\n" + declarations() + body + "\n}\n";
}

std::unique_ptr<emu::ptx::Module> load(const std::string& text, int compute_capability) {
  return emu::ptx::load(text, compute_capability);
}

std::vector<emu::ptx::Instr> code(const std::string& body) {
  try {
    return load(module_text(body))->functions.at(0)->code;
  } catch (const emu::PtxError& e) {
    FAIL("line " << e.pos.line << ": " << e.text);
  }
  return {};
}

std::string verdict(const std::string& text, int compute_capability) {
  try {
    load(text, compute_capability);
    return "accepted";
  } catch (const emu::PtxError& e) {
    return std::to_string(e.pos.line) + ":" + std::to_string(e.pos.column) + ": " + e.text;
  }
}

std::string body_verdict(const std::string& body) {
  try {
    load(module_text(body));
    return "accepted";
  } catch (const emu::PtxError& e) {
    return std::to_string(int(e.pos.line) - int(body_line) + 1) + ":" + std::to_string(e.pos.column) +
           ": " + e.text;
  }
}

bool have_ptxas() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

bool ptxas_accepts(const std::string& text) {
  std::string output;
  return run_ptxas(text, &output) == 0;
}

// One run judges all lines: ptxas goes on behind an error, except behind a syntax error, whose line is
// then taken out. An unknown instruction at the end keeps it from compiling what it accepts.
// Instructions of .cta_group::2 get a function of their own: the two groups may not be mixed.
std::vector<std::string> ptxas_verdicts(const std::vector<std::string>& instructions) {
  std::vector<std::string> out(instructions.size());
  std::vector<bool> judged(instructions.size(), false);
  for (bool again = true; again;) {
    std::string text = header("sm_100a");
    std::vector<size_t> instruction_of_line(4, ~size_t(0));
    for (const bool pair : {false, true}) {
      text += std::string(".visible .entry ") + (pair ? "k2" : "k1") + "(.param .u64 out) {\n" + declarations() + "L:\n";
      instruction_of_line.resize(instruction_of_line.size() + 3, ~size_t(0));
      for (size_t i = 0; i < instructions.size(); ++i) {
        const bool is_pair = instructions[i].find("cta_group::2") != std::string::npos;
        if (judged[i] || is_pair != pair) continue;
        text += instructions[i] + "\n";
        instruction_of_line.push_back(i);
      }
      text += "no_such_instruction;\n}\n";
      instruction_of_line.resize(instruction_of_line.size() + 2, ~size_t(0));
    }
    std::string output;
    std::map<unsigned long, std::string> errors;
    run_ptxas(text, &output);
    const unsigned long fatal = read_errors(output, errors);
    again = false;
    for (const auto& [line, error] : errors) {
      const size_t i = line < instruction_of_line.size() ? instruction_of_line[line] : ~size_t(0);
      if (i == ~size_t(0)) continue;
      out[i] = error;
      judged[i] = true;
      again |= line == fatal;
    }
    INFO(output);
    REQUIRE((again || output.find("no_such_instruction") != std::string::npos));
  }
  return out;
}

}  // namespace ptx_test
