// SPDX-License-Identifier: MIT
// Operands: names, constants, vectors, addresses, tensor-map addresses, pairs.
#include "tools/emulator/ptx/syntax.h"

#include "tools/emulator/ptx/constant.h"

namespace emu::ptx {
namespace {

bool accept_number(Cursor& in, ParsedOperand& op) {
  if (!starts_constant(in)) return false;
  const Constant c = parse_constant(in);
  op.kind = c.is_integer()                     ? ParsedOperand::Kind::integer
            : c.kind == Constant::Kind::real32 ? ParsedOperand::Kind::real32
                                               : ParsedOperand::Kind::real64;
  op.bits = c.bits;
  return true;
}

int64_t parse_integer(Cursor& in, const char* what) {
  const SourcePos pos = in.pos();
  if (!starts_constant(in)) in.fail(std::string(what) + " expected");
  const Constant c = parse_constant(in);
  if (!c.is_integer()) throw PtxError(pos, std::string(what) + " expected");
  return int64_t(c.bits);
}

// After a name: +4, +-4, +4*2. (PTX has no name-4.)
int64_t parse_offset(Cursor& in) { return in.accept('+') ? parse_integer(in, "offset") : 0; }

// An element of an array (PTX ISA 6.4.2). Its index is a constant here; nobody is known to write a
// register.
void parse_index(Cursor& in, ParsedOperand& op) {
  if (!in.accept('[')) return;
  op.indexed = true;
  if (in.peek().kind == Token::Kind::word && !starts_constant(in))
    in.fail("an index that is a register is not supported: a constant expected");
  op.index = parse_integer(in, "index");
  in.expect(']');
}

void parse_name(Cursor& in, ParsedOperand& op) {
  op.name = in.expect_word("operand");
  if (in.peek().kind == Token::Kind::dotted && !in.peek().spaced) op.field = in.next().text;
  parse_index(in, op);
}

ParsedOperand parse_operand(Cursor& in);

void parse_elements(Cursor& in, std::vector<ParsedOperand>& out) {
  do {
    const Token& first = in.peek();  // looked at before the recursion, so that it ends at once
    if (first.is('{') || first.is('[') || (first.is('!') && !starts_constant(in)))
      throw PtxError(first.pos, "a vector holds registers, constants and _ only");
    out.push_back(parse_operand(in));
    if (out.back().indexed) throw PtxError(first.pos, "a vector holds no elements of arrays");
  } while (in.accept(','));
  in.expect('}');
}

void parse_address(Cursor& in, ParsedOperand& op) {
  op.kind = ParsedOperand::Kind::address;
  if (in.peek().kind == Token::Kind::word) {
    op.name = in.next().text;
    op.offset = parse_offset(in);
  } else {
    op.offset = parse_integer(in, "address");
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
  op.negated = !starts_constant(in) && in.accept('!');
  if (op.negated && (in.peek().is('{') || in.peek().is('['))) in.fail("a predicate expected");
  if (in.accept('{')) {
    op.kind = ParsedOperand::Kind::vector;
    parse_elements(in, op.elements);
  } else if (in.accept('[')) {
    parse_address(in, op);
  } else if (!accept_number(in, op)) {
    parse_name(in, op);
    if (!op.indexed) op.offset = parse_offset(in);
  }
  return op;
}

std::vector<ParsedOperand> parse_call_operands(Cursor& in) {
  std::vector<ParsedOperand> out;
  in.expect('(');
  if (in.accept(')')) return out;
  do {
    out.push_back(parse_operand(in));
    if (out.back().indexed)
      throw PtxError(out.back().pos, "a call is handed no element of an array");
  } while (in.accept(','));
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
  bool more = in.accept(',');
  if (more && in.peek().is('(')) {
    call.arguments = parse_call_operands(in);
    more = in.accept(',');
  }
  if (more) call.prototype = in.expect_word("the prototype of an indirect call");
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
