// SPDX-License-Identifier: MIT
// Modules: header and target, functions, parameters, variables, scopes of names and labels.
#include <chrono>

#include "tools/emulator/ptx/lower.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace ptx_test;
using emu::ptx::Function;
using emu::ptx::Module;
using emu::ptx::Space;

std::string with_header(const std::string& rest, const std::string& target = "sm_100a") {
  return ".version 9.0\n.target " + target + "\n.address_size 64\n" + rest;
}

std::string target_verdict(const std::string& target, int compute_capability) {
  return verdict(with_header(".entry k() { ret; }", target), compute_capability);
}

}  // namespace

TEST_CASE(
    "what ptxas refuses of a module is refused: constants and pragmas and options of .target") {
  const auto body = [](const std::string& text) {
    return verdict(with_header(text + "\n.visible .entry k() { ret; }"), 100);
  };
  CHECK(body(".const .b8 c[65536];") == "accepted");
  CHECK(body(".const .b8 c[65537];") == "4:12: more than 64 KB of .const variables");
  CHECK(body(".const .b8 c[65530];\n.const .align 16 .b8 e[16];") ==
        "5:22: more than 64 KB of .const variables");
  CHECK(body(".pragma \"nounroll\";") == "accepted");
  CHECK(body(".pragma \"foo\";") == "4:1: a module has no pragma but nounroll, found '.pragma'");
  CHECK(target_verdict("sm_90a, debug", 90) ==
        "2:17: a module of .target debug has no .section .debug_info");
  CHECK(target_verdict("sm_90a, foo", 90) == "2:17: unknown target option 'foo'");
  CHECK(verdict(with_header(".entry k() { ret; }\n.section .debug_info { .b8 0 }", "sm_90a, debug"),
                90) == "accepted");
}

TEST_CASE(
    "a plain target runs on newer chips but an f target in its family and an a target on its "
    "chip") {
  CHECK(target_verdict("sm_100a", 100) == "accepted");
  CHECK(target_verdict("sm_100a", 103) ==
        "2:9: target sm_100a does not run on a device of compute capability 10.3");
  CHECK(target_verdict("sm_100f", 103) == "accepted");
  CHECK(target_verdict("sm_103f", 100) ==
        "2:9: target sm_103f does not run on a device of compute capability 10.0");
  CHECK(target_verdict("sm_100f", 120) ==
        "2:9: target sm_100f does not run on a device of compute capability 12.0");
  CHECK(target_verdict("sm_101f", 110) == "accepted");
  CHECK(target_verdict("sm_101a", 110) == "accepted");
  CHECK(target_verdict("sm_101f", 103) ==
        "2:9: target sm_101f does not run on a device of compute capability 10.3");
  CHECK(target_verdict("sm_120f", 121) == "accepted");
  const std::string rubin = ".target sm_107f\n.address_size 64\n.entry k() { ret; }";
  CHECK(verdict(".version 9.4\n" + rubin, 107) == "accepted");
  CHECK(verdict(".version 9.3\n" + rubin, 107) ==
        "2:9: target sm_107f needs .version 9.4 or later");
  CHECK(verdict(".version 9.5\n" + rubin, 103) ==
        "2:9: target sm_107f does not run on a device of compute capability 10.3");
  CHECK(target_verdict("sm_90a", 100) ==
        "2:9: target sm_90a does not run on a device of compute capability 10.0");
  CHECK(target_verdict("sm_90a, texmode_independent", 90) == "accepted");
  CHECK(target_verdict("sm_80", 100) == "accepted");
  CHECK(target_verdict("sm_100", 90) ==
        "2:9: target sm_100 does not run on a device of compute capability 9.0");
  CHECK(target_verdict("gfx90a", 90) == "2:9: unknown target 'gfx90a'");
  CHECK(verdict(".version 8.6\n.target sm_100f\n.address_size 64\n") ==
        "2:9: target sm_100f needs .version 8.8 or later");
  CHECK(verdict(".version 7.8\n.target sm_90a\n.address_size 64\n", 90) ==
        "2:9: target sm_90a needs .version 8.0 or later");
  for (const char* none : {"7.9", "8.9", "9.6", "8.70", "08.7", "8.7e0"})
    CHECK(verdict(".version " + std::string(none) + "\n.target sm_90a\n", 90) ==
          "1:10: PTX ISA version " + std::string(none) +
              " is not supported, 6.0 to 6.5, 7.0 to 7.8, 8.0 to 8.8 and 9.0 to 9.5 are");
  CHECK(target_verdict("sm_99", 100) == "2:9: unknown target 'sm_99'");
  CHECK(target_verdict("sm_90f", 90) == "2:9: unknown target 'sm_90f'");
  CHECK(verdict(".version 3.0\n").find("1:10: PTX ISA version 3.0 is not supported") == 0);
  CHECK(verdict("hello") == "1:1: '.version' expected, found 'hello'");
}

TEST_CASE("a negated address and a scale-d of -1 and no register at all are refused as by ptxas") {
  CHECK(verdict(module_text(".reg .b32 %v; mov.b32 %v, %v.x;", "sm_90a"), 90).find("has no '.x'") !=
        std::string::npos);
  CHECK(verdict(module_text("mov.b32 r1, ![r2];", "sm_90a"), 90).find("a predicate expected") !=
        std::string::npos);
  const std::string wgmma =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f1, f2, f3, f4}, d1, d2, ";
  CHECK(verdict(module_text(wgmma + "-1, 1, 1, 0, 0;", "sm_90a"), 90).find("scale-d is 0 or 1") !=
        std::string::npos);
  CHECK(verdict(module_text("mov.pred p1, -1;", "sm_90a"), 90) == "accepted");
  CHECK(verdict(module_text(wgmma + "1, 1, 1, 0, 0;", "sm_90a"), 90) == "accepted");
  CHECK(
      verdict(".version 9.0\n.target sm_90a\n.address_size 64\n.entry k()\n.maxnreg 0\n{ ret; }\n",
              90)
          .find("at least one expected") != std::string::npos);
}

TEST_CASE("an instruction needs a target that has it") {
  const std::string wait = "tcgen05.wait::ld.sync.aligned;";
  CHECK(verdict(module_text(wait, "sm_100f"), 100) == "accepted");
  CHECK(verdict(module_text(wait, "sm_100"), 100) ==
        "6:1: 'tcgen05.wait::ld.sync.aligned' needs target sm_100a or sm_100f, the module's is "
        "sm_100");
  CHECK(verdict(module_text(wait, "sm_90a"), 90).find("the module's is sm_90a") !=
        std::string::npos);
  CHECK(verdict(module_text("setmaxnreg.inc.sync.aligned.u32 64;", "sm_90"), 90) != "accepted");
  CHECK(verdict(module_text("setmaxnreg.inc.sync.aligned.u32 64;", "sm_90a"), 90) == "accepted");
  const std::string mma = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale";
  const std::string operands = " [r1], d1, d2, r2, [r3], [r4], p1;";
  CHECK(verdict(module_text(mma + ".block16" + operands, "sm_100f")) == "accepted");
  CHECK(verdict(module_text(mma + ".scale_vec::4X" + operands, "sm_100f"))
            .find("needs target sm_100a") != std::string::npos);
}

TEST_CASE("an instruction needs a .version that has it") {
  const auto verdict_at = [](const std::string& version, const std::string& instruction) {
    std::string text = module_text(instruction, "sm_90a");
    return verdict(text.replace(text.find("9.0"), 3, version), 90);
  };
  const std::string mma = "mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32";
  const std::string operands = " {f0, f1, f2, f3}, {r0, r1}, {r2}, {f0, f1, f2, f3};";
  CHECK(verdict_at("8.4", mma + operands) ==
        "6:1: '" + mma + operands.substr(0, operands.size() - 1) +
            "' needs .version 8.7 or later, the module's is 8.4");
  CHECK(verdict_at("8.7", mma + operands) == "accepted");
  const std::string halves =
      "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16 "
      "{r0, r1}, {r2, r3, r4, r5}, {r6, r7}, {r0, r1};";
  CHECK(verdict_at("8.6", halves).find("needs .version 8.7 or later") != std::string::npos);
  CHECK(verdict_at("8.7", halves) == "accepted");
}

TEST_CASE("the two cta_groups do not mix in one function") {
  Function f;
  f.code.resize(2);
  f.code[0].opcode = "tcgen05.alloc";
  f.code[0].mods.set(size_t(emu::ptx::Mod::cta_group_2));
  f.code[0].pos = {7, 3};
  f.code[1].opcode = "cp.async.bulk.tensor";  // may use the other one
  f.code[1].mods.set(size_t(emu::ptx::Mod::cta_group_1));
  CHECK_NOTHROW(emu::ptx::check_cta_group(f));
  f.code[1].opcode = "tcgen05.commit";
  CHECK_THROWS_AS(emu::ptx::check_cta_group(f), emu::PtxError);
}

TEST_CASE(
    "entries are found with and without .visible and functions and prototypes are not entries") {
  const auto m =
      load(with_header(".extern .func (.param .b32 r) f (.param .b64 a, .param .b32 b);\n"
                       ".visible .entry a() { ret; }\n.entry b() { ret; }\n"
                       ".weak .entry c { ret; }\n.func g(.param .b32 x) { ret; }\n"));
  CHECK(m->entry("a"));
  CHECK(m->entry("b"));
  CHECK(m->entry("c"));
  CHECK(!m->entry("g"));
  CHECK(!m->entry("f"));
  CHECK(m->functions.size() == 4);
  CHECK(m->version == 90);
  CHECK(m->target == "sm_100a");
  CHECK(verdict(with_header(".entry a() { ret; }\n.entry a() { ret; }")) ==
        "5:8: entry 'a' is defined twice");
}

TEST_CASE("parameters lie at their alignment") {
  const auto m = load(
      with_header(".entry k(.param .u32 a, .param .u64 .ptr .global .align 16 b, .param .u8 c,\n"
                  " .param .align 128 .b8 map[128], .param .f32 d) { ret; }"));
  const Function& f = *m->functions[0];
  REQUIRE(f.params.size() == 5);
  const uint32_t offsets[] = {0, 8, 16, 128, 256};
  for (size_t i = 0; i < 5; ++i) CHECK(f.params[i].offset == offsets[i]);
  CHECK(f.params[3].bytes == 128);
  CHECK(f.params[3].align == 128);
  CHECK(f.param_bytes == 260);
}

TEST_CASE("numbers of performance directives have 32 bits") {
  for (const char* bad :
       {".reqntid 4294967296", ".reqnctapercluster 4294967296, 1, 1", ".maxnreg 4294967296"})
    CHECK(verdict(with_header(".entry k() " + std::string(bad) + " { ret; }"))
              .find("a number below 2^32 expected") != std::string::npos);
}

TEST_CASE("a launch grid counts clusters where block and cluster are given") {
  const auto entry = [](const std::string& directives) {
    return ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() " + directives + " { ret; }";
  };
  const auto m = load(entry(".blocksareclusters .reqntid 32 .reqnctapercluster 2"));
  CHECK(m->functions[0]->counts_clusters);
  for (const char* less : {".reqntid 32", ".reqnctapercluster 2", ".reqntid 32 .explicitcluster"})
    CHECK_THROWS_AS(load(entry(std::string(less) + " .blocksareclusters")), emu::PtxError);
  const std::string old = entry(".reqntid 32 .reqnctapercluster 2 .blocksareclusters");
  CHECK_THROWS_AS(load(std::string(old).replace(old.find("9.0"), 3, "8.8")), emu::PtxError);
}

TEST_CASE("launch bounds are kept but hints are skipped") {
  const auto m =
      load(with_header(".entry k()\n.maxntid 128, 2\n.minnctapersm 1\n.maxnreg 64\n"
                       ".reqnctapercluster 2\n.explicitcluster\n.pragma \"nounroll\";\n{ ret; }\n"
                       ".entry l() .reqntid 32, 4, 2 { ret; }"));
  const Function& k = *m->functions[0];
  CHECK(k.maxntid[0] == 128);
  CHECK(k.maxntid[1] == 2);
  CHECK(k.maxntid[2] == 1);
  CHECK(k.reqntid[0] == 0);
  CHECK(k.reqnctapercluster[0] == 2);
  CHECK(k.reqnctapercluster[2] == 1);
  CHECK(k.explicit_cluster);
  CHECK(m->functions[1]->reqntid[2] == 2);
}

TEST_CASE("debug information is skipped even between instructions") {
  CHECK(verdict(with_header(
            ".file 1 \"a.cu\"\n.entry k() {\n.loc 1 3 5\n"
            ".loc 1 4 5, function_name $L__info_string0+3, inlined_at 1 3 1\nret;\n}\n"
            ".section .debug_str\n{\n$L__info_string0:\n.b8 95,90\n}\n")) == "accepted");
}

TEST_CASE("the place of inlined code is told with its nearest caller and the last") {
  const auto m = load(
      with_header(".entry k() {\n.reg .b32 r;\n.loc 1 64 5\nmov.u32 r, 0;\n"
                  ".loc 2 29 3, function_name $L__info_string0, inlined_at 1 64 5\nmov.u32 r, 1;\n"
                  ".loc 2 9 1, function_name $L__info_string1+4, inlined_at 2 29 3\nmov.u32 r, 2;\n"
                  ".loc 2 5 1, function_name $L__info_string2, inlined_at 2 9 1\nmov.u32 r, 3;\n"
                  ".loc 2 5 1, function_name $L__info_string2, inlined_at 1 70 1\nmov.u32 r, 4;\n"
                  ".loc 3 5 1, function_name $L__info_string2, inlined_at 3 5 1\nmov.u32 r, 5;\n}\n"
                  ".file 1 \"/home/me/main.cu\"\n.file 2 \"ring.cuh\"\n"));
  const emu::ptx::Function& k = *m->functions[0];
  const auto place = [&](size_t pc) { return m->cuda_line(k, k.code[pc]); };
  CHECK(place(0) == "main.cu:64");
  CHECK(place(1) == "ring.cuh:29, from main.cu:64");
  CHECK(place(2) == "ring.cuh:9, from ring.cuh:29, from main.cu:64");
  CHECK(place(3) == "ring.cuh:5, from ring.cuh:9 .., from main.cu:64");
  CHECK(place(4) == "ring.cuh:5, from main.cu:70");  // whose place no earlier .loc has
  CHECK(place(5).empty());                           // nor a .file
}

TEST_CASE("module variables keep their initial values even if shorter than the variable") {
  const auto m =
      load(with_header(".visible .global .align 4 .b8 bytes[6] = {1, 2, 255};\n"
                       ".const .u32 c = 0x12345678;\n.global .f32 f = 0f3F800000;\n"
                       ".global .align 8 .u64 table[2][2] = {{1}, {2, -1}};\n.global .s16 z;\n"));
  REQUIRE(m->variables.size() == 5);
  CHECK(m->variables[0].bytes == 6);
  CHECK(m->variables[0].init == std::vector<uint8_t>{1, 2, 255});
  CHECK(m->variables[1].space == Space::constant);
  CHECK(m->variables[1].init == std::vector<uint8_t>{0x78, 0x56, 0x34, 0x12});
  CHECK(m->variables[2].init == std::vector<uint8_t>{0, 0, 0x80, 0x3f});
  CHECK(m->variables[3].bytes == 32);
  CHECK(m->variables[3].align == 8);
  CHECK(m->variables[4].align == 2);
  CHECK(m->variables[4].init.empty());
  CHECK(verdict(with_header(".global .b8 x[1] = {1, 2};")).find("more initial values") !=
        std::string::npos);
}

// As ptxas 13.0 has it, which "ignores the qualifier" of a variable that has no definition.
TEST_CASE("an .extern variable is the module's own with the values of its definition") {
  const std::string use = ".entry k() { .reg .b64 d; mov.u64 d, x; ret; }\n";
  const std::string declared = ".extern .global .align 4 .u32 x;\n";
  const std::string defined = ".visible .global .align 4 .u32 x = 7;\n";
  for (const std::string& text :
       {declared + use, declared + declared + use, declared + use + defined,
        defined + declared + use, declared + defined + declared + use}) {
    CAPTURE(text);
    const auto m = load(with_header(text));
    REQUIRE(m->variables.size() == 1);
    CHECK(m->variables[0].bytes == 4);
    CHECK(m->variables[0].init.empty() == (text.find("= 7") == std::string::npos));
    CHECK(m->functions[0]->code[0].ops[1].variable == 0);
  }
  const auto refused = [](const std::string& text, const char* why) {
    CAPTURE(text);
    CHECK(verdict(with_header(text)).find(why) != std::string::npos);
  };
  refused(declared + ".global .align 8 .u64 x = 7;\n", "'x' is declared otherwise above");
  refused(declared + ".const .align 4 .u32 x = 7;\n", "'x' is declared otherwise above");
  refused(declared + defined + defined, "'x' is declared twice in one scope");
  refused(".extern .global .align 4 .b8 x[];\n", "modules are not linked");
}

TEST_CASE("an address of a module variable names the variable") {
  const auto m = load(
      with_header(".global .u32 a;\n.const .u32 b[4];\n.entry k() { .reg .b64 d; .reg .b32 r;\n"
                  "mov.u64 d, b+8; ld.const.u32 r, [b+4]; ret; }"));
  const auto& c = m->functions[0]->code;
  CHECK(c[0].ops[1].space == Space::constant);
  CHECK(c[0].ops[1].variable == 1);
  CHECK(c[0].ops[1].imm == 8);
  CHECK(c[1].ops[1].variable == 1);
  CHECK(c[1].ops[1].imm == 4);
}

TEST_CASE("shared variables lie in declaration order from 0x400 and dynamic memory after them") {
  const auto m = load(with_header(
      ".shared .align 4 .b8 unused[64];\n.shared .align 4 .b8 used[100];\n"
      ".extern .shared .align 1024 .b8 dyn[];\n"
      ".entry k() { .reg .b32 r; .shared .align 16 .b8 a[20]; { .shared .u32 b; mov.u32 r, b; }\n"
      "mov.u32 r, a; mov.u32 r, used; mov.u32 r, dyn; .shared .u32 later; ret; }\n"
      ".entry l() { .shared .u32 own; ret; }"));
  const Function& k = *m->functions[0];
  CHECK(k.code[2].ops[1].imm == 0x400);         // used
  CHECK(k.code[1].ops[1].imm == 0x400 + 112);   // a
  CHECK(k.code[0].ops[1].imm == 0x400 + 132);   // b
  CHECK(k.static_shared_bytes == 140);          // later
  CHECK(k.code[3].ops[1].imm == 0x400 + 1024);  // dyn
  CHECK(k.dynamic_shared_align == 1024);
  CHECK(m->functions[1]->static_shared_bytes == 4);
  CHECK(m->functions[1]->dynamic_shared_align == 16);
}

TEST_CASE(
    "register declarations: ranges and lists and no blank after .reg and inner scopes that hide") {
  const auto c = code(
      ".reg.b32 %r<3>; .reg .b32 a, b;\nmov.b32 a, %r2;\n"
      "{ .reg .b64 a; .reg .b32 __$temp1; mov.b64 a, 1; { .reg .b16 a; mov.b16 a, 1; } "
      "mov.b64 a, 2; mov.b32 __$temp1, %r0; }\nmov.b32 a, b;");
  CHECK(c[0].ops[0].reg == c[5].ops[0].reg);
  CHECK(c[1].ops[0].reg == c[3].ops[0].reg);
  CHECK(c[0].ops[0].reg != c[1].ops[0].reg);
  CHECK(c[1].ops[0].reg != c[2].ops[0].reg);
  CHECK(body_verdict("{ .reg .b32 t; }\nmov.b32 t, 0;") ==
        "2:9: unknown name 't' in 'mov.b32 t, 0'");
  CHECK(body_verdict(".reg .b32 a; .reg .b32 a;") == "1:24: 'a' is declared twice in one scope");
  CHECK(body_verdict("mov.b32 t, 0; .reg .b32 t;").find("1:9: unknown name 't'") == 0);
}

TEST_CASE("slots have names for reports") {
  const auto m = load(
      with_header(".entry k() { .reg .b32 %r<3>; .reg .b128 wide; .reg .pred p; .reg .b64 d;"
                  "mov.b32 %r1, 1; @p add.u32 %r0, %r0, %r1; @p mov.b128 wide, {d, d}; ret; }"));
  CHECK(m->functions[0]->register_slots == 6);
  CHECK(m->functions[0]->register_names ==
        std::vector<std::string>{"%r0", "wide", "wide", "p", "d", "", "%r1"});
}

TEST_CASE("a branch takes the label of its innermost scope however often the name occurs") {
  const auto c = code(
      "LAB_WAIT: mov.b32 r0, 0;\n"
      "{ LAB_WAIT: mov.b32 r1, 1; @p1 bra LAB_WAIT; bra.uni DONE; DONE: }\n"
      "{ mov.b32 r2, 2;\n bra LAB_WAIT; LAB_WAIT: }\n"
      "{ bra LAB_WAIT; }\n");
  CHECK(c[2].target == 1);
  CHECK(c[3].target == 4);
  CHECK(c[5].target == 6);
  CHECK(c[6].target == 0);
  CHECK(c[2].guard != emu::ptx::no_register);
  CHECK(body_verdict("{ L: }\nbra L;") == "2:5: label 'L' is not in scope");
  CHECK(body_verdict("L: L: ret;") == "1:4: label 'L' stands twice in one scope");
}

TEST_CASE("a body may be empty and hold blank statements and end without ret") {
  CHECK(code("").size() == 1);
  CHECK(std::string(code("{ }")[0].opcode) == "ret");
  CHECK(verdict(with_header(".entry k() { ret;")) == "4:18: '}' expected, the text ends");
}

TEST_CASE("a long module loads fast") {
  std::string body = ".reg .b32 %r<4000>;\n";
  for (int i = 0; i < 20000; ++i)
    body +=
        "add.s32 %r" + std::to_string(i % 4000) + ", %r" + std::to_string(i * 7 % 4000) + ", 1;\n";
  const auto start = std::chrono::steady_clock::now();
  CHECK(code(body).size() == 20001);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() <
        2.0);  // 0.03 s when this was written; far more only if something is quadratic
}
