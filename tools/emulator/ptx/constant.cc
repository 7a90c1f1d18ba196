// SPDX-License-Identifier: MIT
// See constant.h. C's operators and precedence; the operands of one are both integers or both
// doubles. Where the manual's table leaves a choice, or ptxas 13.0 makes another one, it is as
// ptxas does.
#include "tools/emulator/ptx/constant.h"

#include <bit>
#include <type_traits>

namespace emu::ptx {
namespace {

using Kind = Constant::Kind;

constexpr int deepest = 64;  // hostile text must not exhaust the stack

double real(const Constant& c) { return std::bit_cast<double>(c.bits); }
Constant of(double v) { return {Kind::real64, std::bit_cast<uint64_t>(v)}; }
Constant of(bool v) { return {Kind::signed_integer, v}; }

struct Operator {
  std::string_view text;
  int binds;  // the more, the tighter
};
constexpr Operator operators[] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                                  {"!=", 6}, {"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7}, {"<", 7},
                                  {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

bool stands(const Cursor& in, std::string_view text) {
  const Token& t = in.peek();
  if (text == "%") return t.kind == Token::Kind::word && t.text == text;
  if (!t.is(text[0])) return false;
  return text.size() == 1 || (in.peek(1).is(text[1]) && !in.peek(1).spaced);
}

const Operator* operator_at(const Cursor& in) {
  for (const Operator& o : operators)
    if (stands(in, o.text)) return &o;
  return nullptr;
}

class Parser {
 public:
  explicit Parser(Cursor& in) : in_(in) {}

  // From the loosest operator on.
  Constant ternary(int depth) {
    const Constant condition = binary(1, depth);
    if (!in_.peek().is('?')) return condition;
    const SourcePos pos = in_.pos();
    in_.next();
    integer(condition, pos);
    const Constant yes = ternary(depth + 1);
    in_.expect(':');
    const Constant no = ternary(depth + 1);
    match(yes, no, pos);
    return condition.bits ? yes : no;  // with the type that it has
  }

 private:
  Constant binary(int least, int depth) {
    Constant left = unary(depth + 1);
    for (const Operator* o; (o = operator_at(in_)) && o->binds >= least;) {
      const SourcePos pos = in_.pos();
      for (size_t i = 0; i < o->text.size(); ++i) in_.next();
      left = apply(o->text, left, binary(o->binds + 1, depth + 1), pos);
    }
    return left;
  }

  Constant unary(int depth) {
    if (depth > deepest) in_.fail("a constant expression nested too deeply");
    const SourcePos pos = in_.pos();
    if (in_.accept('-')) return negative(unary(depth + 1), pos);
    if (in_.accept('+')) return number(unary(depth + 1), pos);
    if (in_.accept('~')) {
      const Constant c = integer(unary(depth + 1), pos);
      return {Kind::unsigned_integer, ~c.bits};
    }
    if (in_.accept('!')) return of(integer(unary(depth + 1), pos).bits == 0);
    if (in_.peek().is('(')) return parentheses(depth);
    return literal();
  }

  // (1 + 2), (.s64) -1
  Constant parentheses(int depth) {
    const SourcePos pos = in_.pos();
    in_.next();
    if (in_.peek().dot("s64") || in_.peek().dot("u64")) {
      const Kind to = in_.next().text == "s64" ? Kind::signed_integer : Kind::unsigned_integer;
      in_.expect(')');
      Constant c = integer(unary(depth + 1), pos);
      c.kind = to;
      return c;
    }
    const Constant c = ternary(depth + 1);
    in_.expect(')');
    return c;
  }

  Constant literal() {
    const Token& t = in_.peek();
    if (t.kind == Token::Kind::word && t.text == "WARP_SZ")  // PTX ISA 4.4: the one by a name
      return in_.next(), Constant{Kind::signed_integer, 32};
    Constant c{Kind::signed_integer, t.bits};
    switch (t.kind) {
      case Token::Kind::integer:
        if (t.text.back() == 'U' || int64_t(t.bits) < 0) c.kind = Kind::unsigned_integer;
        break;
      case Token::Kind::real32: c.kind = Kind::real32; break;
      case Token::Kind::real64: c.kind = Kind::real64; break;
      default: in_.fail("a constant expected");
    }
    in_.next();
    return c;
  }

  static Constant integer(const Constant& c, SourcePos pos) {
    if (!c.is_integer()) throw PtxError(pos, "an integer expected in the constant expression");
    return c;
  }
  static Constant number(const Constant& c, SourcePos pos) {
    if (c.kind == Kind::real32) throw PtxError(pos, "a 0f constant stands alone");
    return c;
  }
  static Constant negative(const Constant& c, SourcePos pos) {
    number(c, pos);
    return c.kind == Kind::real64 ? of(-real(c)) : Constant{c.kind, 0 - c.bits};
  }
  static void match(const Constant& a, const Constant& b, SourcePos pos) {
    number(a, pos);
    number(b, pos);
    if (a.is_integer() != b.is_integer())
      throw PtxError(pos, "a constant expression of integers and doubles");
  }
  static bool either_unsigned(const Constant& a, const Constant& b) {
    return a.is_integer() && (a.kind == Kind::unsigned_integer || b.kind == Kind::unsigned_integer);
  }

  static Constant apply(std::string_view o, const Constant& a, const Constant& b, SourcePos pos) {
    match(a, b, pos);
    if (!a.is_integer()) return of_reals(o, real(a), real(b), pos);
    if (o == "<<" || o == ">>") return shifted(o, a, b);
    if (either_unsigned(a, b) || o == "%") return of_integers<uint64_t>(o, a.bits, b.bits, pos);
    return of_integers<int64_t>(o, int64_t(a.bits), int64_t(b.bits), pos);
  }

  // Only six bits of the number of places count.
  static Constant shifted(std::string_view o, const Constant& a, const Constant& b) {
    const uint64_t places = b.bits & 63;
    if (o == "<<") return {a.kind, a.bits << places};
    if (a.kind == Kind::unsigned_integer) return {a.kind, a.bits >> places};
    return {a.kind, uint64_t(int64_t(a.bits) >> places)};
  }

  template <class T>
  static Constant compared(std::string_view o, T a, T b, bool* done) {
    *done = true;
    if (o == "<") return of(a < b);
    if (o == ">") return of(a > b);
    if (o == "<=") return of(a <= b);
    if (o == ">=") return of(a >= b);
    if (o == "==") return of(a == b);
    if (o == "!=") return of(a != b);
    *done = false;
    return {};
  }

  static Constant of_reals(std::string_view o, double a, double b, SourcePos pos) {
    bool done = false;
    const Constant c = compared(o, a, b, &done);
    if (done) return c;
    if (o == "+") return of(a + b);
    if (o == "-") return of(a - b);
    if (o == "*") return of(a * b);
    if (o == "/") return of(a / b);
    throw PtxError(pos, "an integer expected in the constant expression");
  }

  template <class T>
  static Constant of_integers(std::string_view o, T a, T b, SourcePos pos) {
    bool done = false;
    const Constant c = compared(o, a, b, &done);
    if (done) return c;
    if (o == "&&") return of(a && b);
    if (o == "||") return of(a || b);
    const Kind kind = std::is_signed_v<T> ? Kind::signed_integer : Kind::unsigned_integer;
    const uint64_t x = uint64_t(a), y = uint64_t(b);
    if (o == "+") return {kind, x + y};
    if (o == "-") return {kind, x - y};
    if (o == "*") return {kind, x * y};
    if (o == "&") return {kind, x & y};
    if (o == "|") return {kind, x | y};
    if (o == "^") return {kind, x ^ y};
    if (b == 0) throw PtxError(pos, "a constant expression divides by zero");
    if (std::is_signed_v<T> && y == ~0ull && x == 0 - x && x)
      throw PtxError(pos, "a constant expression that overflows");
    return {kind, uint64_t(o == "/" ? a / b : a % b)};
  }

  Cursor& in_;
};

}  // namespace

bool starts_constant(const Cursor& in) {
  const Token& first = in.peek();
  const Token& t = first.is('!') ? in.peek(1) : first;  // !1, but not !p
  switch (t.kind) {
    case Token::Kind::integer:
    case Token::Kind::real32:
    case Token::Kind::real64: return true;
    case Token::Kind::word: return t.text == "WARP_SZ";
    case Token::Kind::mark:
      return std::string_view("-+~!(").find(t.text[0]) != std::string_view::npos;
    default: return false;
  }
}

Constant parse_constant(Cursor& in) { return Parser(in).ternary(0); }

}  // namespace emu::ptx
