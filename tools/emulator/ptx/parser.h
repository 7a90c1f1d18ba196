// SPDX-License-Identifier: MIT
// A module's top level: header, variables, functions.
#pragma once

#include "tools/emulator/ptx/body.h"
#include "tools/emulator/ptx/plain_body.h"

namespace emu::ptx {

class ModuleParser {
 public:
  ModuleParser(const std::vector<Token>& tokens, int compute_capability, const Binder* binders,
               Module& module)
      : tokens_(tokens),
        in_(tokens),
        compute_capability_(compute_capability),
        binders_(binders),
        module_(module),
        functions_(tokens),
        plain_(target_, binders) {}
  void parse();
  // A kernel whose body parse() only accepted; nothing if it was read.
  void read(Function& f);
  uint64_t most_shared(const Function& f) const;  // as Module::most_shared

 private:
  struct Linkage {
    bool is_extern = false, is_common = false;
  };
  void header();
  void version();
  void target();
  void target_option();
  void statement();
  bool file();
  Linkage linkage();
  void entry();
  void function(Linkage linkage);
  void body(std::unique_ptr<Function> f, const FunctionHead* head);
  bool postpone(Function& f);
  uint64_t shared_bytes() const;
  void parameters(Function& f);
  void performance_directives(Function& f);
  bool bound(Function& f);
  void dimensions(uint32_t (&out)[3]);
  void threads(uint32_t (&out)[3]);
  void shared_variables(Linkage linkage);
  void variables(Space space, Linkage linkage);
  bool declared_elsewhere(VariableDeclaration& v, Space space, Linkage linkage);
  std::vector<Variable::Address> initial_addresses(VariableDeclaration& v) const;

  const std::vector<Token>& tokens_;
  Cursor in_;
  const int compute_capability_;
  const Binder* const binders_;
  Module& module_;
  Target target_;
  Scopes scopes_;
  Functions functions_;
  SharedLayout shared_;  // of the module; each function gets a copy
  uint64_t constant_bytes_ = 0;
  struct Extern {
    size_t index;  // in Module::variables
    bool is_defined;
  };
  std::map<std::string_view, Extern> externs_;  // .global and .const variables by name
  struct Postponed {
    Token body;
    size_t shared;  // variables of the module above it
    uint64_t most_shared;
  };
  std::map<const Function*, Postponed> postponed_;
  PlainBodies plain_;
};

}  // namespace emu::ptx
