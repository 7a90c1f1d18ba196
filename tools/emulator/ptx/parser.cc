// SPDX-License-Identifier: MIT
// PTX ISA 4.1, 5 and 11.
#include "parser.h"

#include "declarations.h"

namespace emu::ptx {
namespace {

uint64_t align_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

}  // namespace

void ModuleParser::parse() {
  header();
  while (!in_.at_end()) statement();
}

void ModuleParser::header() {
  while (file() || skip_ignored_directive(in_)) {
  }
  version();
  target();
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
                                  "7.0 to 7.8, 8.0 to 8.8 and 9.0 are");
  in_.next();
}

void ModuleParser::target() {
  if (!in_.accept_dot("target")) in_.fail("'.target' expected");
  const SourcePos pos = in_.pos();
  module_.target = in_.expect_word("a target");
  if (!find_target(module_.target, target_))
    throw PtxError(pos, "unknown target '" + module_.target + "'");
  target_.version = module_.version;
  while (in_.accept(',')) in_.expect_word("a target option");
  if (!target_.runs_on(compute_capability_))
    throw PtxError(pos, "target " + module_.target +
                            " does not run on a device of compute capability " +
                            dotted(compute_capability_));
  if (target_.version < target_.first)
    throw PtxError(
        pos, "target " + module_.target + " needs .version " + dotted(target_.first) + " or later");
}

ModuleParser::Linkage ModuleParser::linkage() {
  Linkage l;
  for (;;) {
    if (in_.accept_dot("extern"))
      l.is_extern = true;
    else if (!in_.accept_dot("visible") && !in_.accept_dot("weak") && !in_.accept_dot("common"))
      return l;
  }
}

// .file 1 "gemm.cu", and a date and a size that nobody needs.
bool ModuleParser::file() {
  if (!in_.peek().dot("file") || in_.peek(1).kind != Token::Kind::integer ||
      in_.peek(2).kind != Token::Kind::string)
    return false;
  module_.files[in_.peek(1).bits] = in_.peek(2).text;
  return skip_ignored_directive(in_);
}

void ModuleParser::statement() {
  if (file()) return;
  if (skip_ignored_directive(in_)) return;
  const Linkage l = linkage();
  if (in_.accept_dot("entry")) return entry();
  if (in_.accept_dot("func")) return function();
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
    scopes_.declare(v.name, {Symbol::Kind::variable, Type::none, Space::shared_cta, index}, v.pos);
    shared_.variables.push_back({v.name, v.align, v.bytes, linkage.is_extern});
  }
}

void ModuleParser::variables(Space space, Linkage linkage) {
  for (VariableDeclaration& v : parse_variables(in_)) {
    if (linkage.is_extern)
      throw PtxError(v.pos, "'" + std::string(v.name) + "' is .extern: modules are not linked");
    const uint32_t index = uint32_t(module_.variables.size());
    scopes_.declare(v.name, {Symbol::Kind::variable, Type::none, space, index}, v.pos);
    module_.variables.push_back({std::string(v.name), space, v.align, v.bytes, std::move(v.init)});
  }
}

// .entry name (params) directives { body }, or a semicolon instead of the body.
void ModuleParser::entry() {
  auto f = std::make_unique<Function>();
  f->is_entry = true;
  scopes_.push();
  const SourcePos pos = in_.pos();
  f->name = in_.expect_word("a function's name");
  check_name(f->name, pos);
  if (in_.peek().is('(')) parameters(*f);
  performance_directives(*f);
  if (f->counts_clusters && !(f->reqntid[0] && f->reqnctapercluster[0]))
    in_.fail("'.blocksareclusters' needs .reqntid and .reqnctapercluster");
  if (in_.accept(';')) return scopes_.pop([](uint32_t, uint32_t) {});
  if (module_.entry(f->name)) throw PtxError(pos, "entry '" + f->name + "' is defined twice");
  body(std::move(f), nullptr);
}

// .func (results) name (params), likewise.
void ModuleParser::function() {
  const FunctionHead head = parse_head(in_);
  auto f = std::make_unique<Function>();
  f->name = head.name;
  performance_directives(*f);
  if (in_.accept(';')) return functions_.declare(head);
  functions_.define(head);
  scopes_.push();
  body(std::move(f), &head);
}

void ModuleParser::body(std::unique_ptr<Function> f, const FunctionHead* head) {
  in_.expect('{');
  SharedLayout shared = shared_;
  Expansion expansion{functions_};
  BodyParser parser(in_, scopes_, target_, shared, *f, expansion);
  if (head) parser.declare_head(*head);
  parser.parse();
  scopes_.pop([](uint32_t, uint32_t) {});
  module_.functions.push_back(std::move(f));
}

void ModuleParser::parameters(Function& f) {
  in_.expect('(');
  if (in_.accept(')')) return;
  do {
    if (in_.peek().dot("reg")) in_.fail("parameters in registers are not supported");
    if (!in_.accept_dot("param")) in_.fail("'.param' expected");
    const VariableDeclaration v = parse_parameter(in_);
    const uint32_t offset = uint32_t(align_up(f.param_bytes, v.align));
    // 32764 bytes since PTX ISA 8.1 (sm_70 and newer).
    if (offset + v.bytes > 32764) throw PtxError(v.pos, "more than 32764 bytes of parameters");
    if (v.name != "_")
      scopes_.declare(v.name, {Symbol::Kind::variable, Type::none, Space::param, offset}, v.pos);
    f.params.push_back({std::string(v.name), offset, uint32_t(v.bytes), v.align});
    f.param_bytes = offset + uint32_t(v.bytes);
  } while (in_.accept(','));
  in_.expect(')');
}

void ModuleParser::dimensions(uint32_t (&out)[3]) {
  out[0] = in_.expect_number();
  out[1] = out[2] = 1;
  for (int i = 1; i < 3 && in_.accept(','); ++i) out[i] = in_.expect_number();
}

// Which size the blocks have and the clusters has to be known (PTX ISA 11.8.1); looked at where the
// directives end.
void ModuleParser::clusters_as_blocks(Function& f) {
  if (!f.is_entry || module_.version < 90)
    in_.fail("'.blocksareclusters' is for kernels, from .version 9.0 on");
  in_.accept_dot("blocksareclusters");
  f.counts_clusters = true;
}

// .minnctapersm, .maxnreg and .maxclusterrank guide the compiler or bound what a launch may ask
// for.
void ModuleParser::performance_directives(Function& f) {
  for (;;) {
    if (skip_ignored_directive(in_)) continue;
    if (in_.accept_dot("maxntid"))
      dimensions(f.maxntid);
    else if (in_.accept_dot("reqntid"))
      dimensions(f.reqntid);
    else if (in_.accept_dot("reqnctapercluster"))
      dimensions(f.reqnctapercluster);
    else if (in_.accept_dot("explicitcluster"))
      f.explicit_cluster = true;
    else if (in_.peek().dot("blocksareclusters"))
      clusters_as_blocks(f);
    else if (in_.accept_dot("maxnreg")) {
      if (in_.expect_number() == 0) in_.fail("'.maxnreg 0': at least one register expected");
    } else if (in_.accept_dot("minnctapersm") || in_.accept_dot("maxnctapersm") ||
               in_.accept_dot("maxclusterrank"))
      in_.expect_number();
    else if (!in_.accept_dot("noreturn"))
      return;
  }
}

}  // namespace emu::ptx
