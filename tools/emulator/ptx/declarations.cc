// SPDX-License-Identifier: MIT
// PTX ISA 5.4. Sizes are kept below 2^40 so that no product overflows.
#include "tools/emulator/ptx/declarations.h"

#include <bit>
#include <cstring>

#include "tools/emulator/ptx/constant.h"
#include "tools/emulator/ptx/notation.h"

namespace emu::ptx {
namespace {

constexpr uint64_t size_limit = 1ull << 40;

uint32_t parse_align(Cursor& in) {
  const uint64_t n = in.expect_integer("alignment");
  if (n == 0 || n > 1u << 20 || !std::has_single_bit(n)) in.fail("an alignment is a power of two");
  return uint32_t(n);
}

// PTX ISA 5.2: the others are types of instructions only.
bool is_fundamental(Type t) {
  if (class_of(t) == 'x') return t == Type::f16x2;
  if (class_of(t) == 'f') return t == Type::f16 || t == Type::f32 || t == Type::f64;
  return t == Type::pred || (bits_of(t) >= 8 && bits_of(t) <= 128);
}

struct Element {
  Type type = Type::none;
  uint32_t align = 0, bytes = 0;
  uint32_t scalar_bytes() const { return bits_of(type) / 8; }
};

// .align 16 .v4 .f32
Element parse_element(Cursor& in) {
  Element e;
  if (in.peek().dot("attribute")) in.fail("variables with .attribute are not supported");
  if (in.accept_dot("align")) e.align = parse_align(in);
  const uint32_t lanes = in.accept_dot("v2") ? 2 : in.accept_dot("v4") ? 4 : 1;
  const SourcePos pos = in.pos();
  e.type = parse_type(in);
  if (e.type == Type::pred) in.fail("a predicate has no memory");
  if (!is_fundamental(e.type))
    throw PtxError(pos, "." + std::string(text_of(e.type)) + " is no variable's type");
  e.bytes = e.scalar_bytes() * lanes;
  if (e.align < e.bytes) e.align = e.align ? e.align : e.bytes;
  return e;
}

void put(std::vector<uint8_t>& out, uint64_t bits, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i) out.push_back(uint8_t(bits >> 8 * i));
}

// A variable's or function's name, generic(name), either with + and an offset after it.
bool parse_address(Cursor& in, const Element& e, VariableDeclaration& v) {
  if (in.peek().kind != Token::Kind::word || starts_constant(in)) return false;
  InitialAddress a{v.init.size(), {}, 0, false, in.pos()};
  a.is_generic = in.peek().text == "generic" && in.peek(1).is('(');
  if (a.is_generic) in.next(), in.next();
  a.name = in.expect_word("a name");
  if (a.is_generic) in.expect(')');
  if (in.accept('+')) {
    const Constant offset = parse_constant(in);
    if (!offset.is_integer()) in.fail("an offset expected");
    a.offset = int64_t(offset.bits);
  }
  if (e.scalar_bytes() != 8 || class_of(e.type) == 'f')
    throw PtxError(a.pos, "an address as an initial value needs 64 bits");
  v.addresses.push_back(a);
  put(v.init, 0, e.scalar_bytes());
  return true;
}

void parse_value(Cursor& in, const Element& e, VariableDeclaration& v) {
  if (parse_address(in, e, v)) return;
  const SourcePos pos = in.pos();
  if (!starts_constant(in)) in.fail("a constant of the variable's type expected");
  const Constant c = parse_constant(in);
  const bool real = class_of(e.type) == 'f';
  uint64_t bits = c.bits;
  const bool fits = c.is_integer()                     ? !real
                    : c.kind == Constant::Kind::real32 ? e.type == Type::f32
                                                       : e.type == Type::f32 || e.type == Type::f64;
  if (!fits) throw PtxError(pos, "a constant of the variable's type expected");
  if (c.kind == Constant::Kind::real64 && e.type == Type::f32)
    bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
  put(v.init, bits, e.scalar_bytes());
}

void parse_initialiser(Cursor& in, const Element& e, VariableDeclaration& v, int depth = 0) {
  constexpr int deepest = 64;  // one level per bound of an array; hostile text must not recurse
  if (depth > deepest) in.fail("initial values nested too deeply");
  if (!in.accept('{')) return parse_value(in, e, v);
  if (in.accept('}')) return;
  do parse_initialiser(in, e, v, depth + 1);
  while (in.accept(','));
  in.expect('}');
}

void parse_declarator(Cursor& in, const Element& e, VariableDeclaration& v) {
  v.pos = in.pos();
  v.name = in.expect_word("a variable's name");
  v.align = e.align;
  v.bytes = e.bytes;
  v.scalar = e.bytes == e.scalar_bytes() ? e.type : Type::none;
  while (in.accept('[')) {
    v.scalar = Type::none;
    v.element_bytes = e.scalar_bytes();
    if (in.accept(']')) {
      if (v.open) in.fail("only one bound may be open");
      v.open = true;
      continue;
    }
    const uint64_t n = in.expect_integer("array bound");
    if (v.bytes && n > size_limit / v.bytes) in.fail("array too large");
    v.bytes *= n;
    in.expect(']');
  }
  if (in.accept('=')) parse_initialiser(in, e, v);
  if (v.open) v.bytes = v.init.size();
  if (v.init.size() > v.bytes) in.fail("more initial values than the variable has room for");
}

}  // namespace

Type parse_type(Cursor& in) {
  const Token& t = in.peek();
  const Suffix s = t.kind == Token::Kind::dotted ? find_suffix(t.text) : Suffix{};
  if (s.kind != Suffix::Kind::type) in.fail("a type expected");
  in.next();
  return s.type;
}

RegisterDeclaration parse_registers(Cursor& in) {
  RegisterDeclaration out;
  out.lanes = in.accept_dot("v2") ? 2 : in.accept_dot("v4") ? 4 : 1;
  const SourcePos pos = in.pos();
  out.type = parse_type(in);
  if (!is_fundamental(out.type))
    throw PtxError(pos, "." + std::string(text_of(out.type)) + " is no register type");
  constexpr uint32_t widest = 128;
  if (out.lanes > 1 && (out.type == Type::pred || out.lanes * bits_of(out.type) > widest))
    throw PtxError(pos, "a vector of registers has at most 128 bits and no predicates");
  do {
    RegisterName n;
    n.pos = in.pos();
    n.name = in.expect_word("a register's name");
    if (in.accept('<')) {
      n.is_range = true;
      const uint64_t count = in.expect_integer("number of registers");
      if (count > 1u << 20) in.fail("too many registers");
      n.count = uint32_t(count);
      in.expect('>');
    }
    out.names.push_back(n);
  } while (in.accept(','));
  in.expect(';');
  return out;
}

std::vector<VariableDeclaration> parse_variables(Cursor& in) {
  const Element e = parse_element(in);
  std::vector<VariableDeclaration> out;
  do parse_declarator(in, e, out.emplace_back());
  while (in.accept(','));
  in.expect(';');
  return out;
}

// .param .u64 .ptr .global .align 16 p: what p points to is a promise that we do not check here.
VariableDeclaration parse_parameter(Cursor& in) {
  Element e = parse_element(in);
  if (e.type == Type::f16x2 || e.bytes != e.scalar_bytes())
    in.fail("a parameter is neither packed nor a vector");
  if (in.accept_dot("ptr")) {
    for (const char* space : {"global", "const", "local", "shared"}) in.accept_dot(space);
    if (in.accept_dot("align")) parse_align(in);
  }
  VariableDeclaration v;
  parse_declarator(in, e, v);
  if (v.open || !v.init.empty()) throw PtxError(v.pos, "a parameter has a size and no value");
  return v;
}

VariableDeclaration parse_register_parameter(Cursor& in) {
  Element e = parse_element(in);
  VariableDeclaration v;
  parse_declarator(in, e, v);
  if (v.scalar == Type::none || v.scalar == Type::f16x2 || v.scalar == Type::b128 ||
      !v.init.empty())
    throw PtxError(v.pos,
                   "a parameter in a register is neither an array, a vector, packed nor .b128");
  v.is_register = true;
  return v;
}

}  // namespace emu::ptx
