// SPDX-License-Identifier: MIT
// Calls of functions (PTX ISA 5.1.6, 7.1 and 9.7.12.5). A call is expanded when the entry is
// loaded: the callee's statements stand in its place, with registers of their own and a `ret` that
// leads after them. Each parameter of a call is one place in local memory, which has the caller's
// name and the callee's. A parameter in a register is stored there before the call, and the callee
// loads it. Functions
// that recur or whose address is taken are routines (module.h) after the entry's code.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "tools/emulator/ptx/call_graph.h"
#include "tools/emulator/ptx/declarations.h"
#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/symbols.h"
#include "tools/emulator/ptx/syntax.h"

namespace emu::ptx {

// (results) name (parameters), as .func has it.
struct FunctionHead {
  SourcePos pos;
  std::string_view name;
  std::vector<VariableDeclaration> results, parameters;
};
// After `.func`, up to the directives; after `.callprototype`, where a name may be `_`.
FunctionHead parse_head(Cursor& in, bool is_prototype = false);

// Whether the operand is the name of a .param variable and nothing else, as calls require.
bool is_call_variable(const ParsedOperand& p);

class Functions {
 public:
  explicit Functions(const std::vector<Token>& tokens);

  // A prototype or a definition. Throws if it differs from an earlier one.
  void declare(const FunctionHead& head);
  void define(const FunctionHead& head);
  // Returns the head of the function that is called. Throws PtxError if the operands do not fit, or
  // if the function is not declared above the call. `expanded`: the body is parsed before its turn,
  // so a definition anywhere in the module will do.
  FunctionHead check(const ParsedCall& call, bool expanded) const;
  static void fit(const ParsedCall& call, const FunctionHead& head);
  const FunctionHead* declared(std::string_view name) const;
  const CallGraph& graph() const { return graph_; }
  // Functions and kernels defined in the module, which number their addresses.
  const std::map<std::string_view, uint32_t>& numbers() const { return numbers_; }
  // At the head of the definition, or nothing.
  const Cursor* definition(std::string_view name) const;

 private:
  std::map<std::string_view, Cursor> definitions_;  // also of functions that stand further down
  std::map<std::string_view, FunctionHead> declared_;
  std::map<std::string_view, SourcePos> defined_;
  std::map<std::string_view, uint32_t> numbers_;
  CallGraph graph_;
};

// What the expansion of one entry's calls has in common.
struct Expansion {
  const Functions& functions;
  std::vector<std::string_view> callers = {};  // from the entry inwards
  uint32_t calls = 0;                          // so far
  // Addresses of .shared variables of called functions, by the place of the declaration in the
  // text: one for each, however often the function is expanded.
  std::map<const char*, uint32_t> shared = {};
  std::vector<std::string_view> wanted = {};  // routines that the entry calls, in the order of
                                              // Function::routines
  Routine* routine = nullptr;                 // whose body this is
};

}  // namespace emu::ptx
