// SPDX-License-Identifier: MIT
// See random_program.h.
#include "tools/emulator/test/h200/random_program.h"

#include <bit>
#include <iterator>
#include <string_view>

namespace h200 {
namespace {

struct Step {
  bool may_have_guard;
  uint32_t weight;
  const char* text;  // nullptr: those that follow are collective
};
constexpr Step kSteps[] = {
#define STEP(weight, text) {true, weight, text},
#define UNGUARDED(weight, text) {false, weight, text},
#define COLLECTIVE {false, 0, nullptr},
#include "tools/emulator/test/h200/random.def"
#undef STEP
#undef UNGUARDED
#undef COLLECTIVE
};
constexpr uint32_t kRegisters = 8, kWide = 4, kPredicates = 4, kLength = 24;

// SplitMix64: the same everywhere, unlike the distributions of <random>.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) { state_ = bits() ^ bits() << 1; }
  uint64_t bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t n) { return uint32_t((bits() >> 32) * n >> 32); }

 private:
  uint64_t state_;
};

// Numbers at which something ends: integers, floats of all formats, and plain random ones.
uint32_t value(Draw& draw) {
  constexpr uint32_t edges[] = {
      0,          1,          2,          31,         32,         0x7FFFFFFF, 0x80000000,
      0xFFFFFFFF, 0x00800000, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
      0x7FC00001, 0x7F7FFFFF, 0x4F000000, 0x4B000001, 0x3C003C00, 0x7BFF0001, 0x7C00FC00,
      0x43E00000, 0x33800000, 0x3FF00000, 0x7FF00000, 0x38D1B717, 0x477FE000, 0x01010101};
  switch (draw.below(4)) {
    case 0: return edges[draw.below(uint32_t(std::size(edges)))];
    case 1: return uint32_t(draw.bits()) >> draw.below(32);
    case 2: {  // a float near 1, or the sum of two powers
      const uint32_t exponent = 110 + draw.below(40), sign = draw.below(2);
      return sign << 31 | exponent << 23 | (uint32_t(draw.bits()) & 0x7FFFFF);
    }
    default: return uint32_t(draw.bits());
  }
}

struct Choice {
  const Step& step;
  bool collective;
};
Choice choose(Draw& draw) {
  static const uint32_t all = [] {
    uint32_t sum = 0;
    for (const Step& s : kSteps) sum += s.weight;
    return sum;
  }();
  uint32_t at = draw.below(all);
  bool collective = false;
  for (const Step& s : kSteps) {
    collective |= !s.text;
    if (at < s.weight) return {s, collective};
    at -= s.weight;
  }
  return {kSteps[0], false};
}

Choice choose_single(uint64_t number) {
  const Step& step = kSteps[(number - kSingles) % std::size(kSteps)];
  bool collective = false;
  for (const Step* s = kSteps; s <= &step; ++s) collective |= !s->text;
  return {step.text ? step : kSteps[0], collective};
}

std::string name(const char* letter, uint32_t n) { return letter + std::to_string(n); }

struct Written {
  uint32_t d, e, wide, predicate;
};
Written draw_written(Draw& draw) {
  const uint32_t d = draw.below(kRegisters), e = (d + 1 + draw.below(kRegisters - 1)) % kRegisters;
  const uint32_t wide = draw.below(kWide), predicate = draw.below(kPredicates);
  return {d, e, wide, predicate};
}

std::string fill(const char* text, const Written& to, Draw& draw) {
  const auto& [d, e, wide, predicate] = to;
  std::string out;
  for (const char* c = text; *c; ++c) {
    if (*c != '%') {
      out += *c;
      continue;
    }
    switch (*++c) {
      case 'd': out += name("r", d); break;
      case 'e': out += name("r", e); break;
      case 'D': out += name("d", wide); break;
      case 'N':
        out += "setp.nan.f64 q0, " + name("d", wide) + ", " + name("d", wide) + "; selp.b64 " +
               name("d", wide) + ", 0, " + name("d", wide) + ", q0;";
        break;
      case 'P': out += name("p", predicate); break;
      case 'A':
      case 'B':
      case 'C': out += name("d", draw.below(kWide)); break;
      case 'p': out += name("p", draw.below(kPredicates)); break;
      case 's': out += std::to_string(draw.below(32)); break;
      case 'k': out += std::to_string(value(draw)); break;
      default: out += name("r", draw.below(kRegisters)); break;
    }
  }
  return out;
}

std::string guarded(const std::string& step, Draw& draw) {
  if (step.find(';') + 1 != step.size()) return step;  // one statement only
  const std::string guard = draw.below(2) ? "@!" : "@";
  return guard + name("p", draw.below(kPredicates)) + " " + step;
}

// What the step writes is shifted by a zero that ptxas cannot know. ptxas 13.0 does not always make
// of several steps what they do one by one. It takes the bits that a float instruction wrote for a
// number if they are a shift's operand. It drops the .sat of (a + b) - b, and a whole
// cvt.sat.f32.f32 of the result of add.sat.s32. There is more, and no C++ compiler writes any of
// it.
std::string apart(const char* text, const Written& to) {
  const std::string_view step = text;
  std::string out;
  const auto add = [&](const char* letter, const std::string& r, const char* bits) {
    if (step.find(letter) != step.npos)
      out += std::string(" shl.") + bits + r + ", " + r + ", zero;";
  };
  add("%d", name("r", to.d), "b32 ");
  add("%e", name("r", to.e), "b32 ");
  add("%D", name("d", to.wide), "b64 ");
  return out;
}

}  // namespace

RandomProgram random_program(uint64_t number) {
  RandomProgram program{number, {}};
  Draw draw(number);
  const bool single = number >= kSingles;
  for (uint32_t i = 0; i < (single ? 1 : kLength); ++i) {
    const Choice chosen = single ? choose_single(number) : choose(draw);
    const Written to = draw_written(draw);
    std::string step = fill(chosen.step.text, to, draw);
    if (!chosen.collective && draw.below(8) == 0 && chosen.step.may_have_guard)
      step = guarded(step, draw);
    program.steps.push_back(step + apart(chosen.step.text, to));
  }
  return program;
}

std::vector<uint32_t> random_values(uint64_t number) {
  Draw draw(~number);
  std::vector<uint32_t> values(32 * kRandomWords + 32);
  for (uint32_t& v : values) v = value(draw);
  return values;
}

// Not the name of a register: ptxas 13.0 takes @p0 for the entry p0, and drops it, or ends.
std::string entry_name(size_t program) { return "program" + std::to_string(program); }

std::string random_module(const std::vector<RandomProgram>& programs) {
  std::string text = ".version 8.2\n.target sm_90\n.address_size 64\n";
  for (size_t i = 0; i < programs.size(); ++i) {
    const std::string at = std::to_string(i * kRandomResults * 4);
    text +=
        ".visible .entry " + entry_name(i) +
        "(.param .u64 k_values, .param .u64 k_results, .param .u32 k_zero)\n{\n"
        ".reg .b16 h<4>; .reg .b32 r<8>, t<2>, own, line, zero; .reg .b64 d<5>, in, out, zeros;\n"
        ".reg .pred p<4>, q0; .shared .align 128 .b8 words[128];\n"
        "ld.param.u64 in, [k_values]; ld.param.u64 out, [k_results];\n"
        "ld.param.u32 zero, [k_zero]; mov.b64 zeros, {zero, zero};\n"
        "mov.u32 t0, %tid.x; mov.u32 line, words; mad.lo.u32 own, t0, 4, line;\n"
        "add.u64 in, in, " +
        at + "; add.u64 out, out, " + at +
        ";\n"
        "mul.wide.u32 d4, t0, 4; add.u64 in, in, d4; add.u64 out, out, d4;\n";
    const auto word = [](const char* base, uint32_t w) {
      return std::string("[") + base + "+" + std::to_string(128 * w) + "]";
    };
    for (uint32_t w = 0; w < kRegisters; ++w)
      text += "ld.global.u32 " + name("r", w) + ", " + word("in", w) + ";\n";
    for (uint32_t w = 0; w < kWide; ++w)
      text += "ld.global.u32 t0, " + word("in", 8 + 2 * w) + "; ld.global.u32 t1, " +
              word("in", 9 + 2 * w) + "; mov.b64 " + name("d", w) + ", {t0, t1};\n";
    text += "ld.global.u32 t0, " + word("in", 16) + ";\n";
    for (uint32_t w = 0; w < kPredicates; ++w)
      text += "bfe.u32 t1, t0, " + std::to_string(w) + ", 1; setp.ne.u32 " + name("p", w) +
              ", t1, 0;\n";
    text +=
        "ld.global.u32 t0, " + word("in", 17) + "; st.shared.u32 [own], t0; bar.warp.sync -1;\n";
    for (const std::string& step : programs[i].steps) text += step + "\n";
    for (uint32_t w = 0; w < kRegisters; ++w)
      text += "st.global.u32 " + word("out", w) + ", " + name("r", w) + ";\n";
    for (uint32_t w = 0; w < kWide; ++w)
      text += "mov.b64 {t0, t1}, " + name("d", w) + "; st.global.u32 " + word("out", 8 + 2 * w) +
              ", t0; st.global.u32 " + word("out", 9 + 2 * w) + ", t1;\n";
    text += "mov.u32 t0, 0;\n";
    for (uint32_t w = 0; w < kPredicates; ++w)
      text += "@" + name("p", w) + " or.b32 t0, t0, " + std::to_string(1u << w) + ";\n";
    text += "st.global.u32 " + word("out", 16) + ", t0; ld.shared.u32 t0, [own]; st.global.u32 " +
            word("out", 17) + ", t0;\nret;\n}\n";
  }
  return text;
}

// FNV-1a.
uint64_t hash_of(const uint32_t* words) {
  uint64_t h = 0xCBF29CE484222325;
  for (uint32_t i = 0; i < kRandomResults; ++i)
    for (int byte = 0; byte < 4; ++byte) h = (h ^ (words[i] >> 8 * byte & 0xFF)) * 0x100000001B3;
  return h;
}

}  // namespace h200
