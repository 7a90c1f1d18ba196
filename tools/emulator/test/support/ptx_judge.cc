// SPDX-License-Identifier: MIT
// See ptx_judge.h.
#include "tools/emulator/test/support/ptx_judge.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <stdexcept>

#include "tools/emulator/ptx/target.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace ptx_test {
namespace {

struct TemporaryFile {
  char name[32] = "/tmp/ptx_test_XXXXXX";
  explicit TemporaryFile(const std::string& text) {
    const int fd = mkstemp(name);
    if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size()))
      throw std::runtime_error("cannot write a temporary file");
    close(fd);
  }
  ~TemporaryFile() { unlink(name); }
};

// What ptxas said is kept from one run of the tests to the next, because half of their time is
// ptxas's: in the folder that PTXAS_VERDICTS names, by ptxas's version, the command and the text.
// Without it nothing is kept.
struct Verdict {
  int status = -1;
  std::string output;
};

// Status and output of a shell command.
Verdict execute(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  Verdict verdict;
  char line[4096];
  while (fgets(line, sizeof line, pipe)) verdict.output += line;
  verdict.status = pclose(pipe);
  return verdict;
}

// FNV-1a from another start.
uint64_t hash(const std::string& text, uint64_t start) {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return start;
}

// "" where nothing is kept.
std::string file_of(const std::string& question) {
  const char* const folder = std::getenv("PTXAS_VERDICTS");
  if (folder == nullptr || *folder == 0) return "";
  static const std::string version = execute("ptxas --version 2>&1").output;
  const std::string text = version + question;
  char name[40];
  snprintf(name, sizeof name, "/%016llx%016llx",
           static_cast<unsigned long long>(hash(text, 0xCBF29CE484222325u)),
           static_cast<unsigned long long>(hash(text, 0x9E3779B97F4A7C15u)));
  std::filesystem::create_directories(folder);
  return folder + std::string(name);
}

// Returns false if no verdict of this ptxas on that question is stored.
bool recall(const std::string& question, Verdict* verdict) {
  const std::string name = file_of(question);
  std::ifstream file(name, std::ios::binary);
  if (name.empty() || !(file >> verdict->status) || file.get() != '\n') return false;
  verdict->output.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

// The file gets its name when it is complete, since other processes may ask meanwhile.
void keep(const std::string& question, const Verdict& verdict) {
  const std::string name = file_of(question);
  if (name.empty()) return;
  const std::string unfinished = name + "." + std::to_string(getpid());
  std::ofstream(unfinished, std::ios::binary) << verdict.status << '\n' << verdict.output;
  std::filesystem::rename(unfinished, name);
}

// ptxas says so where it refuses a text.
constexpr int refused = 255;

// That says nothing of the text: `timeout` ended it, or a signal.
bool timed_out(int status) {
  return !WIFEXITED(status) || (WEXITSTATUS(status) >= 124 && WEXITSTATUS(status) != refused);
}

// Exit status and output of `ptxas text`.
int run_ptxas(const std::string& text, std::string* output) {
  const size_t at = text.find(".target sm_");
  const std::string target = at == std::string::npos
                                 ? "sm_100a"
                                 : text.substr(at + 8, text.find_first_of(" ,\n", at + 8) - at - 8);
  // Targets that are no architectures of its own.
  const std::map<std::string, std::string> runs_as{
      {"sm_82", "sm_86"}, {"sm_101", "sm_110"}, {"sm_101a", "sm_110a"}, {"sm_101f", "sm_110f"}};
  const auto as = runs_as.find(target);
  const std::string command = "timeout 60 ptxas -O0 -suppress-sparse-mma-advisory-info -arch=" +
                              (as == runs_as.end() ? target : as->second) + " -o /dev/null ";
  const std::string question = command + text;
  Verdict verdict;
  if (!recall(question, &verdict)) {
    const TemporaryFile file(text);
    verdict = execute(command + file.name + " 2>&1");
    if (!timed_out(verdict.status)) keep(question, verdict);
  }
  *output = verdict.output;
  return verdict.status;
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

// What is missing at a statement's end shows at the label after it, not in the next statement.
std::string separator(size_t i) { return "\nbehind" + std::to_string(i) + ":\n"; }

bool pairs(const std::string& statement) {
  return statement.find("cta_group::2") != std::string::npos;
}

// The frame with the statement's target, and a .version that has it.
Frame frame_of(const std::string& statement, const Frame& frame) {
  Frame out = frame;
  const size_t at = out.text.find("sm_100a");
  if (at == std::string::npos) return out;
  out.text.replace(at, 7, target_of(statement));
  emu::ptx::Target target;
  emu::ptx::find_target(target_of(statement), target);
  const size_t version = out.text.find(".version ") + strlen(".version ");
  const std::string first = emu::ptx::dotted(target.first);
  if (out.text.compare(version, first.size(), first) < 0)
    out.text.replace(version, first.size(), first);
  return out;
}

// One run judges all statements: ptxas goes on after an error, except after a syntax error, whose
// line is then taken out. An unknown instruction at the end keeps it from compiling what it
// accepts.
class Judge {
 public:
  Judge(const std::vector<std::string>& statements, const Frame& frame,
        const std::vector<bool>& to_code = {})
      : statements_(statements), to_code_(to_code), frame_(frame), errors_(statements.size()) {}

  std::vector<std::string> run() {
    std::map<std::string, std::vector<size_t>> by_target;
    for (size_t i = 0; i < statements_.size(); ++i)
      by_target[target_of(statements_[i])].push_back(i);
    const Frame given = frame_;
    for (const auto& [target, all] : by_target) {
      frame_ = frame_of(statements_[all[0]], given);
      std::vector<size_t> accepted = run(all);
      std::erase_if(accepted, [&](size_t i) { return i < to_code_.size() && !to_code_[i]; });
      if (target != "sm_90a") assemble_in_packs(accepted);
    }
    return errors_;
  }

  // Hardly one has an error of syntax.
  std::vector<std::string> parse_all() {
    std::vector<size_t> all(statements_.size());
    std::iota(all.begin(), all.end(), 0);
    parse_in_packs(all, 10 * pack);
    return errors_;
  }

 private:
  // Statements of .cta_group::2 by themselves: the two groups may not be mixed in a function.
  void parse_in_packs(const std::vector<size_t>& all, size_t at_once) {
    for (const bool pair : {false, true}) {
      std::vector<size_t> open;
      for (const size_t i : all)
        if (pairs(statements_[i]) == pair) open.push_back(i);
      for (size_t at = 0; at < open.size(); at += at_once) {
        const auto first = open.begin() + long(at);
        parse({first, open.begin() + long(std::min(at + at_once, open.size()))});
      }
    }
  }

  // Parses, and returns what both accept.
  std::vector<size_t> run(const std::vector<size_t>& all) {
    parse_in_packs(all, pack);
    // To generate code takes long: what we refuse anyway is not worth it. A verdict against us is
    // given alone: ptxas carries modifiers from a broken statement into the next ones.
    std::vector<size_t> accepted;
    for (const size_t i : all) {
      if (!our_verdict(statements_[i], frame_).empty()) continue;
      if (!errors_[i].empty()) {
        errors_[i].clear();
        parse({i});
      }
      if (errors_[i].empty()) accepted.push_back(i);
    }
    return accepted;
  }

  // Some refusals come late, without a line: each statement in an entry of its own. A sample of
  // wgmma repeats registers in its result, which no allocation can satisfy.
  void assemble_in_packs(const std::vector<size_t>& accepted) {
    for (size_t at = 0; at < accepted.size(); at += pack) {
      const auto first = accepted.begin() + long(at);
      assemble({first, std::min(first + long(pack), accepted.end())});
    }
  }

  void parse(std::vector<size_t> open) {
    while (!open.empty()) {
      std::string output;
      std::map<unsigned long, std::string> errors;
      std::string text = frame_.text;
      const size_t first = 1 + size_t(std::count(text.begin(), text.end(), '\n'));
      for (const size_t i : open) text += statements_[i] + separator(i);
      run_ptxas(text + poison + ";\n}\n", &output);
      const unsigned long fatal = read_errors(output, errors);
      // It crashes on some statements, such as `atom.shared.add.noftz.bf16 _, ..`: found by
      // bisection, they get no verdict.
      if (!fatal && output.find(poison) == std::string::npos)
        return halve(open, [&](const std::vector<size_t>& part) { parse(part); });
      std::vector<size_t> bad;
      bool frame_is_bad = !errors.empty();
      for (const auto& [line, error] : errors) {
        frame_is_bad &= line < first;
        const size_t at = (line - first) / 2;  // the line and its separator
        if (line < first || at >= open.size()) continue;
        errors_[open[at]] = error;
        bad.push_back(open[at]);
      }
      // A statement can spoil those that follow it. With a lost brace even the error in the line of
      // the poison may be missing.
      if (fatal && bad.empty()) {
        if (open.size() == 1) errors_[open[0]] = output;
        if (frame_is_bad) throw std::runtime_error("ptxas refuses the frame: " + output);
        return halve(open, [&](const std::vector<size_t>& part) { parse(part); });
      }
      if (!fatal) return;
      for (const size_t b : bad) std::erase(open, b);
    }
  }

  void assemble(const std::vector<size_t>& open) {
    if (open.empty()) return;
    const std::string entry = ".entry k(";
    const size_t at = frame_.text.find(entry);
    std::string text = frame_.text.substr(0, frame_.text.rfind('\n', at) + 1);
    for (const size_t i : open)
      text += ".visible .entry k" + std::to_string(i) + "(" +
              frame_.text.substr(at + entry.size()) + statements_[i] + separator(i) + "ret;\n}\n";
    std::string output;
    if (run_ptxas(text, &output) == 0) return;
    if (open.size() == 1 && output.find("rror") != std::string::npos) errors_[open[0]] = output;
    halve(open, [&](const std::vector<size_t>& part) { assemble(part); });
  }

  template <class F>
  static void halve(const std::vector<size_t>& open, F f) {
    if (open.size() == 1) return;
    const auto middle = open.begin() + long(open.size() / 2);
    f({open.begin(), middle});
    f({middle, open.end()});
  }

  static constexpr const char* poison = "no_such_instruction";
  static constexpr size_t pack = 40;  // a syntax error costs a run: smaller ones are shorter
  const std::vector<std::string>& statements_;
  const std::vector<bool>& to_code_;
  Frame frame_;
  std::vector<std::string> errors_;
};

}  // namespace

bool have_ptxas() { return std::system("ptxas --version > /dev/null 2>&1") == 0; }

Frame plain_frame() { return frame_at("sm_100a", 90); }

namespace {

Frame frame_with(const std::string& registers, const std::string& target, int version) {
  return {module_head(target, version) + ".visible .entry k(.param .u64 out) {\n" + registers +
          "L: T: .branchtargets L;\n"};
}

}  // namespace

Frame frame_at(const std::string& target, int version) {
  return frame_with(declarations(version), target, version);
}

Frame frame_for(const std::string& statement, const std::string& target, int version) {
  return frame_with(declarations_for(statement, version), target, version);
}

std::string ptxas_verdict(const std::string& module) {
  std::string output;
  if (run_ptxas(module, &output) == 0) return "";
  return output.empty() ? "refused without a word" : output;
}

std::vector<std::string> ptxas_verdicts(const std::vector<std::string>& statements,
                                        const Frame& frame, const std::vector<bool>& to_code) {
  return Judge(statements, frame, to_code).run();
}

std::vector<std::string> parser_verdicts(const std::vector<std::string>& statements,
                                         const Frame& frame) {
  return Judge(statements, frame).parse_all();
}

std::string our_verdict(const std::string& statement, const Frame& frame) {
  std::string text = frame_of(statement, frame).text;
  for (const int version : {90, 80}) {  // with .b128 and without
    const std::string all = declarations(version);
    const size_t at = text.find(all);
    if (at != std::string::npos) text.replace(at, all.size(), declarations_for(statement, version));
  }
  const std::string v = verdict(text + statement + separator(0) + "}\n", capability_of(statement));
  return v == "accepted" ? "" : v;
}

}  // namespace ptx_test
