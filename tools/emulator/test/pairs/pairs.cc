// SPDX-License-Identifier: MIT
// See pairs.h.
#include "tools/emulator/test/pairs/pairs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

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

std::map<std::string, std::string> words(const std::string& line) {
  std::map<std::string, std::string> found;
  std::stringstream text(line);
  for (std::string word; text >> word;)
    if (const size_t at = word.find('='); at != std::string::npos)
      found[word.substr(0, at)] = word.substr(at + 1);
  return found;
}

Pair read_pair(const std::filesystem::path& path) {
  std::ifstream in(path);
  Pair p;
  p.name = path.stem();
  std::string line, racy, repaired;
  std::getline(in, line);  // the licence
  std::getline(in, line);
  p.family = line.size() > 3 ? line.substr(3) : "";
  std::getline(in, line);
  std::map<std::string, std::string> of = words(line);
  p.expected = of["class"];
  if (p.expected != "error" && p.expected != "formal" && p.expected != "silent")
    throw std::runtime_error(path.string() + ": class is error, formal or silent");
  auto number = [&](const char* name) { return unsigned(std::stoul(of[name])); };
  p.target = number("target");
  p.block = number("block");
  p.cluster = number("cluster");
  p.grid = number("grid");
  while (std::getline(in, line)) {
    const bool marked = line[0] == '-' || line[0] == '+';
    const std::string text = line.substr(marked) + "\n";
    if (!marked || line[0] == '-') racy += text;
    if (!marked || line[0] == '+') repaired += text;
  }
  p.racy = module(p, racy);
  p.repaired = module(p, repaired);
  return p;
}

}  // namespace

std::vector<Pair> read_pairs(const std::string& folder) {
  std::vector<Pair> pairs;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".ptx") pairs.push_back(read_pair(entry.path()));
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.name < b.name; });
  return pairs;
}

}  // namespace hazard_test
