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
  const std::string target =
      text.find(".target sm_90a") == std::string::npos ? "sm_100a" : "sm_90a";
  const std::string command = "ptxas -O0 -arch=" + target + " -o /dev/null " + file.name + " 2>&1";
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
  return header(target) + ".visible .entry k(.param .u64 out) {\n" + declarations() + body +
         "\n}\n";
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

std::string target_of(const std::string& instruction) {
  return instruction.find("wgmma.") == std::string::npos ? "sm_100a" : "sm_90a";
}

std::string body_verdict(const std::string& body) {
  try {
    const std::string target = target_of(body);
    load(module_text(body, target), target == "sm_90a" ? 90 : 100);
    return "accepted";
  } catch (const emu::PtxError& e) {
    return std::to_string(int(e.pos.line) - int(body_line) + 1) + ":" +
           std::to_string(e.pos.column) + ": " + e.text;
  }
}

bool have_ptxas() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

bool ptxas_accepts(const std::string& text) {
  std::string output;
  return run_ptxas(text, &output) == 0;
}

namespace {

// One run judges all lines: ptxas goes on behind an error, except behind a syntax error, whose line
// is then taken out. An unknown instruction at the end keeps it from compiling what it accepts.
class Judge {
 public:
  explicit Judge(const std::vector<std::string>& instructions)
      : instructions_(instructions), errors_(instructions.size()) {}

  std::vector<std::string> run() {
    for (const char* target : {"sm_90a", "sm_100a"}) {
      std::vector<size_t> all;
      for (size_t i = 0; i < instructions_.size(); ++i)
        if (target_of(instructions_[i]) == target) all.push_back(i);
      target_ = target;
      if (!all.empty()) judge(all);
    }
    return errors_;
  }

 private:
  void judge(std::vector<size_t> open) {
    while (!open.empty()) {
      std::string output;
      std::map<unsigned long, std::string> errors;
      const std::vector<size_t> at_line = write_module(open);
      run_ptxas(text_, &output);
      const unsigned long fatal = read_errors(output, errors);
      if (!fatal && output.find(poison) == std::string::npos) return halve(open);
      for (const auto& [line, error] : errors) {
        if (line >= at_line.size() || at_line[line] == none) continue;
        errors_[at_line[line]] = error;
        std::erase(open, at_line[line]);
      }
      if (!fatal) return;
    }
  }

  // It crashes on some instructions, such as `atom.shared.add.noftz.bf16 _, ..`. They are found by
  // bisection and get no verdict.
  void halve(const std::vector<size_t>& open) {
    if (open.size() == 1) return;
    const auto middle = open.begin() + long(open.size() / 2);
    judge({open.begin(), middle});
    judge({middle, open.end()});
  }

  // Instructions of .cta_group::2 get a function of their own: the two groups may not be mixed.
  std::vector<size_t> write_module(const std::vector<size_t>& open) {
    text_ = header(target_);
    std::vector<size_t> at_line(4, none);
    for (const bool pair : {false, true}) {
      text_ += std::string(".visible .entry ") + (pair ? "k2" : "k1") + "(.param .u64 out) {\n" +
               declarations() + "L:\n";
      at_line.resize(at_line.size() + 3, none);
      for (const size_t i : open) {
        if ((instructions_[i].find("cta_group::2") != std::string::npos) != pair) continue;
        text_ += instructions_[i] + "\n";
        at_line.push_back(i);
      }
      text_ += std::string(poison) + ";\n}\n";
      at_line.resize(at_line.size() + 2, none);
    }
    return at_line;
  }

  static constexpr size_t none = ~size_t(0);
  static constexpr const char* poison = "no_such_instruction";
  const std::vector<std::string>& instructions_;
  std::vector<std::string> errors_;
  std::string text_, target_;
};

}  // namespace

std::vector<std::string> ptxas_verdicts(const std::vector<std::string>& instructions) {
  return Judge(instructions).run();
}

}  // namespace ptx_test
