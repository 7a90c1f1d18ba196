// SPDX-License-Identifier: MIT
// See call_graph.h. The text is not checked here: what is wrong in it is found when it is parsed.
#include "tools/emulator/ptx/call_graph.h"

namespace emu::ptx {
namespace {

void skip_parentheses(Cursor& in) {
  if (!in.accept('(')) return;
  for (uint32_t depth = 1; depth && !in.at_end();) {
    const Token& t = in.next();
    depth += t.is('(');
    depth -= t.is(')');
  }
}

// After `call`: at what it calls.
void skip_to_target(Cursor& in) {
  in.accept_dot("uni");
  if (!in.peek().is('(')) return;
  skip_parentheses(in);
  in.accept(',');
}

bool is_call(const Token& t) { return t.kind == Token::Kind::word && t.text == "call"; }

}  // namespace

CallGraph::CallGraph(const std::vector<Token>& tokens) {
  functions(Cursor(tokens));
  uses(Cursor(tokens));
}

// Names of definitions: after `.func` and the result, before a body.
void CallGraph::functions(Cursor in) {
  while (!in.at_end()) {
    if (!in.next().dot("func")) continue;
    skip_parentheses(in);
    const std::string_view name = in.peek().text;
    while (!in.at_end() && !in.peek().is('{') && !in.peek().is(';')) in.next();
    if (in.peek().is('{')) calls_[name];
  }
}

void CallGraph::uses(Cursor in) {
  std::set<std::string_view>* own = nullptr;  // of the function whose body this is
  for (int depth = 0; !in.at_end();) {
    const Token& t = in.next();
    depth += t.is('{') - t.is('}');
    if (t.dot("func") || t.dot("entry")) {
      skip_parentheses(in);
      const auto found = calls_.find(in.next().text);
      own = t.dot("func") && found != calls_.end() ? &found->second : nullptr;
    } else if (is_call(t)) {
      skip_to_target(in);
      const std::string_view name = in.next().text;
      if (own && depth > 0) own->insert(name);
    } else if (t.kind == Token::Kind::word && calls_.count(t.text)) {
      taken_.insert(t.text);
    }
  }
}

bool CallGraph::recurs(std::string_view name) const {
  std::set<std::string_view> reached;
  std::vector<std::string_view> open{name};
  while (!open.empty()) {
    const auto found = calls_.find(open.back());
    open.pop_back();
    if (found == calls_.end()) continue;
    for (const std::string_view callee : found->second) {
      if (callee == name) return true;
      if (reached.insert(callee).second) open.push_back(callee);
    }
  }
  return false;
}

}  // namespace emu::ptx
