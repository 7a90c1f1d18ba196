// SPDX-License-Identifier: MIT
// Calls that cannot be expanded: recursion, function pointers, virtual functions, memory of the
// stack.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using emu::FaultKind;

namespace {

// Its own n is needed after the call, and so is the array that it hands down.
const char* const recursive = R"(
.func (.param .b32 sum) add_up(.param .b32 n, .param .b64 callers)
{
  .local .align 8 .b8 own[8];
  .reg .b32 r<4>; .reg .b64 d<3>; .reg .pred p;
  ld.param.u32 r0, [n]; ld.param.u64 d0, [callers];
  mov.u64 d1, own; cvta.local.u64 d1, d1;
  st.u32 [d1], r0; st.local.u32 [own+4], 7;
  setp.eq.u32 p, r0, 0;
  @p bra END;
  { .param .b32 less; .param .b64 array; .param .b32 got;
    sub.u32 r1, r0, 1; st.param.b32 [less], r1; st.param.b64 [array], d1;
    call.uni (got), add_up, (less, array);
    ld.param.b32 r2, [got]; }
  ld.u32 r3, [d1]; add.u32 r2, r2, r3;
  ld.u32 r3, [d0]; add.u32 r3, r3, r0; st.u32 [d0], r3;
  st.param.b32 [sum], r2;
  ret;
END:
  st.param.b32 [sum], 0;
}
)";

const char* const pointed_to = R"(
.func (.param .b32 y) twice(.param .b32 x)
{ .reg .b32 r; ld.param.u32 r, [x]; shl.b32 r, r, 1; st.param.b32 [y], r; ret; }
.func (.param .b32 y) square(.param .b32 x)
{ .reg .b32 r; ld.param.u32 r, [x]; mul.lo.u32 r, r, r; st.param.b32 [y], r; ret; }
.func (.param .b32 y) both(.param .b32 x)
{ .reg .b32 r; .reg .b64 d;
  { .param .b32 a; .param .b32 b; ld.param.u32 r, [x]; st.param.b32 [a], r;
    ld.global.u64 d, [table];
    inner : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), d, (a), inner; ld.param.b32 r, [b]; }
  add.u32 r, r, 100; st.param.b32 [y], r; ret; }
.func wide(.param .b64 x) { ret; }
.global .align 8 .u64 table[4] = {twice, square, both, wide};
)";
const std::string forward =
    ".func (.param .b32 y) twice(.param .b32 x);\n.func (.param .b32 y) square(.param .b32 x);\n"
    ".func (.param .b32 y) both(.param .b32 x);\n.func wide(.param .b64 x);\n"
    ".global .align 8 .u64 table[4] = {twice, square, both, wide};\n";
const std::string functions = [] {
  std::string text = pointed_to;
  return forward + text.substr(0, text.find(".global .align"));
}();

// out[lane] = table[%r0](lane)
const std::string call_table = R"(
  mov.u32 %r1, %laneid; mul.wide.u32 %rd0, %r0, 8; mov.u64 %rd1, table; add.u64 %rd1, %rd1, %rd0;
  ld.global.u64 %rd2, [%rd1];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1;
    proto : .callprototype (.param .b32 _) _ (.param .b32 _);
    call (b), %rd2, (a), proto;
    ld.param.b32 %r2, [b]; }
  mul.wide.u32 %rd0, %r1, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r2;)";

std::string refused(const std::string& body, const std::string& declarations = "") {
  return ptx_test::verdict(exec_test::kernel(body, declarations));
}

}  // namespace

TEST_CASE("lanes recur to depths of their own each with registers and memory of its own") {
  const auto out = exec_test::run(R"(
    .local .align 8 .b8 mine[8];
    mov.u32 %r0, %laneid; mov.u64 %rd1, mine; cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], 1000;
    { .param .b32 a; .param .b64 array; .param .b32 got;
      st.param.b32 [a], %r0; st.param.b64 [array], %rd1;
      call.uni (got), add_up, (a, array); ld.param.b32 %r1, [got]; }
    ld.u32 %r2, [%rd1];
    bar.warp.sync -1; shfl.sync.idx.b32 %r1, %r1, %r0, 31, -1;
    mul.wide.u32 %rd0, %r0, 8; add.s64 %rd0, %rd0, %out; st.global.v2.u32 [%rd0], {%r1, %r2};)",
                                  {{}, {32}, {}}, std::vector<uint32_t>(64), recursive);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    // Each level adds its n to its caller's word; the caller then adds this word to its own sum.
    uint32_t sum = 0;
    for (uint32_t n = 1; n <= lane; ++n) sum += n + (n - 1);
    CHECK(out[2 * lane] == sum);
    CHECK(out[2 * lane + 1] == 1000 + lane);
  }
}

TEST_CASE("two functions that call each other end where both do") {
  const auto out = exec_test::run(R"(
    mov.u32 %r0, %laneid;
    { .param .b32 a; .param .b32 got; st.param.b32 [a], %r0;
      call (got), is_even, (a); ld.param.b32 %r1, [got]; }
    mul.wide.u32 %rd0, %r0, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r1;)",
                                  {{}, {32}, {}}, std::vector<uint32_t>(32), R"(
    .func (.param .b32 y) is_odd(.param .b32 x);
    .func (.param .b32 y) is_even(.param .b32 x)
    { .reg .b32 r; .reg .pred p; ld.param.u32 r, [x]; setp.eq.u32 p, r, 0; st.param.b32 [y], 1;
      @p ret;
      { .param .b32 a; .param .b32 b; sub.u32 r, r, 1; st.param.b32 [a], r;
        call (b), is_odd, (a); ld.param.b32 r, [b]; st.param.b32 [y], r; } }
    .func (.param .b32 y) is_odd(.param .b32 x)
    { .reg .b32 r; .reg .pred p; ld.param.u32 r, [x]; setp.eq.u32 p, r, 0; st.param.b32 [y], 0;
      @p ret;
      { .param .b32 a; .param .b32 b; sub.u32 r, r, 1; st.param.b32 [a], r;
        call (b), is_even, (a); ld.param.b32 r, [b]; st.param.b32 [y], r; } })");
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane % 2 == 0));
}

TEST_CASE("lanes call what their pointers name and meet after the call") {
  const auto out =
      exec_test::run("mov.u32 %r0, %laneid; rem.u32 %r0, %r0, 3;" + call_table +
                         "bar.warp.sync -1; shfl.sync.idx.b32 %r2, %r2, 0, 31, -1;"
                         "vote.sync.ballot.b32 %r2, 1, -1; st.global.u32 [%out+128], %r2;",
                     {{}, {32}, {}}, std::vector<uint32_t>(33), functions);
  for (uint32_t lane = 0; lane < 32; ++lane)
    CHECK(out[lane] == (lane % 3 == 0 ? 2 * lane : lane % 3 == 1 ? lane * lane : 2 * lane + 100));
  CHECK(out[32] == ~0u);
}

TEST_CASE("lanes that a guard keeps from an indirect call need no pointer") {
  const auto out = exec_test::run(R"(
    mov.u32 %r1, %laneid; setp.lt.u32 %p0, %r1, 9; mov.u32 %r2, 5;
    @%p0 mov.u64 %rd2, square;
    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; st.param.b32 [b], 3;
      proto : .callprototype (.param .b32 _) _ (.param .b32 _);
      @%p0 call (b), %rd2, (a), proto;
      ld.param.b32 %r2, [b]; }
    mul.wide.u32 %rd0, %r1, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r2;)",
                                  {{}, {32}, {}}, std::vector<uint32_t>(32), functions);
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == (lane < 9 ? lane * lane : 3));
}

TEST_CASE("a call of what is no function or has other parameters is a fault") {
  FaultKind kind{};
  const std::string other = "mov.u32 %r0, 3;" + call_table;
  CHECK(contains(exec_test::fault(other, {{}, {32}, {}}, &kind, functions),
                 "a call of wide, whose parameters are not those of the prototype"));
  CHECK(kind == FaultKind::illegal_instruction);
  std::string data = "mov.u32 %r0, 0;" + call_table;
  data.replace(data.find("ld.global.u64 %rd2, [%rd1];"), 27, "mov.u64 %rd2, table;       ");
  CHECK(
      contains(exec_test::fault(data, {{}, {32}, {}}, &kind, functions), "no function's address"));
  CHECK(kind == FaultKind::illegal_address);
  exec_test::fault("mov.u64 %rd0, twice; ld.u32 %r0, [%rd0]; st.global.u32 [%out], %r0;", {}, &kind,
                   functions);
  CHECK(kind == FaultKind::illegal_address);
}

TEST_CASE("recursion without an end overflows the stack; a register begins without a value") {
  FaultKind kind{};
  const std::string endless = ".func f() { .local .b8 big[1024]; call f; ret; }";
  CHECK(contains(exec_test::fault("call f;", {}, &kind, endless), "stack overflow"));
  CHECK(kind == FaultKind::illegal_address);
  // The second activation must not see what the first has left in r.
  const std::string stale = R"(.func f(.param .b32 n) { .reg .b32 r, a; .reg .pred p;
    ld.param.u32 a, [n]; setp.eq.u32 p, a, 0; @p bra USE; mov.u32 r, 1;
    { .param .b32 z; st.param.b32 [z], 0; call f, (z); }
    ret;
    USE: red.global.add.u32 [word], r; ret; })";
  const std::string call = "{ .param .b32 one; st.param.b32 [one], 1; call f, (one); }";
  CHECK(contains(exec_test::fault(call, {}, &kind, ".global .u32 word;\n" + stale), "register r"));
  CHECK(kind == FaultKind::uninitialised);
}

TEST_CASE("alloca gives memory that lasts until stackrestore or the end of the function") {
  const auto out = exec_test::run(R"(
    mov.u32 %r0, %laneid; add.u32 %r1, %r0, 1; cvt.u64.u32 %rd1, %r1; shl.b64 %rd1, %rd1, 2;
    stacksave.u64 %rd5;
    alloca.u64 %rd2, %rd1, 16; alloca.u64 %rd3, 64, 32;
    and.b64 %rd4, %rd2, 15; cvt.u32.u64 %r4, %rd4; and.b64 %rd4, %rd3, 31; cvt.u32.u64 %r5, %rd4;
    add.u32 %r4, %r4, %r5;
    cvta.local.u64 %rd2, %rd2; st.u32 [%rd2], %r0; st.local.u32 [%rd3], 5;
    ld.u32 %r2, [%rd2]; add.u32 %r2, %r2, %r4;
    stackrestore.u64 %rd5; stacksave.u64 %rd6; sub.u64 %rd6, %rd6, %rd5; cvt.u32.u64 %r3, %rd6;
    add.u32 %r2, %r2, %r3;
    mul.wide.u32 %rd0, %r0, 4; add.s64 %rd0, %rd0, %out; st.global.u32 [%rd0], %r2;)",
                                  {{}, {32}, {}}, std::vector<uint32_t>(32));
  for (uint32_t lane = 0; lane < 32; ++lane) CHECK(out[lane] == lane);
  FaultKind kind{};
  exec_test::fault("alloca.u64 %rd0, 8; ld.local.u32 %r0, [%rd0]; st.global.u32 [%out], %r0;", {},
                   &kind);
  CHECK(kind == FaultKind::uninitialised);
  exec_test::fault(
      "stacksave.u64 %rd1; alloca.u64 %rd0, 8; st.local.u64 [%rd0], 1; stackrestore.u64 %rd1;"
      "alloca.u64 %rd0, 8; ld.local.u32 %r0, [%rd0]; st.global.u32 [%out], %r0;",
      {}, &kind);
  CHECK(kind == FaultKind::uninitialised);
  CHECK(contains(exec_test::fault("mov.u64 %rd0, 1048576; stackrestore.u64 %rd0;", {}, &kind),
                 "which no stacksave"));
  CHECK(contains(exec_test::fault("alloca.u64 %rd0, 1048576;", {}, &kind), "stack overflow"));
  CHECK(contains(refused("alloca.u64 %rd0, %rd1, 3;"), "an alignment is a power of two"));
}

TEST_CASE("a store to a .const variable through a generic or a global address is a fault") {
  const std::string constant = ".const .align 8 .u32 c[4] = {1, 2, 3, 4};";
  FaultKind kind{};
  for (const char* store : {"st.u32", "st.global.u32", "st.relaxed.gpu.u32"}) {
    CHECK(contains(exec_test::fault(std::string("mov.u64 %rd0, c; cvta.const.u64 %rd0, %rd0; ") +
                                        store + " [%rd0+4], 7;",
                                    {}, &kind, constant),
                   "writes to the .const variable c"));
    CHECK(kind == FaultKind::illegal_address);
  }
  exec_test::fault("mov.u64 %rd0, c; cvta.const.u64 %rd0, %rd0; red.global.add.u32 [%rd0], 1;", {},
                   &kind, constant);
  CHECK(kind == FaultKind::illegal_address);
  const auto out = exec_test::run(
      "mov.u64 %rd0, c; cvta.const.u64 %rd0, %rd0; ld.u32 %r0, [%rd0+8]; st.global.u32 [%out], "
      "%r0;",
      {}, std::vector<uint32_t>(1), constant);
  CHECK(out[0] == 3);
}

TEST_CASE("initial values may be addresses of variables and functions") {
  const auto out = exec_test::run(R"(
    ld.global.u64 %rd0, [list]; ld.u32 %r0, [%rd0]; ld.global.u64 %rd0, [list+8];
    ld.u32 %r1, [%rd0]; ld.global.u64 %rd0, [list+16]; mov.u64 %rd1, k; sub.u64 %rd0, %rd0, %rd1;
    cvt.u32.u64 %r2, %rd0; st.global.v2.u32 [%out], {%r0, %r1}; st.global.u32 [%out+8], %r2;)",
                                  {}, std::vector<uint32_t>(3), R"(
    .visible .entry k(.param .u64 k_out);
    .global .align 8 .u32 a[3] = {10, 11, 12}; .const .u32 c = 20;
    .global .align 8 .u64 list[3] = {a+4*2, generic(c), k};)");
  CHECK(out[0] == 12);
  CHECK(out[1] == 20);
  CHECK(out[2] == 0);
  CHECK(contains(refused("", ".global .u64 x = y;"), "unknown name 'y'"));
  CHECK(contains(refused("", ".shared .u32 s; .global .u64 x = s;"), "in each CTA"));
  CHECK(contains(refused("", ".global .u32 a; .global .u32 x = a;"), "needs 64 bits"));
  CHECK(contains(refused("", functions + ".global .u64 x = twice+4;"), "stands alone"));
}

TEST_CASE("what ptxas refuses of function pointers is refused") {
  const auto call = [](const std::string& statement) {
    return refused(
        "{ .param .b32 a; .param .b64 w; .param .b32 b; st.param.b32 [a], 1;"
        "mov.u64 %rd0, twice; proto : .callprototype (.param .b32 _) _ (.param .b32 _);" +
            statement + "}",
        functions);
  };
  CHECK(call("call (b), %rd0, (a), proto;") == "accepted");
  CHECK(contains(call("call (b), %rd0, (a);"), "names no .callprototype above it"));
  CHECK(contains(call("call (b), %rd0, (a), later; later : .callprototype _ ();"), "names no"));
  CHECK(contains(call("call (b), %rd0, (w), proto;"), "differ in size or alignment"));
  CHECK(contains(call("call (b), twice, (a), proto;"), "is called by its own name"));
  CHECK(contains(call("call (b), %r0, (a), proto;"), "no register of 64 bits"));
  CHECK(contains(call("mov.u64 %rd0, twice+4;"), "the address of 'twice'"));
  CHECK(contains(call("mov.u64 %rd0, k2;"), "unknown name 'k2'"));
  CHECK(contains(call("ld.u32 %r0, [twice];"), "is a function, which is no memory"));
  CHECK(contains(call("mov.u64 twice, 1;"), "is a function"));
}
