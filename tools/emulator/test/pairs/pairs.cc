// SPDX-License-Identifier: MIT
// See pairs.h.
#include "tools/emulator/test/pairs/pairs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace hazard_test {

namespace {

// Every body finds: the thread's numbers, its words of the buffers, a tensor map of the one to
// write, 8 KiB of shared memory with its word of it, two mbarriers.
const char* const declarations = R"(.reg .pred %p<8>;
.reg .b16 %h<4>;
.reg .b32 %r<16>;
.reg .b32 %id, %warp, %lane, %rank, %peer, %buf, %at, %bar, %far, %farbar, %t, %cta;
.reg .b64 %rd<8>;
.reg .b64 %out, %in, %my, %mine, %map, %desc;
.shared .align 1024 .b8 buf[8192];
.shared .align 8 .b64 bars[2];
.shared .align 4 .b32 word;
ld.param.u64 %out, [k_out];
ld.param.u64 %in, [k_in];
cvta.to.global.u64 %out, %out;
cvta.to.global.u64 %in, %in;
mov.b64 %map, k_map;
cvta.param.u64 %map, %map;
mov.u32 %id, %tid.x;
mov.u32 %cta, %ctaid.x;
shr.u32 %warp, %id, 5;
and.b32 %lane, %id, 31;
mov.u32 %buf, buf;
mov.u32 %bar, bars;
shl.b32 %r0, %id, 2;
add.u32 %at, %buf, %r0;
cvt.u64.u32 %rd0, %r0;
add.u64 %mine, %in, %rd0;
shl.b32 %r1, %cta, 12;
add.u32 %r0, %r0, %r1;
add.u32 %r0, %r0, 4096;
cvt.u64.u32 %rd0, %r0;
add.u64 %my, %out, %rd0;
)";

std::string module(const Pair& p, const std::string& body) {
  const std::string cluster = p.cluster == 1 ? ""
                                             : ".explicitcluster .reqnctapercluster " +
                                                   std::to_string(p.cluster) + ", 1, 1\n";
  return ".version 8.7\n.target sm_" + std::to_string(p.target) + (p.target == 100 ? "a" : "") +
         "\n.address_size 64\n" +
         ".visible .entry k(.param .u64 k_out, .param .u64 k_in, .param .align 64 .b8 "
         "k_map[128])\n" +
         cluster + "{\n" + declarations + body + "ret;\n}\n";
}

// What stands under a line that begins with "//: ".
struct Section {
  std::vector<std::string> words;  // of that line
  std::string about;
  std::vector<std::string> lines;
};

std::vector<std::string> words_of(const std::string& line) {
  std::stringstream text(line);
  return {std::istream_iterator<std::string>(text), {}};
}

std::vector<Section> sections_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Section> found;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("//: "))
      found.push_back({words_of(line.substr(4)), "", {}});
    else if (found.empty() || line.empty())
      continue;
    else if (line.starts_with("// "))
      found.back().about = line.substr(3);
    else
      found.back().lines.push_back(line);
  }
  return found;
}

using Parts = std::map<std::string, Section>;

std::string replaced(std::string text, const std::string& argument) {
  if (const size_t at = text.find("$1"); at != std::string::npos) text.replace(at, 2, argument);
  return text;
}

// Adds a line, or the lines of the parts that it names, to the racy and the repaired program. If
// the program does not say what it is about, the descriptions of its parts say so.
void add(const std::string& line, const Parts& parts, bool by_parts, Pair& p) {
  const std::string mark = line.substr(0, line[0] == '-' || line[0] == '+');
  const std::string text = line.substr(mark.size());
  if (!text.starts_with("= ")) {
    if (mark != "+") p.racy += text + "\n";
    if (mark != "-") p.repaired += text + "\n";
    return;
  }
  for (const std::string& word : words_of(text.substr(2))) {
    const size_t open = std::min(word.find('('), word.size());
    const std::string argument = word.substr(open, word.find(')') - open).erase(0, 1);
    const auto named = parts.find(word.substr(0, open));
    if (named == parts.end()) throw std::runtime_error(p.name + ": no part is " + word);
    const Section& part = named->second;
    for (const std::string& each : part.lines)
      add(mark + replaced(each, argument), parts, false, p);
    if (by_parts && !part.about.empty())
      p.family += (p.family.empty() ? "" : "; ") + replaced(part.about, argument);
  }
}

Pair pair_of(const Section& section, const Parts& parts) {
  Pair p;
  p.name = section.words.at(0);
  p.expected = section.words.at(1);
  if (p.expected != "error" && p.expected != "formal" && p.expected != "silent")
    throw std::runtime_error(p.name + ": a class is error, formal or silent");
  for (size_t i = 2; i < section.words.size(); ++i) {
    const std::string& word = section.words[i];
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string name = word.substr(0, equals);
    unsigned* const where = name == "target"    ? &p.target
                            : name == "block"   ? &p.block
                            : name == "cluster" ? &p.cluster
                            : name == "grid"    ? &p.grid
                                                : nullptr;
    if (!where) throw std::runtime_error(p.name + ": " + word + " is unknown");
    *where = unsigned(std::stoul(word.substr(equals + 1)));
  }
  p.family = section.about;
  const bool by_parts = section.about.empty();
  for (const std::string& line : section.lines) add(line, parts, by_parts, p);
  p.racy = module(p, p.racy);
  p.repaired = module(p, p.repaired);
  return p;
}

}  // namespace

std::vector<Pair> read_pairs(const std::string& folder) {
  std::vector<Section> programs;
  Parts parts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".ptx") continue;
    for (Section& section : sections_of(entry.path()))
      if (section.words.at(0) == "part")
        parts[section.words.at(1)] = std::move(section);
      else
        programs.push_back(std::move(section));
  }
  std::vector<Pair> pairs;
  for (const Section& program : programs) pairs.push_back(pair_of(program, parts));
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.name < b.name; });
  return pairs;
}

}  // namespace hazard_test
