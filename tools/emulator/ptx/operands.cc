// SPDX-License-Identifier: MIT
// Operand checks as ptxas 13.0 does them: what it refuses is refused here. The reverse is not quite
// true: 16- and 32-bit registers as generic addresses, .f16x2 registers as integers, and
// the names of variables of another space in generic addresses pass ptxas, not us.
#include "tools/emulator/ptx/operands.h"

#include <bit>

#include "tools/emulator/ptx/special.h"

namespace emu::ptx {
namespace {

using Kind = ParsedOperand::Kind;

Type bits_type(uint32_t bits) {
  switch (bits) {
    case 8: return Type::b8;
    case 16: return Type::b16;
    case 32: return Type::b32;
    case 64: return Type::b64;
    case 128: return Type::b128;
    default: return Type::none;
  }
}

Type doubled(Type t) {
  switch (t) {
    case Type::s16: return Type::s32;
    case Type::u16: return Type::u32;
    case Type::s32: return Type::s64;
    case Type::u32: return Type::u64;
    default: return Type::none;
  }
}

Type type_of(const Slot& slot, const Instr& in) {
  switch (slot.width) {
    case Slot::Width::first: return in.types[0];
    case Slot::Width::second: return in.types[1];
    case Slot::Width::wide: return doubled(in.types[0]);
    case Slot::Width::fixed: return slot.type;
  }
  return Type::none;
}

bool has_vector_modifier(const Instr& in) {
  return in.has(Mod::v2) || in.has(Mod::v4) || in.has(Mod::v8);
}

std::string dot(Type t) { return "." + std::string(text_of(t)); }

bool is_register(const ParsedOperand& p) {
  return p.kind == Kind::name && p.symbol && p.symbol->kind == Symbol::Kind::reg && !p.offset;
}

bool is_constant(const ParsedOperand& p) {
  return p.kind == Kind::integer || p.kind == Kind::real32 || p.kind == Kind::real64;
}

// The value as bits of type t. False: such a constant cannot have that type (PTX ISA 4.5; ptxas
// takes 0f for .b32 and 0d or decimals for .b64, and rounds 0d to .f32).
bool constant_bits(const ParsedOperand& p, Type t, int64_t* out) {
  const char cls = class_of(t);
  uint64_t bits = p.bits;
  if (p.kind == Kind::integer) {
    if (cls == 'f' || cls == 'x') return false;
    if (cls == 'p')
      bits = bits != 0;
    else if (bits_of(t) < 64)
      bits &= (1ull << bits_of(t)) - 1;
  } else if (t == Type::b32) {
    if (p.kind != Kind::real32) return false;
  } else if (t == Type::b64) {
    if (p.kind != Kind::real64) return false;
  } else if (t == Type::f32) {
    if (p.kind == Kind::real64) bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
  } else if (t == Type::f64) {
    if (p.kind == Kind::real32)
      bits = std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(bits))));
  } else {
    return false;
  }
  *out = int64_t(bits);
  return true;
}

void set_register(const ParsedOperand& p, Operand& out) {
  out.kind = Operand::Kind::reg;
  out.reg = p.symbol->index;
  out.declared = p.symbol->type;
  out.negated = p.negated;
}

void set_variable(const Symbol& symbol, int64_t offset, Operand& out) {
  out.space = symbol.space;
  if (symbol.space == Space::local || symbol.space == Space::param) {
    out.imm = int64_t(symbol.index) + offset;
    out.reg = symbol.frame;
  } else {
    out.variable = symbol.index;
    out.imm = offset;
  }
}

bool lies_in(const Symbol& variable, Space space) {
  return variable.space == space ||
         (variable.space == Space::shared_cta && space == Space::shared_cluster);
}

// One instruction's operands against one row's slots.
// .1d to .5d.
uint32_t dimensions(const Instr& in) {
  for (uint32_t i = 0; i < 5; ++i)
    if (in.has(Mod(uint32_t(Mod::dim_1) + i))) return i + 1;
  return 0;
}
static_assert(uint32_t(Mod::dim_5) == uint32_t(Mod::dim_1) + 4);

class Fitter {
 public:
  Fitter(const ParsedInstr& in, Instr& out) : in_(in), out_(out) {}

  OperandError run(const std::vector<Slot>& slots) {
    size_t at = 0;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot& slot = slots[i];
      if (slot.only_with != Mod::count && !out_.has(slot.only_with)) continue;
      const size_t left = in_.ops.size() - at;
      if (slot.optional && (left <= required(slots, i + 1) || in_.ops[at].piped != slot.piped))
        continue;
      if (!left) return {end_position(), "an operand is missing at the end"};
      const ParsedOperand& p = in_.ops[at++];
      if (p.piped != slot.piped) return {p.pos, slot.piped ? "'|' expected" : "no '|' here"};
      if (slot.kind == Slot::Kind::label) {
        if (p.kind != Kind::name || p.symbol) return {p.pos, "a label expected"};
        continue;
      }
      out_.ops.emplace_back();
      if (std::string why = fit(slot, p, out_.ops.back()); !why.empty())
        return {p.pos, why, wants_vector(slot) != (p.kind == Kind::vector)};
    }
    if (at < in_.ops.size()) return {in_.ops[at].pos, "one operand too many"};
    return {};
  }

 private:
  SourcePos end_position() const {
    SourcePos pos = in_.pos;
    pos.column += uint32_t(in_.text.size());
    return pos;
  }

  size_t required(const std::vector<Slot>& slots, size_t from) const {
    size_t n = 0;
    for (size_t i = from; i < slots.size(); ++i)
      n += !slots[i].optional && (slots[i].only_with == Mod::count || out_.has(slots[i].only_with));
    return n;
  }

  std::string fit(const Slot& slot, const ParsedOperand& p, Operand& out) {
    const Type type = type_of(slot, out_);
    switch (slot.kind) {
      case Slot::Kind::scalar: return scalar(slot, type, p, out);
      case Slot::Kind::vector:
        return vector(slot, type, slot.elements ? slot.elements : vector_length(out_), p, out);
      case Slot::Kind::any:
        return has_vector_modifier(out_) ? vector(slot, type, vector_length(out_), p, out)
                                         : no_sink(alone(p), slot, type, out);
      case Slot::Kind::parts: return parts(slot, type, p, out);
      case Slot::Kind::address:
        return address(p, slot.in_space == Space::param ? space_of(out_) : slot.in_space, out);
      case Slot::Kind::tmem: return tensor_memory(p, out);
      case Slot::Kind::tensor: return tensor_map(p, out);
      case Slot::Kind::label: break;
    }
    return "a label expected";
  }

  bool wants_vector(const Slot& slot) const {
    return slot.kind == Slot::Kind::parts || slot.kind == Slot::Kind::vector ||
           (slot.kind == Slot::Kind::any && has_vector_modifier(out_));
  }

  // Compilers write the one value of ld and st in braces as they write several.
  static const ParsedOperand& alone(const ParsedOperand& p) {
    return p.kind == Kind::vector && p.elements.size() == 1 ? p.elements[0] : p;
  }

  // _ may replace elements of a vector, not the only destination.
  std::string no_sink(const ParsedOperand& p, const Slot& slot, Type type, Operand& out) {
    return p.sink() ? "'_' cannot be the only destination" : scalar(slot, type, p, out);
  }

  std::string scalar(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    if (slot.whole_special) return whole_special(p, out);
    if (p.kind == Kind::vector) return "no vector here";
    if (p.kind == Kind::address) return "no address here";
    if (p.negated && (slot.destination || type != Type::pred))
      return "only a predicate can be negated";
    if (p.sink()) {
      out.kind = Operand::Kind::sink;
      return slot.sink ? "" : "'_' is not allowed here";
    }
    if (is_constant(p)) return constant(slot, type, p, out);
    if (slot.constant_only) return slot.sink ? "'_' expected" : "a constant expected";
    if (p.symbol && !p.field.empty())
      return "'" + std::string(p.name) + "' has no '." + std::string(p.field) + "'";
    if (is_register(p)) return reg(slot, type, p, out);
    if (p.symbol && p.symbol->kind == Symbol::Kind::variable) return variable(slot, type, p, out);
    if (p.symbol) return function(slot, type, p, out);
    return special(slot, type, p, out);
  }

  std::string constant(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) const {
    if (slot.destination || slot.register_only) return "a register expected";
    // mov.pred takes any number, nvcc writes -1.
    if (type == Type::pred && p.bits > 1 && std::string_view(out_.opcode).rfind("wgmma", 0) == 0)
      return "a constant scale-d is 0 or 1";
    // Here ptxas 13.0 looks at all 64 bits, elsewhere at those of the type.
    if (type == Type::u16 && p.bits >> 16 && std::string_view(out_.opcode) == "mma.sync")
      return "the selectors of scales are small numbers";
    if (int64_t(p.bits) < 0 && std::string_view(out_.opcode) == "wgmma.wait_group")
      return "a number of groups is not negative";
    if (p.negated) return "a constant cannot be negated";
    out.kind = Operand::Kind::imm;
    if (!constant_bits(p, type, &out.imm)) return "this constant cannot have type " + dot(type);
    return "";
  }

  static std::string reg(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    set_register(p, out);
    out.written = slot.destination;
    if (compatible(p.symbol->type, type, slot.wider)) return "";
    return "register '" + std::string(p.name) + "' of type " + dot(p.symbol->type) + ", " +
           dot(type) + " expected";
  }

  std::string variable(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    const std::string name = "'" + std::string(p.name) + "'";
    if (!slot.variable) return "a register expected, " + name + " is a variable";
    if (const Space space = space_of(out_); space != Space::generic && !lies_in(*p.symbol, space))
      return name + " is not in the instruction's state space";
    // 32 bits hold a whole address of a space that has a window (memory/address.h).
    const Space of = p.symbol->space;
    const bool narrow = of == Space::shared_cta || of == Space::local || of == Space::param;
    if (bits_of(type) < (narrow ? 32 : 64)) return "the address of " + name + " needs 64 bits";
    out.kind = Operand::Kind::symbol;
    set_variable(*p.symbol, p.offset, out);
    return "";
  }

  static std::string function(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    const std::string name = "'" + std::string(p.name) + "'";
    if (!slot.variable || slot.destination)
      return "a register expected, " + name + " is a function";
    if (bits_of(type) < 64 || p.offset) return "the address of " + name + " needs 64 bits";
    out.kind = Operand::Kind::imm;
    out.imm = int64_t(first_function_address + function_spacing * p.symbol->index);
    return "";
  }

  // %tid has three parts, %laneid one.
  static std::string whole_special(const ParsedOperand& p, Operand& out) {
    const SpecialRegister* first = p.field.empty() ? find_special(p.name, "x") : nullptr;
    out.kind = Operand::Kind::special;
    out.imm = first ? 3 : 1;
    if (!first) first = find_special(p.name, p.field);
    if (p.kind != Kind::name || p.offset || !first || first->bits != 32)
      return "a special register of 32 bits expected";
    out.special = first->id;
    return "";
  }

  static std::string special(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    const std::string name =
        "'" + std::string(p.name) + (p.field.empty() ? "" : "." + std::string(p.field)) + "'";
    const SpecialRegister* s = find_special(p.name, p.field);
    if (!s) return "unknown name " + name;
    if (!slot.special) return "special register " + name + " can only be read by mov";
    if (bits_of(type) != s->bits)
      return "special register " + name + " has " + std::to_string(s->bits) + " bits";
    out.kind = Operand::Kind::special;
    out.special = s->id;
    return "";
  }

  std::string elements(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    out.kind = Operand::Kind::vector;
    Slot element = slot;
    bool all_sinks = true;
    uint32_t width = 0;  // of the registers so far: one of ld and st may be wider than the type
    for (const ParsedOperand& e : p.elements) {
      out.elements.emplace_back();
      if (std::string why = scalar(element, type, e, out.elements.back()); !why.empty()) return why;
      all_sinks &= e.sink();
      if (!is_register(e)) continue;
      if (width && bits_of(e.symbol->type) != width) return "registers of different widths";
      width = bits_of(e.symbol->type);
    }
    return all_sinks ? "a vector of '_' only" : "";
  }

  std::string vector(const Slot& slot, Type type, uint32_t length, const ParsedOperand& p,
                     Operand& out) {
    if (p.kind != Kind::vector || p.elements.size() != length)
      return "a vector of " + std::to_string(length) + " expected";
    return elements(slot, type, p, out);
  }

  std::string parts(const Slot& slot, Type type, const ParsedOperand& p, Operand& out) {
    if (p.kind != Kind::vector) return "a vector expected";
    const size_t n = p.elements.size();
    const bool divides = n == 2 || n == 4 || (n == 1 && type != Type::b128);
    const Type part = divides ? bits_type(bits_of(type) / uint32_t(n)) : Type::none;
    if (part == Type::none) return "no vector of " + std::to_string(n) + " makes up " + dot(type);
    return elements(slot, part, p, out);
  }

  // A register of the space's width, or a variable of the space.
  std::string address(const ParsedOperand& p, Space space, Operand& out) {
    const std::string_view opcode = out_.opcode;
    const bool element = p.indexed && (opcode == "ld" || opcode == "st");  // ld.shared d, array[1]
    if ((p.kind != Kind::address && !element) || !p.elements.empty())
      return "an address [..] expected";
    if (p.name.empty()) return "an absolute address is no operand";
    if (!p.symbol) return "unknown name '" + std::string(p.name) + "'";
    out.kind = Operand::Kind::address;
    out.imm = p.offset;
    const bool narrow =
        space == Space::shared_cta || space == Space::shared_cluster || space == Space::local;
    if (p.symbol->kind == Symbol::Kind::variable) return base_variable(p, space, out);
    if (p.symbol->kind == Symbol::Kind::function)
      return "'" + std::string(p.name) + "' is a function, which is no memory";
    const Type declared = p.symbol->type;
    const char cls = class_of(declared);
    const bool integer = cls == 'b' || cls == 'u' || cls == 's';
    if (!integer || (bits_of(declared) != 64 && !(narrow && bits_of(declared) == 32)))
      return "register '" + std::string(p.name) + "' of type " + dot(declared) + " as " +
             (narrow ? "a 32- or 64-bit" : "a 64-bit") + " address";
    out.reg = p.symbol->index;
    out.declared = declared;
    return "";
  }

  static std::string base_variable(const ParsedOperand& p, Space space, Operand& out) {
    const bool global = p.symbol->space == Space::global && space == Space::generic;
    if (!global && !lies_in(*p.symbol, space))
      return "'" + std::string(p.name) + "' is not in the instruction's state space";
    set_variable(*p.symbol, p.offset, out);
    out.base_is_symbol = out.reg == no_register;
    if (!out.base_is_symbol) out.declared = Type::u64;
    return "";
  }

  static std::string tensor_memory(const ParsedOperand& p, Operand& out) {
    if (p.kind != Kind::address || !p.elements.empty())
      return "a tensor memory address [..] expected";
    if (!p.symbol || p.symbol->kind != Symbol::Kind::reg || bits_of(p.symbol->type) != 32 ||
        !compatible(p.symbol->type, Type::u32, false))
      return "a tensor memory address is a 32-bit register";
    out.kind = Operand::Kind::address;
    out.reg = p.symbol->index;
    out.declared = p.symbol->type;
    out.imm = p.offset;
    return "";
  }

  // [map, {c0, c1}]: coordinates are signed 32-bit.
  std::string tensor_map(const ParsedOperand& p, Operand& out) {
    const bool four_rows = out_.has(Mod::tile_gather4) || out_.has(Mod::tile_scatter4);
    const uint32_t rank = four_rows ? 5 : dimensions(out_);
    if (p.kind != Kind::address || p.elements.size() != rank)
      return "a tensor map and " + std::to_string(rank) + " coordinates expected";
    ParsedOperand base = p;
    base.elements.clear();
    const bool parameter =
        p.symbol && p.symbol->kind == Symbol::Kind::variable && p.symbol->space == Space::param;
    if (std::string why = address(base, parameter ? Space::param : Space::generic, out);
        !why.empty())
      return why;
    for (const ParsedOperand& e : p.elements) {
      out.elements.emplace_back();
      if (std::string why = scalar(Slot{}, Type::s32, e, out.elements.back()); !why.empty())
        return why;
    }
    return "";
  }

  const ParsedInstr& in_;
  Instr& out_;
};

}  // namespace

// Measured with ptxas 13.0 over all pairs: .b matches every type, integers match each other, all
// else must be the very type.
bool compatible(Type declared, Type want, bool wider) {
  const uint32_t have = bits_of(declared), need = bits_of(want);
  if (wider ? have < need : have != need) return false;
  const char d = class_of(declared), w = class_of(want);
  if ((d == 'p') != (w == 'p')) return false;
  const bool integers = (d == 'u' || d == 's') && (w == 'u' || w == 's');
  return d == 'b' || w == 'b' || declared == want || integers;
}

uint32_t vector_length(const Instr& in) {
  if (in.has(Mod::v2)) return 2;
  if (in.has(Mod::v4)) return 4;
  if (in.has(Mod::v8)) return 8;
  if (in.has(Mod::im2col)) return dimensions(in) - 2;
  if (in.has(Mod::im2col_w) || in.has(Mod::im2col_w_128)) return 2;
  if (const uint32_t n = wgmma_shape(in).n) return in.type() == Type::f16 ? n / 4 : n / 2;
  const bool two = in.has(Mod::shape_16x128b) || in.has(Mod::m16n16);
  const uint32_t per = two ? 2 : in.has(Mod::shape_16x256b) ? 4 : 1;
  for (uint32_t i = 0; i < 8; ++i)
    if (in.has(Mod(uint32_t(Mod::x1) + i))) return per << i;
  // disable-output-lane of tcgen05.mma: a bit for each lane of the CTAs.
  if (in.has(Mod::cta_group_1)) return 4;
  if (in.has(Mod::cta_group_2)) return 8;
  return 1;
}
static_assert(uint32_t(Mod::x128) == uint32_t(Mod::x1) + 7);

WgmmaShape wgmma_shape(const Instr& in) {
  constexpr uint32_t first = uint32_t(Mod::m64n8k8), count = 3 * 32;
  for (uint32_t i = 0; i < count; ++i)
    if (in.has(Mod(first + i))) return {8 * (i / 3 + 1), 8u << i % 3};
  return {};
}
static_assert(uint32_t(Mod::m64n256k32) == uint32_t(Mod::m64n8k8) + 3 * 32 - 1);

Space space_of(const Instr& in) {
  if (in.has(Mod::shared) || in.has(Mod::shared_cta)) return Space::shared_cta;
  if (in.has(Mod::shared_cluster)) return Space::shared_cluster;
  if (in.has(Mod::global)) return Space::global;
  if (in.has(Mod::local)) return Space::local;
  if (in.has(Mod::const_)) return Space::constant;
  if (in.has(Mod::param)) return Space::param;
  return Space::generic;
}

OperandError fit_operands(const std::vector<Slot>& slots, const ParsedInstr& in, Instr& out) {
  return Fitter(in, out).run(slots);
}

}  // namespace emu::ptx
