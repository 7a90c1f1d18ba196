// SPDX-License-Identifier: MIT
// The rows of opcodes.def, taken apart: which modifiers, which operands.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/emulator/ptx/module.h"

namespace emu::ptx {

// What a form or a part of it needs: the module's .version, and a target of this number.
struct Floor {
  uint8_t version = 0, target = 0;  // 87 = .version 8.7; 89 = sm_89
  void raise(const Floor& to) {
    version = std::max(version, to.version);
    target = std::max(target, to.target);
  }
};

// A modifier or a type, as the word after a dot.
struct Suffix {
  enum class Kind : uint8_t { unknown, mod, type };
  Kind kind = Kind::unknown;
  Mod mod = Mod::count;
  Type type = Type::none;
  Floor floor = {};  // demanded where a row of opcodes.def names the suffix
};
Suffix find_suffix(std::string_view word);

std::string_view text_of(Type t);
std::string_view text_of(Mod m);  // without the dot

// The modifiers of a row as a tree.
struct Pattern {
  enum class Kind : uint8_t {
    one_of,    // exactly one of `suffixes`
    sequence,  // all parts
    choice,    // the first of the parts that fits
    optional,  // the same, or nothing
  };
  enum class Place : uint8_t { anywhere, first, after };  // .x ^.x >.x
  Kind kind = Kind::sequence;
  Place place = Place::anywhere;
  Floor floor = {};
  std::vector<Suffix> suffixes;
  std::vector<Pattern> parts;
};

// The modifiers of an instruction that no part of the pattern has matched yet. Types are matched in
// the order written.
using Places = std::array<uint8_t, size_t(Mod::count)>;  // which word a modifier was, 0 = the first
struct Suffixes {
  ModSet mods;
  const Places* places = nullptr;
  const Type* types = nullptr;
  uint8_t type_count = 0;
  int last = -1;     // place of the modifier taken last
  Floor floor = {};  // of all that was taken
  bool empty() const { return mods.none() && type_count == 0; }
};
bool matches(const Pattern& pattern, Suffixes& left);
ModSet modifiers_in(const Pattern& pattern);  // all that occur in the pattern

// One operand of a row, in the notation that opcodes.def explains at its top.
struct Slot {
  enum class Kind : uint8_t {
    scalar,   // d, a
    vector,   // {d}, {a}, {a4}
    any,      // d*: a vector if the instruction has .v2 .. .v8
    parts,    // {d/}
    address,  // [a]: in the instruction's space;  [s] and [g]: in_space
    tmem,     // [t]
    tensor,   // [m,{c}]
    label,    // L
  };
  enum class Width : uint8_t { first, second, wide, fixed };
  Kind kind = Kind::scalar;
  Width width = Width::first;
  Type type = Type::none;         // Width::fixed
  Space in_space = Space::param;  // [s], [g]; param stands for the instruction's own
  bool destination = false;
  bool piped = false;  // after |
  bool sink = false;   // d?
  bool wider = false;  // d+
  bool register_only = false, constant_only = false, variable = false, special = false;
  bool whole_special = false;  // $a
  bool optional = false;
  uint8_t elements = 0;        // {a2} .. {a8}; 0: as the instruction's modifiers say
  Mod only_with = Mod::count;  // {.x, b}
};

void parse_modifiers(std::string_view text, Pattern& out);  // ".{rn,rz}{.ftz}.f32"
std::vector<Slot> parse_slots(std::string_view text);       // "d, a, b{, c}"

}  // namespace emu::ptx
