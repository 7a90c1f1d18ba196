// SPDX-License-Identifier: MIT
// mma.sync of doubles against the host's fused multiply-add, in every shape and rounding.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>

#include "tools/emulator/test/support/exec_support.h"

namespace {

struct Shape {
  int m, k;
  // Registers of a lane: A, B, C.
  int a() const { return m * k / 32; }
  int b() const { return k / 4; }
  int c() const { return m / 4; }
  int all() const { return a() + b() + c(); }
};

std::string registers(const char* name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += (i ? ", %" : "{%") + std::string(name) + std::to_string(i);
  return text + "}";
}

std::string move(const char* opcode, const char* name, int count, int first) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string at = "[%at+" + std::to_string(8 * (first + i)) + "]",
                      r = "%" + std::string(name) + std::to_string(i);
    text += std::string(opcode) + ".global.b64 " +
            (*opcode == 'l' ? r + ", " + at : at + ", " + r) + ";";
  }
  return text;
}

// Each lane finds its registers one after the other and stores D where C was.
std::string body(const Shape& s, const std::string& rounding) {
  return ".reg .b64 %at, %a<8>, %b<4>, %c<4>; .reg .b32 %l; mov.u32 %l, %laneid; mad.wide.u32 %at, "
         "%l, " +
         std::to_string(8 * s.all()) + ", %out;" + move("ld", "a", s.a(), 0) +
         move("ld", "b", s.b(), s.a()) + move("ld", "c", s.c(), s.a() + s.b()) +
         "mma.sync.aligned.m" + std::to_string(s.m) + "n8k" + std::to_string(s.k) + ".row.col" +
         rounding + ".f64.f64.f64.f64 " + registers("c", s.c()) + ", " + registers("a", s.a()) +
         ", " + registers("b", s.b()) + ", " + registers("c", s.c()) + ";" +
         move("st", "c", s.c(), s.a() + s.b());
}

// Exponents within 2^-40 and 2^40, so that the order of the sum and every rounding shows.
double draw(std::mt19937_64& random) {
  return std::ldexp(double(int64_t(random())), int(random() % 80) - 103);
}

void check(const Shape& s, const std::string& rounding, int mode) {
  std::mt19937_64 random(uint64_t(s.m * 100 + s.k));
  std::vector<double> lanes(size_t(32 * s.all())), a(16 * 16), b(8 * 16), c(16 * 8);
  for (auto* all : {&a, &b, &c})
    for (double& x : *all) x = draw(random);
  // PTX ISA 9.7.15.5: row l / 4 of each eight, element l % 4 of each four along K; D two
  // neighbours.
  const auto place = [&](int lane, int i) -> double& { return lanes[size_t(lane * s.all() + i)]; };
  const int ups = s.m / 8;
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < s.a(); ++i)
      place(l, i) = a[size_t((l / 4 + i % ups * 8) * 16 + i / ups * 4 + l % 4)];
    for (int i = 0; i < s.b(); ++i) place(l, s.a() + i) = b[size_t(l / 4 * 16 + i * 4 + l % 4)];
    for (int i = 0; i < s.c(); ++i)
      place(l, s.a() + s.b() + i) = c[size_t((l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2)];
  }
  std::vector<uint32_t> buffer(lanes.size() * 2);
  std::memcpy(buffer.data(), lanes.data(), buffer.size() * 4);
  buffer = exec_test::run(body(s, rounding), {{}, {32, 1, 1}}, buffer);
  std::memcpy(lanes.data(), buffer.data(), buffer.size() * 4);
  std::fesetround(mode);
  std::vector<double> want = c;
  for (int r = 0; r < s.m; ++r)
    for (int n = 0; n < 8; ++n)
      for (int k = 0; k < s.k; ++k) {
        double& d = want[size_t(r * 8 + n)];
        d = std::fma(a[size_t(r * 16 + k)], b[size_t(n * 16 + k)], d);
      }
  std::fesetround(FE_TONEAREST);
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < s.c(); ++i) {
      CAPTURE(s.m, s.k, rounding, l, i);
      CHECK(place(l, s.a() + s.b() + i) ==
            want[size_t((l / 4 + i / 2 * 8) * 8 + l % 4 * 2 + i % 2)]);
    }
}

}  // namespace

TEST_CASE("mma.sync of doubles is one fused multiply-add after the other along K") {
  for (const Shape& s : {Shape{8, 4}, {16, 4}, {16, 8}, {16, 16}}) {
    check(s, "", FE_TONEAREST);
    check(s, ".rn", FE_TONEAREST);
    check(s, ".rz", FE_TOWARDZERO);
    check(s, ".rm", FE_DOWNWARD);
    check(s, ".rp", FE_UPWARD);
  }
}
