// SPDX-License-Identifier: MIT
// PTX ISA 4.1, 5 and 11.
#include "tools/emulator/ptx/parser.h"

#include <cstring>

#include "tools/emulator/ptx/declarations.h"
#include "tools/emulator/ptx/words.h"

namespace emu::ptx {
namespace {

uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

}  // namespace

void ModuleParser::parse() {
  header();
  for (const auto& [name, number] : functions_.numbers()) scopes_.declare_function(name, number);
  while (!in_.at_end()) statement();
}

void ModuleParser::header() {
  while (file() || skip_ignored_directive(in_)) {
  }
  version();
  target();
  check_words(in_, target_);
  if (in_.accept_dot("address_size") && in_.expect_integer("64") != 64)
    in_.fail("only .address_size 64 is supported");
}

void ModuleParser::version() {
  if (!in_.accept_dot("version")) in_.fail("'.version' expected");
  // 9.0 reads as one number, like every version.
  if (in_.peek().kind != Token::Kind::real64) in_.fail("a version such as 9.0 expected");
  const std::string text(in_.peek().text);
  if (!find_version(text, module_.version))
    throw PtxError(in_.pos(), "PTX ISA version " + text + " is not supported, 6.0 to 6.5, " +
                                  "7.0 to 7.8, 8.0 to 8.8 and 9.0 to 9.5 are");
  in_.next();
}

void ModuleParser::target() {
  if (!in_.accept_dot("target")) in_.fail("'.target' expected");
  const SourcePos pos = in_.pos();
  module_.target = in_.expect_word("a target");
  if (!find_target(module_.target, target_))
    throw PtxError(pos, "unknown target '" + module_.target + "'");
  target_.version = module_.version;
  while (in_.accept(',')) target_option();
  if (!target_.runs_on(compute_capability_))
    throw PtxError(pos, "target " + module_.target +
                            " does not run on a device of compute capability " +
                            dotted(compute_capability_));
  if (target_.version < target_.first)
    throw PtxError(
        pos, "target " + module_.target + " needs .version " + dotted(target_.first) + " or later");
}

// If .target says debug, ptxas wants debug information: a section .debug_info.
void ModuleParser::target_option() {
  const SourcePos pos = in_.pos();
  const std::string_view option = in_.expect_word("a target option");
  if (option == "texmode_unified" || option == "texmode_independent") return;
  if (option != "debug") throw PtxError(pos, "unknown target option '" + std::string(option) + "'");
  for (Cursor at = in_; !at.at_end(); at.next())
    if (at.peek().dot("section") && at.peek(1).dot("debug_info")) return;
  throw PtxError(pos, "a module of .target debug has no .section .debug_info");
}

ModuleParser::Linkage ModuleParser::linkage() {
  Linkage l;
  l.is_extern = in_.accept_dot("extern");
  l.is_common = !l.is_extern && in_.accept_dot("common");
  if (!l.is_extern && !l.is_common && !in_.accept_dot("visible")) in_.accept_dot("weak");
  return l;
}

// .file 1 "gemm.cu", and a date and a size that are not needed.
bool ModuleParser::file() {
  if (!in_.peek().dot("file") || in_.peek(1).kind != Token::Kind::integer ||
      in_.peek(2).kind != Token::Kind::string)
    return false;
  module_.files[in_.peek(1).bits] = in_.peek(2).text;
  return skip_ignored_directive(in_);
}

void ModuleParser::statement() {
  if (file()) return;
  if (in_.peek().dot("pragma") && in_.peek(1).text != "nounroll")
    in_.fail("a module has no pragma but nounroll");
  if (skip_ignored_directive(in_)) return;
  const Linkage l = linkage();
  if (l.is_common && !in_.peek().dot("global")) in_.fail("'.common' is for .global variables");
  if (l.is_extern && in_.peek().dot("entry")) in_.fail("a kernel is not '.extern'");
  if (in_.accept_dot("entry")) return entry();
  if (in_.accept_dot("func")) return function(l);
  if (in_.accept_dot("shared")) return shared_variables(l);
  if (in_.accept_dot("global")) return variables(Space::global, l);
  if (in_.accept_dot("const")) return variables(Space::constant, l);
  in_.fail("a variable or a function expected");
}

void ModuleParser::shared_variables(Linkage linkage) {
  for (const VariableDeclaration& v : parse_variables(in_)) {
    if (v.open != linkage.is_extern || !v.init.empty())
      throw PtxError(v.pos, "a shared variable has a size and no value, an .extern one no size");
    const uint32_t index = uint32_t(shared_.variables.size());
    scopes_.declare(v.name, variable_symbol(Space::shared_cta, index, v.element_bytes), v.pos);
    shared_.variables.push_back({v.name, v.align, v.bytes, linkage.is_extern});
  }
}

void ModuleParser::variables(Space space, Linkage linkage) {
  for (VariableDeclaration& v : parse_variables(in_)) {
    if (linkage.is_extern && (v.open || !v.init.empty()))
      throw PtxError(v.pos,
                     "'" + std::string(v.name) +
                         "' is .extern, of no size or with values: " + "modules are not linked");
    if (declared_elsewhere(v, space, linkage)) continue;
    if (v.open && v.init.empty())
      throw PtxError(v.pos, "'" + std::string(v.name) + "' has neither a size nor values");
    std::vector<Variable::Address> addresses = initial_addresses(v);
    const uint32_t index = uint32_t(module_.variables.size());
    scopes_.declare(v.name, variable_symbol(space, index, v.element_bytes), v.pos);
    module_.variables.push_back(
        {std::string(v.name), space, v.align, v.bytes, std::move(v.init), std::move(addresses)});
    if (space != Space::constant) continue;
    module_.constants.push_back(index);
    constexpr uint64_t most = 65536;
    constant_bytes_ = align_up(constant_bytes_, v.align) + v.bytes;
    if (constant_bytes_ > most) throw PtxError(v.pos, "more than 64 KB of .const variables");
  }
}

// Unless the module defines it as well, an .extern variable is allocated by the driver and filled
// with zeros, as ptxas does for a whole program. True: `v` is known, and its values are noted.
bool ModuleParser::declared_elsewhere(VariableDeclaration& v, Space space, Linkage linkage) {
  const auto [known, fresh] = externs_.emplace(v.name, Extern{module_.variables.size(), false});
  Extern& e = known->second;
  // A second definition: declaring it in its scope throws the error.
  if (!fresh && e.is_defined && !linkage.is_extern) return false;
  e.is_defined |= !linkage.is_extern;
  if (fresh) return false;
  Variable& earlier = module_.variables[e.index];
  if (earlier.space != space || earlier.bytes != v.bytes || earlier.align != v.align)
    throw PtxError(v.pos, "'" + std::string(v.name) + "' is declared otherwise above");
  if (linkage.is_extern) return true;
  earlier.addresses = initial_addresses(v);
  earlier.init = std::move(v.init);
  return true;
}

// Writes the addresses of functions into v.init. Returns the addresses of variables, which are
// known only when the module has memory.
std::vector<Variable::Address> ModuleParser::initial_addresses(VariableDeclaration& v) const {
  std::vector<Variable::Address> open;
  for (const InitialAddress& a : v.addresses) {
    const std::string name = "'" + std::string(a.name) + "'";
    const Symbol* const s = scopes_.find(a.name);
    if (!s) throw PtxError(a.pos, "unknown name " + name);
    if (s->kind == Symbol::Kind::function) {
      if (a.offset || a.is_generic)
        throw PtxError(a.pos, "the address of function " + name + " stands alone");
      const uint64_t address = first_function_address + function_spacing * s->index;
      memcpy(&v.init[a.at], &address, sizeof address);
    } else if (s->space == Space::global || s->space == Space::constant) {
      open.push_back({a.at, s->index, a.offset});
    } else {
      throw PtxError(a.pos, name + " has an address of its own in each CTA: no initial value");
    }
  }
  return open;
}

// .entry name (params) directives { body }, or a semicolon instead of the body.
void ModuleParser::entry() {
  auto f = std::make_unique<Function>();
  f->is_entry = true;
  scopes_.push();
  const SourcePos pos = in_.pos();
  const std::string_view name = in_.expect_word("a function's name");  // lasts as the text does
  check_name(name, pos);
  scopes_.see_function(name);
  f->name = name;
  if (in_.peek().is('(')) parameters(*f);
  performance_directives(*f);
  if (in_.accept(';')) return scopes_.pop([](uint32_t, uint32_t) {});
  if (module_.entry(f->name)) throw PtxError(pos, "entry '" + f->name + "' is defined twice");
  body(std::move(f), nullptr);
}

// .func (results) name (params), likewise. Only an .extern one may be declared and never defined,
// if nothing calls it.
void ModuleParser::function(Linkage linkage) {
  const FunctionHead head = parse_head(in_);
  auto f = std::make_unique<Function>();
  f->name = head.name;
  scopes_.see_function(head.name);
  while (in_.accept_dot("noreturn") || skip_ignored_directive(in_)) {
  }
  if (in_.accept(';')) {
    if (!linkage.is_extern && !functions_.definition(head.name))
      throw PtxError(head.pos, "function '" + std::string(head.name) +
                                   "' is declared and not defined: modules are not linked");
    return functions_.declare(head);
  }
  functions_.define(head);
  scopes_.push();
  body(std::move(f), &head);
}

void ModuleParser::body(std::unique_ptr<Function> f, const FunctionHead* head) {
  in_.expect('{');
  if (in_.peek().kind == Token::Kind::body && postpone(*f)) {
    scopes_.pop([](uint32_t, uint32_t) {});
    module_.functions.push_back(std::move(f));
    return;
  }
  SharedLayout shared = shared_;
  Expansion expansion{functions_};
  BodyParser parser(in_, scopes_, target_, binders_, shared, *f, expansion);
  if (head) parser.declare_head(*head);
  parser.parse();
  scopes_.pop([](uint32_t, uint32_t) {});
  module_.functions.push_back(std::move(f));
}

// The check is of all that could be wrong, so that reading it later cannot fail.
bool ModuleParser::postpone(Function& f) {
  const Token& body = in_.peek();
  if (!plain_.accepts(body.text, scopes_, shared_bytes())) in_.fail("a body that has to be read");
  postponed_.emplace(&f, Postponed{body, shared_.variables.size(), plain_.shared_at_most()});
  in_.next();
  in_.expect('}');
  return true;
}

uint64_t ModuleParser::shared_bytes() const {
  uint64_t all = 0;
  for (const SharedLayout::Variable& v : shared_.variables) all += v.bytes + v.align;
  return all;
}

uint64_t ModuleParser::most_shared(const Function& f) const {
  const auto found = postponed_.find(&f);
  return found == postponed_.end() ? f.static_shared_bytes : found->second.most_shared;
}

void ModuleParser::read(Function& f) {
  const auto found = postponed_.find(&f);
  if (found == postponed_.end()) return;
  const Postponed later = found->second;
  postponed_.erase(found);
  const std::string_view text(later.body.text.data(), later.body.text.size() + 1);  // and }
  const std::vector<Token> tokens = lex(text, later.body.pos);
  Cursor in(tokens);
  scopes_.push();
  for (const Param& p : f.params)
    if (p.name != "_")
      scopes_.declare(p.name, variable_symbol(Space::param, p.offset, p.element_bytes), {});
  SharedLayout shared;
  shared.variables.assign(shared_.variables.begin(),
                          shared_.variables.begin() + long(later.shared));
  Expansion expansion{functions_};
  BodyParser(in, scopes_, target_, binders_, shared, f, expansion).parse();
  scopes_.pop([](uint32_t, uint32_t) {});
}

void ModuleParser::parameters(Function& f) {
  in_.expect('(');
  if (in_.accept(')')) return;
  do {
    if (in_.peek().dot("reg")) in_.fail("parameters in registers are not supported");
    if (!in_.accept_dot("param")) in_.fail("'.param' expected");
    const VariableDeclaration v = parse_parameter(in_);
    const uint32_t offset = uint32_t(align_up(f.param_bytes, v.align));
    if (offset + v.bytes > 32764) throw PtxError(v.pos, "more than 32764 bytes of parameters");
    if (offset + v.bytes > 4352 && target_.version < 81)
      throw PtxError(v.pos,
                     target_.needs_version("a kernel with more than 4352 bytes of parameters", 81));
    if (v.name != "_")
      scopes_.declare(v.name, variable_symbol(Space::param, offset, v.element_bytes), v.pos);
    f.params.push_back({std::string(v.name), offset, uint32_t(v.bytes), v.align, v.element_bytes});
    f.param_bytes = offset + uint32_t(v.bytes);
  } while (in_.accept(','));
  in_.expect(')');
}

void ModuleParser::dimensions(uint32_t (&out)[3]) {
  out[0] = in_.expect_number();
  out[1] = out[2] = 1;
  for (int i = 1; i < 3 && in_.accept(','); ++i) out[i] = in_.expect_number();
}

void ModuleParser::threads(uint32_t (&out)[3]) {
  dimensions(out);
  if (!out[0] || !out[1] || !out[2]) in_.fail("a block without threads");
}

// .minnctapersm and .maxnreg guide the compiler, .maxclusterrank bounds what a launch may ask for.
bool ModuleParser::bound(Function& f) {
  const bool rank = in_.peek().dot("maxclusterrank");
  if (!rank && !in_.peek().dot("minnctapersm") && !in_.peek().dot("maxnreg")) return false;
  const std::string name(in_.next().text);
  f.bounds_clusters |= rank;
  const uint32_t bound = in_.expect_number();
  if (bound == 0 && !rank) in_.fail("'." + name + " 0': at least one expected");
  if (!rank) (name == "maxnreg" ? f.maxnreg : f.minnctapersm) = bound;
  return true;
}

void ModuleParser::performance_directives(Function& f) {
  const SourcePos pos = in_.pos();
  for (;;) {
    if (skip_ignored_directive(in_) || bound(f)) continue;
    if (in_.accept_dot("maxntid"))
      threads(f.maxntid);
    else if (in_.accept_dot("reqntid"))
      threads(f.reqntid);
    else if (in_.accept_dot("reqnctapercluster"))
      dimensions(f.reqnctapercluster);
    else if (in_.accept_dot("explicitcluster"))
      f.explicit_cluster = true;
    else if (in_.accept_dot("blocksareclusters"))
      f.counts_clusters = true;
    else
      break;
  }
  if (f.maxntid[0] && f.reqntid[0]) throw PtxError(pos, ".maxntid does not go with .reqntid");
  if (f.bounds_clusters && f.reqnctapercluster[0])
    throw PtxError(pos, ".maxclusterrank does not go with .reqnctapercluster");
  if (f.counts_clusters && !(f.reqntid[0] && f.reqnctapercluster[0]))
    throw PtxError(pos, "'.blocksareclusters' needs .reqntid and .reqnctapercluster");
}

}  // namespace emu::ptx
