// SPDX-License-Identifier: MIT
// A kernel's body that is read when it is asked for is the one that would have been read at once,
// and what is wrong in it is refused at load, in the same words.
#include "tools/emulator/op/load.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace emu;
using emu::ptx::Reading;

std::string module_of(const std::string& bodies) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n"
         ".extern .shared .align 128 .b8 dynamic[];\n.shared .align 8 .b8 fixed[24];\n"
         ".func (.param .b32 result) helper(.param .b32 a) {\n ret;\n}\n" +
         bodies;
}

std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + "(.param .u64 out, .param .b32 n)\n{\n" + body + "}\n";
}

std::string verdict(const std::string& text, Reading reading) {
  try {
    ops::load(text, 100, reading);
    return "accepted";
  } catch (const PtxError& e) {
    return std::to_string(e.pos.line) + ":" + std::to_string(e.pos.column) + ": " + e.text;
  }
}

// All that the machine reads of an operand.
std::string told(const ptx::Operand& op) {
  std::string out = std::to_string(int(op.kind)) + (op.negated ? "!" : "") +
                    (op.base_is_symbol ? "s" : "") + " " + std::to_string(int(op.space)) + " " +
                    std::to_string(int(op.special)) + " " + std::to_string(op.reg) + " " +
                    std::to_string(op.imm) + " " + std::to_string(op.variable) + " " +
                    std::to_string(int(op.declared)) + "(";
  for (const ptx::Operand& e : op.elements) out += told(e);
  return out + ")";
}

std::string told(const ptx::Function& f) {
  std::string out = f.name + " " + std::to_string(f.register_slots) + " " +
                    std::to_string(f.static_shared_bytes) + " " +
                    std::to_string(f.dynamic_shared_align) + " " + std::to_string(f.local_bytes);
  for (const std::string& name : f.register_names) out += " " + name;
  for (const ptx::SharedVariable& v : f.shared) out += " " + v.name + std::to_string(v.address);
  for (const ptx::Instr& in : f.code) {
    out += "\n" + std::to_string(in.pos.line) + ":" + std::to_string(in.pos.column) + " " +
           in.opcode + " " + in.mods.to_string() + " " + std::to_string(in.guard) +
           (in.guard_negated ? "!" : "") + " " + std::to_string(in.target) + " " +
           std::to_string(in.reconverge) + " " + std::to_string(in.cuda.line) + " " +
           std::to_string(in.cuda.from);
    for (int i = 0; i < in.type_count; ++i) out += " " + std::to_string(int(in.types[i]));
    for (const ptx::Operand& op : in.ops) out += " " + told(op);
  }
  return out;
}

const char* const loop = R"(  .reg .pred %p<3>;
  .reg .b32 %r<12>, count;
  .reg .b64 %rd<3>;
  .reg .f32 %f<4>;
  .shared .align 16 .b8 own[40];
  .local .align 8 .b8 depot[24];
  .loc 1 23 4
  ld.param.u64 %rd1, [out];   // a comment; with a semicolon
  ld.param.u32 count, [n+0];
  mov.u32 %r1, %tid.x; mov.u32 %r2, own;
  mov.b32 %r3, {%rs, %rs};
$again:
  .pragma "nounroll";
  setp.eq.s32 %p1, %r1, 0;
  @!%p1 bra $out;
  {
    .reg .pred p; .reg .b32 %r1x;
    setp.lt.and.u32 p|%p2, count, WARP_SZ, !%p1;
    @p bra inner;
    ld.shared.v2.f32 {%f1, _}, [%r2+8];
    bra.uni $again;
inner:
    st.shared.b32 [fixed+4], %r11;
    mov.u32 %r1x, dynamic; /* a comment
    of two lines */ st.local.b32 [depot], %r1x;
  }
$out:
  add.f32 %f3, %f1, 0f3F800000;
  st.global.f32 [%rd1+-4], %f3;
)";

std::string right_loop() {
  std::string body = loop;
  body.replace(body.find("  mov.b32 %r3, {%rs, %rs};\n"), 27, "");
  return body;
}

// The body of a kernel that is right, with `what` before its first label.
std::string with(const std::string& what) {
  std::string body = right_loop();
  return body.insert(body.find("$again:"), what);
}

}  // namespace

TEST_CASE("A kernel's body is read when it is asked for and then it is what it would have been") {
  const std::string text =
      module_of(kernel("first", right_loop()) + ".shared .align 8 .b8 later[8];\n" +
                kernel("second", with("  mov.u32 %r9, later;\n")));
  const auto now = ops::load(text, 100);
  const auto later = ops::load(text, 100, Reading::when_asked);
  REQUIRE(now->functions.size() == later->functions.size());
  for (size_t i = 0; i < now->functions.size(); ++i) {
    const ptx::Function& f = *later->functions[i];
    CAPTURE(f.name);
    CHECK(f.code.empty() == f.is_entry);
  }
  CHECK(told(later->whole(*later->entry("second"))) == told(*now->entry("second")));
  CHECK(later->entry("first")->code.empty());
  CHECK(told(later->whole(*later->entry("first"))) == told(*now->entry("first")));
  CHECK(told(later->whole(*later->entry("first"))) == told(*now->entry("first")));
}

TEST_CASE("Elements of arrays and places of inlined code need no second look") {
  const std::string lines =
      "  .local .align 4 .b16 halves[6];\n  mov.u64 %rd1, halves[5]; mov.u32 %r2, own[3];\n"
      "  .loc 1 7 3, function_name $L__info_string0, inlined_at 1 23 4\n"
      "  .loc\t1 8 3, function_name $L__info_string0+2, inlined_at 1 7 3\n  mov.u32 %r3, 1;\n";
  const std::string text = module_of(kernel("first", right_loop()) + kernel("second", with(lines)));
  const auto later = ops::load(text, 100, Reading::when_asked);
  CHECK(later->entry("second")->code.empty());
  CHECK(told(later->whole(*later->entry("second"))) ==
        told(*ops::load(text, 100)->entry("second")));
}

TEST_CASE("What is wrong in a kernel that nobody asks for is refused when its module is loaded") {
  const std::string wrong[] = {
      "  frobnicate.b32 %r1, %r2;\n",
      "  add.f32 %f1, %f2, %rd1;\n",
      "  add.f32 %f1, %f2, %f2;\n  add.f32 %f1, %f2, %rd1;\n",
      "  add.f32 %f1, %f2, %f4;\n",  // there are four, from 0
      "  add.f32 %f1, %f2, %f01;\n",
      "  @%r1 bra $again;\n",
      "  bra nowhere;\n",
      "  bra inner;\n",  // in braces further down
      "  bra %r1;\n",
      "$out: mov.u32 %r1, 1;\n",
      "  .reg .b32 count;\n",
      "  .reg .b32 %r<3>;\n",
      "  .reg .b32 %r5;\n",
      "  .reg .b32 n;\n",
      "  .reg .b32 %rd<3>\n",
      "  { .reg .b32 a; } mov.u32 a, 1;\n",
      "  .reg .b32 _;\n",
      "  .reg .bf16 a;\n",
      "  .local .b8 big[600000];\n",
      "  .shared .b8 big[20000000];\n",
      "  .shared .b8 open[];\n",
      "  tcgen05.wait::ld.sync.aligned; mbarrier.init.shared.b64 [%r1], %f1;\n",
      "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
      "  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n",
      "  bar.sync 16;\n",
      "  mov.u32 %r1, n[0];\n",
      "  .shared .b32 one; .shared .b32 many[4]; mov.u32 %r1, many[2]; mov.u32 %r1, one[2];\n",
      "  ld.shared.f32 %f1, [out];\n",
      "  mov.u32 %r1, #;\n",
      "  mov.u32 %r1, 1",
      "  .loc 1\n",
      "  mov.b128 %r1, %r2;\n",
      "  }\n",
      "  {\n",
      "  /* no end\n",
      "_: mov.u32 %r1, 1;\n",
      "  call helper, (%r1);\n",
  };
  for (const std::string& line : wrong) {
    const std::string text =
        module_of(kernel("first", right_loop()) + kernel("second", with(line)));
    CAPTURE(line);
    const std::string told_now = verdict(text, Reading::now);
    CHECK(told_now != "accepted");
    CHECK(verdict(text, Reading::when_asked) == told_now);
  }
}

TEST_CASE("What only the whole front end understands is read at once and is the same") {
  const std::string lines[] = {
      "  { .reg .v4 .b32 v; mov.u32 v.x, 1; }\n",
      "  { .reg .b128 wide; }\n",
      "  { .reg .b32 %r<2>; mov.u32 %r1, 1; }\n",
      "  { .reg .b32 out; mov.u32 out, 1; }\n",
      "  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), helper, (a); }\n",
      "  mov.u64 %rd1, helper;\n",
  };
  for (const std::string& line : lines) {
    const std::string text =
        module_of(kernel("first", right_loop()) + kernel("second", with(line)));
    CAPTURE(line);
    REQUIRE(verdict(text, Reading::now) == "accepted");
    const auto later = ops::load(text, 100, Reading::when_asked);
    CHECK_FALSE(later->entry("second")->code.empty());
    CHECK(told(*later->entry("second")) == told(*ops::load(text, 100)->entry("second")));
  }
}
