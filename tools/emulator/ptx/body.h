// SPDX-License-Identifier: MIT
// The statements between a function's braces.
#pragma once

#include "tools/emulator/ptx/calls.h"
#include "tools/emulator/ptx/cursor.h"
#include "tools/emulator/ptx/shared_layout.h"
#include "tools/emulator/ptx/symbols.h"
#include "tools/emulator/ptx/target.h"

namespace emu::ptx {

// Skips .loc, .file, .pragma, .section and the like if one stands at the cursor.
bool skip_ignored_directive(Cursor& in);

// The arguments and results of a call, all .param variables.
std::vector<CallSite::Argument> arguments_of(const std::vector<ParsedOperand>& operands);

class BodyParser {
 public:
  BodyParser(Cursor& in, Scopes& scopes, const Target& target, const Binder* binders,
             SharedLayout& shared, Function& function, Expansion& expansion)
      : in_(in),
        scopes_(scopes),
        target_(target),
        binders_(binders),
        shared_(shared),
        function_(function),
        expansion_(expansion) {}

  // From after the opening brace to after the closing one; the scope of the parameters is the
  // caller's. The function's calls are expanded if it is an entry, else only checked.
  void parse();
  // The body of a function that is called.
  void parse_callee();
  // Declares the results and parameters of a function whose body is only checked.
  void declare_head(const FunctionHead& head);

 private:
  void statement();
  void directive();
  void loc();
  struct Position {
    uint32_t file = 0, line = 0, column = 0;
    auto operator<=>(const Position&) const = default;
  };
  Position position(size_t ahead) const;
  uint32_t caller(const Position& at);
  void registers();
  void declare_register(std::string_view name, const RegisterDeclaration& d, SourcePos pos);
  void shared_variables();
  void local_variables();
  void call_variables();
  void declare_call_variable(const VariableDeclaration& v, bool read_only);
  void declare_register(const VariableDeclaration& v);
  std::string_view hidden(std::string_view name);
  std::string_view declare_hidden(std::string_view name, const VariableDeclaration& formal);
  // Appends the ld or st between `value`, a register or a constant, and the .param variable that
  // carries it in a call.
  void move(const char* opcode, const ParsedInstr& guard, const ParsedOperand& variable,
            const ParsedOperand& value, Type type);
  struct Fetched {  // after a call
    ParsedOperand variable, value;
    Type type;
  };
  std::vector<Fetched> hand_over(const ParsedInstr& guard, const FunctionHead& head,
                                 ParsedCall& call);
  void load_parameters(const FunctionHead& head);
  void store_results(const FunctionHead& head);
  uint32_t place_local(const VariableDeclaration& v);
  uint32_t frame() const { return expansion_.routine ? function_.frame : no_register; }
  void instruction();
  void call(const ParsedInstr& guard);
  void prototype(std::string_view name);
  void branch_targets(std::string_view name);
  void branch_by_table(const ParsedInstr& brx);
  FunctionHead check_call(const ParsedCall& call, const Symbol* target) const;
  void make_call(const ParsedInstr& guard, const ParsedCall& call, const Symbol* target);
  uint32_t want(std::string_view name);
  void call_routine(const ParsedInstr& guard, const ParsedCall& call, const Symbol* target);
  void inner(Inner what, Instr& in, SourcePos pos);
  void routines();
  void routine(size_t number);
  void expand(const ParsedCall& call, Cursor definition);
  void call_system(const ParsedInstr& guard, const ParsedCall& call);
  void branch(const ParsedInstr& from, std::string_view label);
  void append(ParsedInstr& parsed);
  void label();
  void close_scope();
  void require_labels() const;
  void finish(SourcePos end);

  Cursor& in_;
  Scopes& scopes_;
  const Target& target_;
  const Binder* const binders_;
  SharedLayout& shared_;
  Function& function_;
  Expansion& expansion_;
  bool is_callee_ = false;
  std::map<std::string_view, FunctionHead> prototypes_;
  std::map<std::string_view, std::vector<std::string_view>> branch_targets_;
  uint32_t depth_ = 1;                    // open braces
  CudaLine cuda_;                         // CUDA line of the next instructions
  std::map<Position, CudaLine> places_;   // the latest CUDA line that a .loc gave for a position
  std::map<CudaLine, uint32_t> callers_;  // lines that inline others, numbered as CudaLine::from
};

}  // namespace emu::ptx
