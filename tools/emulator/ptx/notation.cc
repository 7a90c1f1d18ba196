// SPDX-License-Identifier: MIT
// A recursive-descent reader of the notation that opcodes.def explains. A row that it cannot read
// is an error of this program, found by the first module loaded.
#include "tools/emulator/ptx/notation.h"

#include <stdexcept>
#include <string>
#include <unordered_map>

namespace emu::ptx {
namespace {

constexpr std::string_view type_names[] = {
    "",
#define EMU_TYPE(name, bits, cls) #name,
#include "tools/emulator/ptx/types.def"
#undef EMU_TYPE
};

constexpr std::string_view mod_names[] = {
#define EMU_MOD(id, text) text,
#include "tools/emulator/ptx/modifiers.def"
#undef EMU_MOD
};

std::unordered_map<std::string_view, Suffix> make_suffixes() {
  std::unordered_map<std::string_view, Suffix> map;
  for (size_t i = 1; i < std::size(type_names); ++i)
    map[type_names[i]] = {Suffix::Kind::type, Mod::count, Type(i)};
  for (size_t i = 0; i < std::size(mod_names); ++i)
    map[mod_names[i].substr(1)] = {Suffix::Kind::mod, Mod(i), Type::none};
  return map;
}

[[noreturn]] void bad_row(std::string_view what, std::string_view row) {
  throw std::logic_error("opcodes.def: " + std::string(what) + " in '" + std::string(row) + "'");
}

bool word_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == ':';
}

// Common to both halves of a row: a place in its text.
class Reader {
 public:
  explicit Reader(std::string_view row) : row_(row), rest_(row) {}

 protected:
  bool done() const { return rest_.empty(); }
  char peek() const { return done() ? '\0' : rest_[0]; }
  bool accept(char c) { return peek() == c && (rest_.remove_prefix(1), true); }
  void expect(char c) {
    if (!accept(c))
      bad_row(std::string("'") + c + "' expected before '" + std::string(rest_) + "'", row_);
  }
  std::string_view word() {
    size_t n = 0;
    while (n < rest_.size() && word_character(rest_[n])) ++n;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  Suffix suffix() {
    const std::string_view text = word();
    const Suffix s = find_suffix(text);
    if (s.kind == Suffix::Kind::unknown) bad_row("unknown ." + std::string(text), row_);
    return s;
  }
  std::string_view row_, rest_;
};

class ModifierReader : Reader {
 public:
  using Reader::Reader;
  void read(Pattern& out) {
    sequence(out);
    if (!done()) bad_row("text left over", row_);
  }

 private:
  void sequence(Pattern& out) {
    while (!done() && std::string_view(".{(^>@").find(peek()) != std::string_view::npos)
      if (peek() == '@')
        floor((out.parts.empty() ? out : out.parts.back()).floor);
      else
        out.parts.push_back(item());
  }

  Pattern item() {
    Pattern p;
    if (accept('{')) {
      p.kind = Pattern::Kind::optional;
      alternatives(p, '}');
    } else if (accept('(')) {
      p.kind = Pattern::Kind::choice;
      alternatives(p, ')');
    } else {
      if (accept('^'))
        p.place = Pattern::Place::first;
      else if (accept('>'))
        p.place = Pattern::Place::after;
      expect('.');
      p.kind = Pattern::Kind::one_of;
      if (accept('{')) {
        do {
          p.suffixes.push_back(suffix());
          while (peek() == '@') floor(p.suffixes.back().floor);
        } while (accept(','));
        expect('}');
      } else {
        p.suffixes.push_back(suffix());
      }
    }
    return p;
  }

  // @8.7 or @sm_89
  void floor(Floor& out) {
    expect('@');
    if (rest_.substr(0, 3) == "sm_") {
      rest_.remove_prefix(3);
      out.target = digit();
      out.target = uint8_t(10 * out.target + digit());
      return;
    }
    out.version = digit();
    expect('.');
    out.version = uint8_t(10 * out.version + digit());
  }

  uint8_t digit() {
    if (peek() < '0' || peek() > '9') bad_row("8.7 or sm_89 expected", row_);
    const auto value = uint8_t(peek() - '0');
    rest_.remove_prefix(1);
    return value;
  }

  void alternatives(Pattern& out, char end) {
    do {
      out.parts.emplace_back();
      sequence(out.parts.back());
    } while (accept('|'));
    expect(end);
  }
};

class SlotReader : Reader {
 public:
  using Reader::Reader;
  std::vector<Slot> read() {
    while (!done()) {
      skip_blanks();
      Slot slot;
      const bool braces = peek() == '{' && (rest_[1] == ',' || rest_[1] == '.' || rest_[1] == '|');
      if (braces)
        condition(slot);
      else if (!slots_.empty())
        separator(slot);
      operand(slot);
      if (braces) expect('}');
      slots_.push_back(slot);
    }
    return slots_;
  }

 private:
  void skip_blanks() {
    while (accept(' ')) {
    }
  }

  void separator(Slot& slot) {
    slot.piped = accept('|');
    if (!slot.piped) expect(',');
    skip_blanks();
  }

  void condition(Slot& slot) {
    expect('{');
    if (accept('.'))
      slot.only_with = suffix().mod;
    else
      slot.optional = true;
    separator(slot);
  }

  void operand(Slot& slot) {
    slot.register_only = accept('%');
    slot.constant_only = accept('#');
    slot.special = accept('@');
    slot.variable = accept('&') || slot.special;
    slot.whole_special = accept('$');
    if (accept('[')) return address(slot);
    const bool braces = accept('{');
    if (accept('L')) {
      slot.kind = Slot::Kind::label;
      return;
    }
    slot.destination = peek() == 'd' || peek() == 'p' || peek() == 'q';
    if (peek() == 'p' || peek() == 'q') {
      slot.width = Slot::Width::fixed;
      slot.type = Type::pred;
    }
    if (peek() == '_') slot.destination = slot.sink = slot.constant_only = true;
    rest_.remove_prefix(1);
    if (braces) {
      slot.kind = accept('/') ? Slot::Kind::parts : Slot::Kind::vector;
      if (peek() >= '1' && peek() <= '8') {
        slot.elements = uint8_t(peek() - '0');
        rest_.remove_prefix(1);
      }
      slot.sink = slot.kind == Slot::Kind::parts && slot.destination;
      expect('}');
    }
    slot.sink |= accept('?');
    if (accept('*')) slot.kind = Slot::Kind::any;
    slot.wider = accept('+');
    if (accept(':')) type(slot);
  }

  void type(Slot& slot) {
    const std::string_view text = word();
    if (text == "0" || text == "1") {
      slot.width = text == "0" ? Slot::Width::first : Slot::Width::second;
    } else if (text == "wide") {
      slot.width = Slot::Width::wide;
    } else {
      slot.width = Slot::Width::fixed;
      slot.type = find_suffix(text).type;
      if (slot.type == Type::none) bad_row("unknown type", row_);
    }
  }

  void address(Slot& slot) {
    slot.kind = Slot::Kind::address;
    switch (peek()) {
      case 's': slot.in_space = Space::shared_cta; break;
      case 'g': slot.in_space = Space::global; break;
      case 't': slot.kind = Slot::Kind::tmem; break;
      case 'm': slot.kind = Slot::Kind::tensor; break;
      default: break;
    }
    while (!accept(']')) rest_.remove_prefix(1);
  }

  std::vector<Slot> slots_;
};

bool stands_right(const Pattern& p, Mod m, const Suffixes& left) {
  const int place = (*left.places)[size_t(m)];
  return p.place == Pattern::Place::anywhere ||
         (p.place == Pattern::Place::first ? place == 0 : place > left.last);
}

bool take(const Pattern& p, Suffixes& left) {
  for (const Suffix& s : p.suffixes) {
    if (s.kind == Suffix::Kind::type && left.type_count && left.types[0] == s.type) {
      ++left.types;
      --left.type_count;
      left.floor.raise(s.floor);
      return true;
    }
    if (s.kind != Suffix::Kind::mod || !left.mods.test(size_t(s.mod))) continue;
    if (!stands_right(p, s.mod, left)) continue;
    left.mods.reset(size_t(s.mod));
    left.last = (*left.places)[size_t(s.mod)];
    left.floor.raise(s.floor);
    return true;
  }
  return false;
}

bool matches_parts(const Pattern& p, Suffixes& left) {
  if (p.kind == Pattern::Kind::one_of) return take(p, left);
  const Suffixes before = left;
  if (p.kind == Pattern::Kind::sequence) {
    for (const Pattern& part : p.parts) {
      if (matches(part, left)) continue;
      left = before;
      return false;
    }
    return true;
  }
  for (const Pattern& part : p.parts)
    if (matches(part, left)) return true;
  return p.kind == Pattern::Kind::optional;
}

}  // namespace

Suffix find_suffix(std::string_view word) {
  static const std::unordered_map<std::string_view, Suffix> map = make_suffixes();
  const auto found = map.find(word);
  return found == map.end() ? Suffix{} : found->second;
}

std::string_view text_of(Type t) { return type_names[size_t(t)]; }
std::string_view text_of(Mod m) { return mod_names[size_t(m)].substr(1); }

bool matches(const Pattern& p, Suffixes& left) {
  if (!matches_parts(p, left)) return false;
  left.floor.raise(p.floor);
  return true;
}

ModSet modifiers_in(const Pattern& p) {
  ModSet all;
  for (const Suffix& s : p.suffixes)
    if (s.kind == Suffix::Kind::mod) all.set(size_t(s.mod));
  for (const Pattern& part : p.parts) all |= modifiers_in(part);
  return all;
}

void parse_modifiers(std::string_view text, Pattern& out) { ModifierReader(text).read(out); }
std::vector<Slot> parse_slots(std::string_view text) { return SlotReader(text).read(); }

}  // namespace emu::ptx
