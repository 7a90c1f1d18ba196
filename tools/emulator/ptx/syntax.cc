// SPDX-License-Identifier: MIT
// Operands: names, constants, vectors, addresses, tensor-map addresses, pairs.
#include "tools/emulator/ptx/syntax.h"

#include <bit>

namespace emu::ptx {
namespace {

bool accept_number(Cursor& in, ParsedOperand& op) {
  size_t ahead = 0;
  const bool negative = in.peek().is('-');
  if (negative || in.peek().is('+')) ahead = 1;
  const Token& t = in.peek(ahead);
  switch (t.kind) {
    case Token::Kind::integer: op.kind = ParsedOperand::Kind::integer; break;
    case Token::Kind::real32: op.kind = ParsedOperand::Kind::real32; break;
    case Token::Kind::real64: op.kind = ParsedOperand::Kind::real64; break;
    default: return false;
  }
  op.bits = t.bits;
  if (negative && op.kind == ParsedOperand::Kind::integer) op.bits = 0 - op.bits;
  if (negative && op.kind == ParsedOperand::Kind::real32) op.bits ^= 1ull << 31;
  if (negative && op.kind == ParsedOperand::Kind::real64) op.bits ^= 1ull << 63;
  while (ahead--) in.next();
  in.next();
  return true;
}

// Behind a name: +4, +-4. (PTX has no name-4.)
int64_t parse_offset(Cursor& in) {
  if (!in.accept('+')) return 0;
  const bool negative = in.accept('-');
  const int64_t value = int64_t(in.expect_integer("offset"));
  return negative ? -value : value;
}

void parse_name(Cursor& in, ParsedOperand& op) {
  op.name = in.expect_word("operand");
  if (op.name == "WARP_SZ") {  // PTX ISA 4.4: the one predefined constant
    op.kind = ParsedOperand::Kind::integer;
    op.bits = 32;
  } else if (op.name[0] == '%' && in.peek().kind == Token::Kind::dotted && !in.peek().spaced) {
    op.field = in.next().text;
  }
}

ParsedOperand parse_operand(Cursor& in);

void parse_elements(Cursor& in, std::vector<ParsedOperand>& out) {
  do {
    const Token& first = in.peek();  // looked at before the recursion, so that it ends at once
    if (first.is('{') || first.is('[') || first.is('!'))
      throw PtxError(first.pos, "a vector holds registers, constants and _ only");
    out.push_back(parse_operand(in));
  } while (in.accept(','));
  in.expect('}');
}

void parse_address(Cursor& in, ParsedOperand& op) {
  op.kind = ParsedOperand::Kind::address;
  if (in.peek().kind == Token::Kind::word) {
    op.name = in.next().text;
    op.offset = parse_offset(in);
  } else {
    const bool negative = in.accept('-');
    op.offset = int64_t(in.expect_integer("address"));
    if (negative) op.offset = -op.offset;
  }
  if (in.accept(',')) {
    in.expect('{');
    parse_elements(in, op.elements);
  }
  in.expect(']');
}

ParsedOperand parse_operand(Cursor& in) {
  ParsedOperand op;
  op.pos = in.pos();
  op.negated = in.accept('!');
  if (op.negated && (in.peek().is('{') || in.peek().is('['))) in.fail("a predicate expected");
  if (in.accept('{')) {
    op.kind = ParsedOperand::Kind::vector;
    parse_elements(in, op.elements);
  } else if (in.accept('[')) {
    parse_address(in, op);
  } else if (!accept_number(in, op)) {
    parse_name(in, op);
    if (op.kind == ParsedOperand::Kind::name) op.offset = parse_offset(in);
  }
  return op;
}

std::vector<ParsedOperand> parse_call_operands(Cursor& in) {
  std::vector<ParsedOperand> out;
  in.expect('(');
  if (in.accept(')')) return out;
  do out.push_back(parse_operand(in));
  while (in.accept(','));
  in.expect(')');
  return out;
}

}  // namespace

ParsedCall parse_call(Cursor& in) {
  ParsedCall call;
  call.pos = in.pos();
  in.next();
  in.accept_dot("uni");
  if (in.peek().is('(')) {
    call.results = parse_call_operands(in);
    in.expect(',');
  }
  call.name = in.expect_word("a function's name");
  if (in.accept(',')) {
    if (!in.peek().is('(')) in.fail("indirect calls are not supported: '(' expected");
    call.arguments = parse_call_operands(in);
  }
  if (in.peek().is(',')) in.fail("indirect calls are not supported: ';' expected");
  in.expect(';');
  return call;
}

void parse_instruction(Cursor& in, ParsedInstr& out) {
  const Token& first = in.peek();
  out.pos = first.pos;
  out.words.push_back(in.next());
  while (in.peek().kind == Token::Kind::dotted) out.words.push_back(in.next());
  for (bool piped = false; !in.peek().is(';');) {
    out.ops.push_back(parse_operand(in));
    out.ops.back().piped = piped;
    piped = in.peek().is('|');
    if (!piped && !in.peek().is(',')) break;
    in.next();
    if (in.peek().is(';')) in.fail("operand expected");
  }
  const Token& last = in.peek();
  in.expect(';');
  out.text = {first.text.data(), size_t(last.text.data() - first.text.data())};
}

}  // namespace emu::ptx
