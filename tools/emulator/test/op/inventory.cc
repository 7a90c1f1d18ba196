// SPDX-License-Identifier: MIT
// Walks inventory.def: each instruction of other people's NVFP4 kernels loads, runs and gives the
// result written there, and ptxas accepts the same text.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/ptx_support.h"
#include "tools/emulator/test/support/unit_device.h"

using namespace emu;

namespace {

enum class Tier { a, b, c };
struct Row {
  Tier tier;
  const char *opcode, *statements, *before, *after, *file;
};
const Row rows[] = {
#define RUNS(tier, opcode, ...) {Tier::tier, opcode, __VA_ARGS__, nullptr},
#define RUNS_IN(tier, opcode, file) {Tier::tier, opcode, nullptr, nullptr, nullptr, file},
#include "tools/emulator/test/op/inventory.def"
#undef RUNS
#undef RUNS_IN
};

// "r1=5 p0=1" as registers and numbers.
struct Assignment {
  std::string reg;
  uint64_t value;
  uint32_t bits() const { return reg[0] == 'd' ? 64 : reg[0] == 'r' ? 32 : reg[0] == 'h' ? 16 : 1; }
};
std::vector<Assignment> assignments(const char* text) {
  std::vector<Assignment> out;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    std::string number = word.substr(equals + 1);
    if (number.compare(0, 2, "0f") == 0) number[1] = 'x';
    const bool negative = number[0] == '-';
    const uint64_t value = std::stoull(number.substr(negative), nullptr, 0);
    out.push_back({word.substr(0, equals), negative ? 0 - value : value});
  }
  return out;
}

constexpr uint32_t results = 16;  // of 8 bytes, per lane

std::string entry(const Row& row, size_t i) {
  std::string text =
      ".visible .entry k" + std::to_string(i) +
      "(.param .u64 k_out, .param .align 16 .b8 k_p[64], .param .align 64 .b8 k_map[128])\n{\n"
      ".reg .pred p<10>; .reg .b8 b<10>; .reg .b16 h<10>; .reg .b32 r<10>, rs; .reg .b64 d<10>;\n"
      ".reg .b64 dg, dl, out; .reg .b128 q<10>;\n"
      ".shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar; .shared .u32 word;\n"
      ".local .align 16 .b8 own[64];\n"
      "ld.param.u64 out, [k_out]; mov.u32 r0, %tid.x; setp.eq.s32 p9, r0, 0;\n"
      "mul.wide.u32 d0, r0, 64; mov.u64 dg, lanes; add.u64 dg, dg, d0; cvta.global.u64 dg, dg;\n"
      "cvt.u32.u64 r1, d0; mov.u32 rs, s; add.u32 rs, rs, r1; mov.u64 dl, own;\n"
      "mul.wide.u32 d0, r0, 128; add.u64 out, out, d0;\n";
  for (const Assignment& x : assignments(row.before))
    text += x.bits() == 1
                ? format("setp.ne.u32 %s, %u, 0;\n", x.reg.c_str(), uint32_t(x.value))
                : format("mov.b%u %s, 0x%llx;\n", x.bits(), x.reg.c_str(),
                         static_cast<unsigned long long>(x.value & (~0ull >> (64 - x.bits()))));
  text += std::string(row.statements) + "\n";
  uint32_t slot = 0;
  for (const Assignment& x : assignments(row.after)) {
    std::string reg = x.reg;
    if (x.bits() == 1) text += "selp.u32 " + (reg = "r9") + ", 1, 0, " + x.reg + ";\n";
    text += format("st.global.b%u [out+%u], %s;\n", std::max(16u, x.bits() == 1 ? 32 : x.bits()),
                   8 * slot++, reg.c_str());
  }
  return text + "ret;\n}\n";
}

// One entry per row.
const std::string& module_text() {
  static const std::string text = [] {
    std::string out =
        ".version 9.0\n.target sm_100a\n.address_size 64\n"
        ".global .align 64 .b8 g[64];\n.global .align 64 .b8 lanes[2048];\n"
        ".global .align 16 .u32 c[4] = {100, 101, 102, 103};\n"
        ".func (.param .b32 y) sum(.param .align 8 .b8 x[16])\n{\n.reg .b32 r<5>;\n"
        "ld.param.b32 r0, [x]; ld.param.b32 r1, [x+4]; ld.param.b32 r2, [x+8];\n"
        "ld.param.b32 r3, [x+12]; add.u32 r0, r0, r1; add.u32 r0, r0, r2; add.u32 r0, r0, r3;\n"
        "st.param.b32 [y], r0; ret;\n}\n";
    for (size_t i = 0; i < std::size(rows); ++i)
      if (rows[i].statements) out += entry(rows[i], i);
    return out;
  }();
  return text;
}

// The results of one row's entry, per lane and slot.
std::vector<uint64_t> run(ptx::Module& module, size_t i) {
  GlobalMemory memory(1 << 24);
  std::vector<uint64_t> out(32 * results);
  const uint64_t at = memory.allocate(out.size() * 8, "out");
  const uint64_t tensor = memory.allocate(256, "tensor");
  for (ptx::Variable& v : module.variables) {
    v.address = memory.allocate(v.bytes, v.name.c_str());
    if (!v.init.empty())
      std::memcpy(memory.at(v.address, v.bytes, 1, "test"), v.init.data(), v.init.size());
  }
  Launch launch;
  launch.module = &module;
  launch.function = module.entry("k" + std::to_string(i));
  launch.grid = launch.cluster = {1, 1, 1};
  launch.block = {32, 1, 1};
  launch.memory = &memory;
  launch.params.resize(256);
  std::memcpy(&launch.params[0], &at, 8);
  for (uint8_t k = 0; k < 64; ++k) launch.params[16 + k] = k;
  alignas(64) TensorMap map;
  const uint64_t dims[] = {256};
  const uint32_t box[] = {16}, steps[] = {1};
  REQUIRE(encode_tiled({&map, 0, 1, tensor, dims, nullptr, box, steps, 0, 0, 0, 0}, 100, &map) ==
          "");
  const EncodedMap bytes = map;
  std::memcpy(&launch.params[128], &bytes, sizeof bytes);
  run_watched(launch);
  std::memcpy(out.data(), memory.at(at, out.size() * 8, 1, "test"), out.size() * 8);
  return out;
}

std::string file(const std::string& path) {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("tools/emulator/test/")) + path);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size())
    if (std::string(" ;\n\"").find(text[at + word.size()]) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("every opcode of the inventory runs in all its operand forms and gives the result") {
  const auto module = ops::load(module_text(), 100);
  for (size_t i = 0; i < std::size(rows); ++i) {
    const Row& row = rows[i];
    INFO(row.opcode);
    if (!row.statements) {
      CHECK(has_word(file(std::string("tools/emulator/test/") + row.file), row.opcode));
      continue;
    }
    CHECK(has_word(row.statements, row.opcode));
    const std::vector<Assignment> after = assignments(row.after);
    REQUIRE(!after.empty());
    const std::vector<uint64_t> out = run(*module, i);
    for (size_t k = 0; k < after.size(); ++k) {
      const uint64_t mask = ~0ull >> (64 - after[k].bits());
      size_t wrong = 0;
      for (uint32_t lane = 0; lane < 32; ++lane)
        wrong += (out[lane * results + k] ^ after[k].value) & mask ? 1 : 0;
      INFO(after[k].reg << " is 0x" << std::hex << out[k] << ", in lane 31 0x"
                        << out[31 * results + k]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("ptxas takes the inventory's module") {
  if (!ptx_test::have_ptxas()) SKIP_TEST("no ptxas on PATH");
  CHECK(ptx_test::ptxas_verdict(module_text()) == "");
}

TEST_CASE("brkpt stops the kernel in the lanes whose guard lets them") {
  for (const bool reached : {true, false}) {
    const std::string text = std::string(
                                 ".version 9.0\n.target sm_100a\n.address_size 64\n"
                                 ".visible .entry k()\n{\n.reg .pred p;\nsetp.eq.u32 p, ") +
                             (reached ? "1" : "2") + ", 1;\n@p brkpt;\nret;\n}\n";
    const auto stop = [&] {
      GlobalMemory memory(1 << 20);
      unit::run(text, memory, {1, 1}, {});
    };
    const std::string report = unit::fault(FaultKind::assertion, stop);
    CHECK((reached ? unit::says(report, "brkpt") : report == "no fault"));
  }
}

TEST_CASE("the emulator's manual counts the inventory") {
  const std::string manual = file("tools/emulator/docs/evidence.md");
  for (const Tier tier : {Tier::a, Tier::b, Tier::c}) {
    size_t opcodes = 0, programs = 0;
    for (const Row& row : rows)
      if (row.tier == tier) ++opcodes, programs += row.file != nullptr;
    const std::string line =
        format("| %zu | %zu | %zu | 0 |\n", opcodes, opcodes - programs, programs);
    printf("inventory, tier %c: %zu opcodes, %zu run alone, %zu in programs, 0 refused\n",
           "abc"[int(tier)], opcodes, opcodes - programs, programs);
    CAPTURE(line);
    CHECK(manual.find(line) != std::string::npos);
  }
}

TEST_CASE("what other kernels do not need is refused with line and column and text and a reason") {
  const struct {
    const char *statement, *part;
  } refused[] = {
      {"tcgen05.mma.ws.sp.cta_group::1.kind::f16 [r1], d1, d2, [r3], r2, p1;", "tcgen05.mma.ws.sp"},
      {"tcgen05.mma.sp.cta_group::1.kind::f16 [r1], d1, d2, [r3], r2, p1;", "tcgen05.mma.sp"},
      {"tcgen05.mma.sp.cta_group::2.kind::mxf4nvf4.block_scale.block16 [r1], d1, d2, [r3], r2, "
       "[r4], [r5], p1;",
       "tcgen05.mma.sp"},
      {"tcgen05.mma.cta_group::1.kind::f16.ashift [r1], [r2], d1, r3, p1;", ".ashift"},
      {"tcgen05.shift.cta_group::1.down [r1];", "tcgen05.shift"},
      {"tcgen05.cp.cta_group::1.32x128b.warpx4.b8x16.b4x16_p64 [r1], d1;", ".b4x16_p64"},
      {"cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes "
       "[r1], [d1, {r1,r2,r3,r4}], [r6], {h1, h2};",
       ".im2col::w"},
      {"multimem.ld_reduce.global.add.f32 f1, [d1];", "multimem"},
      {"ldu.global.u32 r1, [d1];", "ldu"},
  };
  for (const auto& row : refused) {
    const std::string why = ptx_test::body_verdict(row.statement);
    INFO(row.statement << "\n" << why);
    CHECK(why.compare(0, 4, "1:1:") == 0);
    CHECK(why.find(row.part) != std::string::npos);
    CHECK((why.find("not emulated") != std::string::npos ||
           why.find("not supported") != std::string::npos));
    if (ptx_test::have_ptxas()) CHECK(ptx_test::ptxas_verdicts({row.statement})[0] == "");
  }
}
