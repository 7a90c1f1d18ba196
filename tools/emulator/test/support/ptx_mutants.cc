// SPDX-License-Identifier: MIT
// See ptx_mutants.h.
#include "tools/emulator/test/support/ptx_mutants.h"

#include <cctype>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tools/emulator/ptx/target.h"
#include "tools/emulator/test/support/ptx_samples.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace ptx_test {
namespace {

size_t draw(std::mt19937& random, size_t n) { return random() % n; }

bool in_word(char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '$' || c == '%'; }

// Words with the dot or colons before them, single marks; blanks are dropped.
std::vector<std::string> tokens(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (text[at] == '.' || text[at] == '@' || text[at] == '!') ++at;
    while (at < text.size() &&
           (in_word(text[at]) || (text[at] == ':' && text.compare(at, 2, "::") == 0 && ++at)))
      ++at;
    if (at == start) ++at;
    if (!std::isspace(uint8_t(text[start]))) out.push_back(text.substr(start, at - start));
  }
  return out;
}

const char* const pool[] = {",",
                            ";",
                            ".",
                            "[",
                            "]",
                            "{",
                            "}",
                            "(",
                            ")",
                            "|",
                            "@p1",
                            "@!p1",
                            "!",
                            "-",
                            "+",
                            "0",
                            "1",
                            "-1",
                            "0x80000000000000000",
                            "4294967296",
                            "0f3F800000",
                            "1.5",
                            "%tid",
                            "%clock64",
                            "_",
                            "r1",
                            "d1",
                            "p1",
                            "h1",
                            "s",
                            "%r1",
                            "%rd1",
                            "%p1",
                            ".s32",
                            ".u64",
                            ".f32",
                            ".b16",
                            ".pred",
                            ".global",
                            ".shared",
                            ".param",
                            ".local",
                            ".reg",
                            ".align",
                            ".ftz",
                            ".sat",
                            ".v2",
                            ".v4",
                            ".uni",
                            ".sync",
                            ".aligned",
                            "WARP_SZ"};

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) {
    const bool tight = out.empty() || w[0] == '.' || w == ";" || w == "," || w == "]" || w == "}";
    out += (tight ? "" : " ") + w;
  }
  return out;
}

std::string reason_of(const std::string& verdict) {
  // "12:3: text in 'statement'": names and numbers differ, the sentence does not.
  size_t at = verdict.find(": ");
  std::string out;
  bool quoted = false;
  for (const char c : verdict.substr(at == std::string::npos ? 0 : at + 2)) {
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (std::isdigit(uint8_t(c)) && !out.empty() && out.back() == '#') continue;
    out += std::isdigit(uint8_t(c)) ? '#' : c;
  }
  return out.substr(0, 90);
}

// From 7.5 to 9.1, some of which there are not.
std::string random_version(std::mt19937& random) {
  return ".version " + emu::ptx::dotted(75 + int(draw(random, 17)));
}

int capability_in(const std::string& module) {
  const size_t at = module.find(".target sm_");
  return at == std::string::npos ? 100 : atoi(module.c_str() + at + strlen(".target sm_"));
}

void count(Score& score, const std::string& mutant, const std::string& ours,
           const std::string& theirs) {
  ++score.mutants;
  if (ours.empty() && theirs.empty()) ++score.both_accept;
  if (!ours.empty() && !theirs.empty()) ++score.both_refuse;
  if (ours.empty() && !theirs.empty()) score.too_lenient.push_back(mutant + "\n    " + theirs);
  if (!ours.empty() && theirs.empty() && ++score.too_strict[reason_of(ours)] == 1)
    score.strict_examples.push_back(mutant + "\n    " + ours);
}

// The body's statements and what they need before them.
Corpus corpus_of(const std::string& head, const std::string& parameters,
                 const std::vector<std::string>& lines) {
  Corpus out;
  std::string declared, labels, open;
  int depth = 0;
  for (const std::string& line : lines) {
    const std::string text = line.substr(0, line.find("//"));
    if (text.find_first_not_of(" \t") == std::string::npos) continue;
    for (const char c : text) depth += (c == '{') - (c == '}');
    if (depth == 0 && open.empty() && text.find(".reg") != std::string::npos)
      declared += text + " ";
    else if (depth == 0 && open.empty() && text[0] == '$')
      labels += text.substr(0, text.find(':') + 1) + " ";
    else
      open += text + " ";
    if (depth == 0 && !open.empty() && open.find('.') != 0) {
      out.statements.push_back(open);
    }
    if (depth == 0) open.clear();
  }
  out.frame.text = head + ".visible .entry k(" + parameters + ") {\n" + declared + labels + "\n";
  return out;
}

}  // namespace

void Score::add(const Score& o) {
  mutants += o.mutants;
  both_accept += o.both_accept;
  both_refuse += o.both_refuse;
  too_lenient.insert(too_lenient.end(), o.too_lenient.begin(), o.too_lenient.end());
  for (const auto& [reason, n] : o.too_strict) too_strict[reason] += n;
  strict_examples.insert(strict_examples.end(), o.strict_examples.begin(), o.strict_examples.end());
}

Corpus row_corpus(std::mt19937& random) {
  const int versions[] = {86, 87, 88, 90};
  Corpus out{frame_at("sm_100a", versions[draw(random, std::size(versions))]), {}};
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes())
    for (const emu::ptx::Form& form : opcode.forms)
      out.statements.push_back(random_sample(opcode, form, random));
  return out;
}

std::vector<Corpus> file_corpora(const std::string& path) {
  std::ifstream in(path);
  std::vector<Corpus> out;
  std::string head, parameters;
  std::vector<std::string> body;
  enum { outside, header, inside } where = outside;
  int depth = 0;  // of scopes in the entry
  for (std::string line; std::getline(in, line);) {
    if (where == outside) {
      if (line.find(".entry") == std::string::npos) {
        if (line.find("//") != 0) head += line + "\n";
        continue;
      }
      where = header;
      parameters.clear();
    } else if (where == header && line[0] == '{') {
      where = inside;
      depth = 0;
      body.clear();
    } else if (where == header && line.find(".param") != std::string::npos) {
      parameters += line;
    } else if (where == inside && depth == 0 && line[0] == '}') {
      out.push_back(corpus_of(head, parameters, body));
      where = outside;
    } else if (where == inside) {
      for (const char c : line) depth += (c == '{') - (c == '}');
      body.push_back(line);
    }
  }
  return out;
}

std::string token_mutant(const std::string& statement, std::mt19937& random) {
  std::vector<std::string> words = tokens(statement);
  if (words.empty()) return statement;
  const size_t i = draw(random, words.size());
  switch (draw(random, 6)) {
    case 0: words.erase(words.begin() + long(i)); break;
    case 1: words.insert(words.begin() + long(i), words[i]); break;
    case 2: std::swap(words[i], words[(i + 1) % words.size()]); break;
    case 3: words[i] = words[draw(random, words.size())]; break;
    default: words[i] = pool[draw(random, std::size(pool))]; break;
  }
  return join(words);
}

Score judge(const Corpus& corpus, size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::string> mutants;
  while (mutants.size() < n && !corpus.statements.empty()) {
    const std::string& one = corpus.statements[draw(random, corpus.statements.size())];
    std::string m = draw(random, 2) ? token_mutant(one, random) : mutant(one, random);
    // A mutant may not leave its place: braces out of balance are for whole modules.
    int depth = 0, least = 0;
    for (const char c : m) least = std::min(least, depth += (c == '{') - (c == '}'));
    if (depth == 0 && least == 0 && m.find_first_of("\n\"") == std::string::npos)
      mutants.push_back(m);
  }
  const std::vector<std::string> theirs = ptxas_verdicts(mutants, corpus.frame);
  Score score;
  for (size_t i = 0; i < mutants.size(); ++i) {
    std::string ours = our_verdict(mutants[i], corpus.frame);
    count(score, mutants[i], ours, theirs[i]);
  }
  return score;
}

Score judge_modules(const std::vector<std::string>& modules, size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  Score score;
  for (size_t k = 0; k < n; ++k) {
    std::stringstream in(modules[draw(random, modules.size())]);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (draw(random, 4)) {
      std::string& line = lines[draw(random, lines.size())];
      line = token_mutant(line, random);
    } else {
      lines[0] = random_version(random);
    }
    std::string text;
    for (const std::string& l : lines) text += l + "\n";
    const std::string v = verdict(text, capability_in(text));
    count(score, text, v == "accepted" ? "" : v, ptxas_verdict(text));
  }
  return score;
}

std::vector<std::string> sample_modules() {
  const std::string head = module_head();
  return {
      head +
          ".visible .entry k(.param .u64 a, .param .align 64 .b8 b[128], .param .f32 c)\n"
          ".maxntid 128, 1, 1\n.minnctapersm 1\n{\n.reg .pred %p<3>;\n.reg .b32 %r<4>, x, y;\n"
          "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra DONE;\nadd.s32 x, %r1, 1;\n"
          "DONE:\nret;\n}\n",
      head +
          ".extern .shared .align 1024 .b8 dyn[];\n.shared .align 16 .b8 fixed[64];\n"
          ".entry k()\n.reqntid 32\n.reqnctapercluster 2, 1, 1\n{\n.reg .b32 r;\n"
          ".shared .align 8 .b64 bar;\n.local .align 4 .b8 depot[16];\nmov.u32 r, dyn;\n"
          "st.shared.u32 [fixed+4], r;\nst.local.u32 [depot], r;\nmov.u32 r, bar;\nret;\n}\n",
      head +
          ".global .align 4 .b8 text[6] = {104, 101, 108, 108, 111};\n"
          ".global .u32 one = 1;\n.const .align 8 .f64 half[2] = {0.5, 0d3FE0000000000000};\n"
          ".visible .global .v4 .f32 four;\n.entry k(.param .u64 .ptr .global .align 16 p)\n{\n"
          ".reg .b64 d;\n.reg .b32 r;\nmov.u64 d, text;\nld.global.u32 r, [one];\n"
          "ld.const.u32 r, [half+8];\nst.global.u32 [four+4], r;\nret;\n}\n",
      head +
          ".entry k()\n.maxnreg 64\n{\n.reg .b32 a;\n{\n.reg .b64 a;\nmov.b64 a, 1;\n}\n"
          "mov.b32 a, 2;\nbra.uni L;\nL:\n{\nL:\nbra L;\n}\n.pragma \"nounroll\";\nexit;\n}\n"
          ".entry second()\n{\nret;\n}\n",
      module_head("sm_90") +
          ".visible .entry k(.param .u64 p)\n{\n.reg .b32 r;\n.reg .b64 d;\n"
          "ld.param.u64 d, [p];\nld.global.L2::128B.u32 r, [d];\ncp.async.bulk.commit_group;\n"
          "cp.async.bulk.wait_group 0;\nret;\n}\n",
      module_head("sm_90") +
          ".visible .entry k(.param .u64 p)\n{\n.reg .b128 q;\n.reg .b64 d;\n"
          "ld.param.u64 d, [p];\nld.b128 q, [d];\nst.b128 [d], q;\nret;\n}\n",
      module_head("sm_90a") +
          ".shared .align 8 .b64 bar;\n.entry k()\n{\n.reg .b64 d;\n"
          "mbarrier.arrive.relaxed.cta.shared.b64 d, [bar];\nret;\n}\n",
  };
}

}  // namespace ptx_test
