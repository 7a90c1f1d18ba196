// SPDX-License-Identifier: MIT
// The carry CC.CF where it goes from one kind of instruction to another. The manual calls what
// sub.cc writes "borrow-out"; hardware writes the carry of a + ~b + 1, which is its complement.
#include <random>

#include "tools/emulator/test/h200/device.h"

namespace {

using h200::Buffer;
using h200::Module;
__extension__ using uint128 = unsigned __int128;

// Launches `entry(in, out, count)` with 64 threads a CTA and returns the `words` that it wrote.
std::vector<uint64_t> run(const Module& module, const char* entry, const std::vector<uint64_t>& in,
                          size_t words, uint32_t count) {
  const Buffer from(in), to(words * 8);
  CUdeviceptr from_at = from.address(), to_at = to.address();
  void* arguments[] = {&from_at, &to_at, &count};
  module.launch(entry, (count + 63) / 64, 64, 0, arguments);
  CHECK(to.guards_intact());
  return to.download<uint64_t>();
}

// Operands at which carries begin and end, and random ones.
uint64_t operand(std::mt19937_64& random) {
  const uint64_t edges[] = {
      0, 1, 2, ~0ull, ~0ull - 1, 1ull << 63, (1ull << 63) - 1, 0xFFFFFFFF, 1ull << 32};
  const uint64_t r = random();
  return r % 3 ? (random() >> random() % 64) : edges[r / 3 % std::size(edges)];
}

// What writes the carry, and what reads it. `sign` is -1 for a difference.
struct Writer {
  const char* text;
  int sign;
};
const Writer kWriters[] = {
    {"add.cc.u64 x, a, b;", 1}, {"sub.cc.u64 x, a, b;", -1}, {"mad.lo.cc.u64 x, a, one, b;", 1}};
const Writer kReaders[] = {
    {"addc.cc.u64 y, c, d;", 1}, {"subc.cc.u64 y, c, d;", -1}, {"madc.lo.cc.u64 y, c, one, d;", 1}};

struct Sum {
  uint64_t value;
  uint64_t carry;
};
Sum adder(uint64_t a, uint64_t b, int sign, uint64_t carry) {
  const uint128 s = uint128(a) + (sign < 0 ? ~b : b) + carry;
  return {uint64_t(s), uint64_t(s >> 64)};
}

std::string chain(const Writer& w, const Writer& r) {
  std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry k(.param .u64 k_in, .param .u64 k_out, .param .u32 k_count)\n{\n"
      ".reg .pred p;\n.reg .b32 i, n, t;\n.reg .b64 in, out, wide;\n"
      ".reg .b64 a, b, c, d, x, y, z, one;\n"
      "ld.param.u64 in, [k_in];\nld.param.u64 out, [k_out];\nld.param.u32 n, [k_count];\n"
      "mov.u32 i, %ctaid.x;\nmov.u32 t, %tid.x;\nmad.lo.u32 i, i, 64, t;\n"
      "setp.ge.u32 p, i, n;\n@p bra DONE;\n"
      "mad.wide.u32 in, i, 32, in;\nmad.wide.u32 out, i, 24, out;\nmov.u64 one, 1;\n"
      "ld.global.u64 a, [in];\nld.global.u64 b, [in+8];\n"
      "ld.global.u64 c, [in+16];\nld.global.u64 d, [in+24];\n";
  text += std::string(w.text) + "\n" + r.text +
          "\naddc.u64 z, 0, 0;\n"
          "st.global.u64 [out], x;\nst.global.u64 [out+8], y;\nst.global.u64 [out+16], z;\n"
          "DONE: ret;\n}\n";
  return text;
}

}  // namespace

TEST_CASE("each instruction that reads the carry reads that of each which writes it", "[carry]") {
  const h200::Device device;
  std::mt19937_64 random(3);
  constexpr uint32_t kCount = 500;
  std::vector<uint64_t> in(4 * kCount);
  for (uint64_t& word : in) word = operand(random);
  for (const Writer& w : kWriters)
    for (const Writer& r : kReaders) {
      INFO(w.text << " " << r.text);
      const Module module(chain(w, r));
      const std::vector<uint64_t> got = run(module, "k", in, 3 * kCount, kCount);
      size_t wrong = 0;
      for (uint32_t i = 0; i < kCount; ++i) {
        const Sum x = adder(in[4 * i], in[4 * i + 1], w.sign, w.sign < 0);
        const Sum y = adder(in[4 * i + 2], in[4 * i + 3], r.sign, x.carry);
        wrong += got[3 * i] != x.value || got[3 * i + 1] != y.value || got[3 * i + 2] != y.carry;
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("nvcc's division of 128-bit integers is the host's", "[carry]") {
  const h200::Device device;
  const Module module = Module::from_build("emulator/test/carry_probe.ptx");
  std::mt19937_64 random(4);
  constexpr uint32_t kCount = 2000;
  std::vector<uint64_t> in(4 * kCount);
  for (size_t i = 0; i < in.size(); i += 4) {
    for (size_t j = i; j < i + 4; ++j) in[j] = operand(random);
    if (random() % 2) in[i + 3] = 0;  // a divisor of one word
    if ((in[i + 2] | in[i + 3]) == 0) in[i + 2] = 7;
  }
  const std::vector<uint64_t> got = run(module, "carry_probe", in, in.size(), kCount);
  size_t wrong = 0;
  for (size_t i = 0; i < in.size(); i += 4) {
    const uint128 a = uint128(in[i + 1]) << 64 | in[i], b = uint128(in[i + 3]) << 64 | in[i + 2];
    const uint128 q = uint128(got[i + 1]) << 64 | got[i],
                  r = uint128(got[i + 3]) << 64 | got[i + 2];
    wrong += q != a / b || r != a % b;
  }
  CHECK(wrong == 0);
}
