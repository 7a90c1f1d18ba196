// SPDX-License-Identifier: MIT
// Walks a row's pattern and its operand slots.
#include "tools/emulator/test/support/ptx_samples.h"

#include "tools/emulator/ptx/operands.h"

namespace ptx_test {
namespace {

using namespace emu::ptx;
using Words = std::vector<Suffix>;

void append(Words& to, const Words& from) { to.insert(to.end(), from.begin(), from.end()); }

// All variants of a pattern, the default first; in a sequence only one part leaves its default.
std::vector<Words> variants(const Pattern& p) {
  std::vector<Words> out;
  switch (p.kind) {
    case Pattern::Kind::one_of:
      for (const Suffix& s : p.suffixes) out.push_back({s});
      break;
    case Pattern::Kind::optional: out.push_back({}); [[fallthrough]];
    case Pattern::Kind::choice:
      for (const Pattern& part : p.parts)
        for (const Words& w : variants(part))
          if (!w.empty() || out.empty()) out.push_back(w);
      break;
    case Pattern::Kind::sequence: {
      std::vector<std::vector<Words>> parts;
      for (const Pattern& part : p.parts) parts.push_back(variants(part));
      out.emplace_back();
      for (const auto& part : parts) append(out[0], part[0]);
      for (size_t i = 0; i < parts.size(); ++i)
        for (size_t v = 1; v < parts[i].size(); ++v) {
          Words words;
          for (size_t k = 0; k < parts.size(); ++k) append(words, parts[k][k == i ? v : 0]);
          out.push_back(words);
        }
      break;
    }
  }
  return out;
}

// opcodes.def writes .b:row for the second .row of wmma.mma.
std::string written(Mod m) {
  const std::string text(text_of(m));
  return text.substr(text.rfind("b:", 0) == 0 ? 2 : 0);
}

size_t draw(std::mt19937& random, size_t n) { return random() % n; }

Words random_words(const Pattern& p, std::mt19937& random) {
  if (p.kind == Pattern::Kind::one_of) return {p.suffixes[draw(random, p.suffixes.size())]};
  if (p.kind == Pattern::Kind::optional && draw(random, 2)) return {};
  if (p.kind != Pattern::Kind::sequence)
    return random_words(p.parts[draw(random, p.parts.size())], random);
  Words out;
  for (const Pattern& part : p.parts) append(out, random_words(part, random));
  return out;
}

Instr instruction(const Opcode& opcode, const Words& words) {
  Instr in;
  in.opcode = opcode.text;
  for (const Suffix& s : words) {
    if (s.kind == Suffix::Kind::mod)
      in.mods.set(size_t(s.mod));
    else
      in.types[in.type_count++] = s.type;
  }
  return in;
}

class OperandWriter {
 public:
  explicit OperandWriter(const Instr& in) : in_(in) {}

  std::string write(const std::vector<Slot>& slots, bool with_optional) {
    std::string out;
    for (const Slot& slot : slots) {
      if (slot.only_with != Mod::count && !in_.has(slot.only_with)) continue;
      if (slot.optional && !with_optional) continue;
      out += out.empty() ? " " : slot.piped ? "|" : ", ";
      out += operand(slot);
    }
    return out;
  }

 private:
  std::string number() { return std::to_string(next_++ % 32); }

  std::string reg(uint32_t bits) {
    switch (bits) {
      case 1: return "p" + number();
      case 8: return "b" + number();
      case 16: return "h" + number();
      case 32: return "r" + number();
      case 64: return "d" + number();
      default: return "q" + number();
    }
  }

  uint32_t bits(const Slot& slot) const {
    switch (slot.width) {
      case Slot::Width::first: return bits_of(in_.types[0]);
      case Slot::Width::second: return bits_of(in_.types[1]);
      case Slot::Width::wide: return 2 * bits_of(in_.types[0]);
      case Slot::Width::fixed: break;
    }
    return bits_of(slot.type);
  }

  std::string vector(uint32_t n, uint32_t width) {
    std::string out = "{";
    for (uint32_t i = 0; i < n; ++i) out += (i ? "," : "") + reg(width);
    return out + "}";
  }

  std::string address(Space space) {
    const bool narrow = space == Space::shared_cta || space == Space::shared_cluster;
    return "[" + reg(narrow ? 32 : 64) + "]";
  }

  std::string operand(const Slot& slot) {
    const bool vectored = in_.has(Mod::v2) || in_.has(Mod::v4) || in_.has(Mod::v8);
    switch (slot.kind) {
      case Slot::Kind::label: return std::string(in_.opcode) == "bra" ? "L" : "T";
      case Slot::Kind::tmem: return "[" + reg(32) + "]";
      case Slot::Kind::parts: return vector(2, bits(slot) / 2);
      case Slot::Kind::vector:
        return vector(slot.elements ? slot.elements : vector_length(in_), bits(slot));
      case Slot::Kind::any:
        return vectored ? vector(vector_length(in_), bits(slot)) : reg(bits(slot));
      case Slot::Kind::address:
        return address(slot.in_space == Space::param ? space_of(in_) : slot.in_space);
      case Slot::Kind::tensor: return "[" + reg(64) + ", " + vector(rank(), 32) + "]";
      case Slot::Kind::scalar: break;
    }
    if (slot.constant_only && slot.sink) return "_";
    if (slot.whole_special) return "%tid";
    if (slot.constant_only) return legal_constant();
    return reg(bits(slot));
  }

  // A number that is legal where this instruction demands a constant.
  std::string legal_constant() const {
    const std::string opcode = in_.opcode;
    if (opcode == "tensormap.replace" || opcode == "wgmma.mma_async") return "1";
    if (opcode == "st.bulk" || opcode.rfind("mma.sp", 0) == 0) return "0";
    return opcode == "cp.async" ? "16" : "128";
  }

  uint32_t rank() const {
    if (in_.has(Mod::tile_gather4) || in_.has(Mod::tile_scatter4)) return 5;
    for (uint32_t i = 0; i < 5; ++i)
      if (in_.has(Mod(uint32_t(Mod::dim_1) + i))) return i + 1;
    return 0;
  }

  const Instr& in_;
  uint32_t next_ = 0;
};

std::string mnemonic(const Opcode& opcode, const Words& words) {
  std::string text = opcode.text;
  for (const Suffix& s : words)
    text += "." + (s.kind == Suffix::Kind::mod ? written(s.mod) : std::string(text_of(s.type)));
  return text;
}

// What stands between separators, brackets and braces kept together.
std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{';
    depth -= c == ']' || c == '}';
    if (depth == 0 && std::string(separators).find(c) != std::string::npos)
      out.emplace_back();
    else if (c != ' ' || depth)
      out.back() += c;
  }
  return out;
}

void change(std::vector<std::string>& parts, const std::string& other, std::mt19937& random) {
  const size_t i = draw(random, parts.size()), k = draw(random, parts.size());
  switch (draw(random, 5)) {
    case 0: parts.erase(parts.begin() + long(i)); break;
    case 1: parts.insert(parts.begin() + long(i), parts[i]); break;
    case 2: std::swap(parts[i], parts[k]); break;
    default: parts[i] = other; break;
  }
}

const char* const operand_pool[] = {"r1",
                                    "d1",
                                    "p1",
                                    "h1",
                                    "b1",
                                    "f1",
                                    "q1",
                                    "u1",
                                    "x1",
                                    "e1",
                                    "g1",
                                    "5",
                                    "-1",
                                    "0",
                                    "33",
                                    "0f3F800000",
                                    "1.5",
                                    "0d3FF0000000000000",
                                    "s",
                                    "loc",
                                    "s+4",
                                    "[r1]",
                                    "[d1]",
                                    "[s]",
                                    "[s+4]",
                                    "[loc]",
                                    "[d1+8]",
                                    "[h1]",
                                    "{r1,r2}",
                                    "{r1}",
                                    "{r1,r2,r3,r4}",
                                    "{h1,h2}",
                                    "{d1,d2}",
                                    "{r1,_}",
                                    "_",
                                    "!p1",
                                    "%tid.x",
                                    "%clock64",
                                    "[d1,{r1,r2}]",
                                    "undeclared",
                                    "L"};

std::string random_suffix(std::mt19937& random) {
  const size_t types = size_t(Type::b1024) + 1, n = size_t(Mod::count) + types;
  const size_t i = draw(random, n);
  if (i < size_t(Mod::count)) return written(Mod(i));
  return i == size_t(Mod::count) ? "b32" : std::string(text_of(Type(i - size_t(Mod::count))));
}

}  // namespace

std::vector<std::string> samples(const Opcode& opcode, const Form& form) {
  std::vector<std::string> out;
  for (const Words& words : variants(form.modifiers)) {
    const Instr in = instruction(opcode, words);
    for (const bool with_optional : {false, true}) {
      const std::string sample =
          mnemonic(opcode, words) + OperandWriter(in).write(form.slots, with_optional) + ";";
      if (!with_optional || sample != out.back()) out.push_back(sample);
    }
  }
  return out;
}

std::string random_sample(const Opcode& opcode, const Form& form, std::mt19937& random) {
  const Words words = random_words(form.modifiers, random);
  return mnemonic(opcode, words) +
         OperandWriter(instruction(opcode, words)).write(form.slots, draw(random, 2)) + ";";
}

std::string mutant(const std::string& text, std::mt19937& random) {
  const size_t gap = text.find(' ');
  std::vector<std::string> words = split(text.substr(0, std::min(gap, text.size() - 1)), ".");
  if (gap == std::string::npos || draw(random, 2)) {
    if (words.size() == 1) words.emplace_back("uni");
    std::vector<std::string> suffixes(words.begin() + 1, words.end());
    change(suffixes, random_suffix(random), random);
    std::string out = words[0];
    for (const std::string& s : suffixes) out += "." + s;
    return out + (gap == std::string::npos ? ";" : text.substr(gap));
  }
  std::vector<std::string> ops = split(text.substr(gap + 1, text.size() - gap - 2), ",");
  change(ops, operand_pool[draw(random, std::size(operand_pool))], random);
  std::string out = text.substr(0, gap);
  for (size_t i = 0; i < ops.size(); ++i) out += (i ? ", " : " ") + ops[i];
  return out + ";";
}

}  // namespace ptx_test
