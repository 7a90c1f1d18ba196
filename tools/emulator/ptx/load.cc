// SPDX-License-Identifier: MIT
// The front end's one door.
#include <cstring>

#include "tools/emulator/ptx/lexer.h"
#include "tools/emulator/ptx/module.h"
#include "tools/emulator/ptx/parser.h"

namespace emu::ptx {

const Function* Module::entry(std::string_view name) const {
  for (const auto& f : functions)
    if (f->is_entry && f->name == name) return f.get();
  return nullptr;
}

void Module::initialise(const Variable& variable, uint8_t* to) const {
  memset(to, 0, variable.bytes);
  if (!variable.init.empty()) memcpy(to, variable.init.data(), variable.init.size());
  for (const Variable::Address& a : variable.addresses) {
    const uint64_t value = variables[a.variable].address + uint64_t(a.offset);
    memcpy(to + a.at, &value, sizeof value);
  }
}

namespace {

std::string in_words(const std::map<uint64_t, std::string>& files, const CudaLine& at) {
  const auto file = files.find(at.file);
  if (at.line == 0 || file == files.end()) return "";
  const std::string& path = file->second;
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(at.line);
}

}  // namespace

// If many functions are inlined in each other, the nearest caller and the outermost are told.
std::string Module::cuda_line(const Function& function, const Instr& in) const {
  std::string text = in_words(files, in.cuda);
  for (uint32_t from = in.cuda.from, depth = 0; from && !text.empty(); ++depth) {
    const CudaLine& caller = function.callers[from - 1];
    from = caller.from;
    const std::string words = in_words(files, caller);
    if (depth == 1 && from) text += " ..";
    if ((depth == 0 || !from) && !words.empty()) text += ", from " + words;
  }
  return text;
}

// What LLVM's NVPTX back end writes at the head. Triton, which uses it, leaves tcgen05.fence and
// waits for tcgen05.ld to ptxas.
const char* Module::left_to_ptxas() const {
  const std::string_view head = std::string_view(source).substr(0, 200);
  return head.find("LLVM NVPTX Back-End") == head.npos ? nullptr : "ptxas by the compiler";
}

const Function& Module::whole(const Function& function) const {
  if (unread) unread->read(function);
  return function;
}

uint64_t Module::most_shared(const Function& function) const {
  return unread ? unread->most_shared(function) : function.static_shared_bytes;
}

namespace {

// The tokens and names, kept while there are kernels that have not been parsed.
class Reader : public Unread {
 public:
  Reader(std::vector<Token> tokens, int compute_capability, const Binder* binders, Module& module)
      : module_(module),
        tokens_(std::move(tokens)),
        parser_(tokens_, compute_capability, binders, module) {
    parser_.parse();
  }
  void read(const Function& function) override {
    for (const auto& f : module_.functions)
      if (f.get() == &function) parser_.read(*f);
  }
  uint64_t most_shared(const Function& function) const override {
    return parser_.most_shared(function);
  }

 private:
  Module& module_;
  const std::vector<Token> tokens_;
  ModuleParser parser_;
};

std::unique_ptr<Module> empty_module(std::string_view text) {
  auto module = std::make_unique<Module>();
  module->source = text.substr(0, text.find('\0'));
  return module;
}

}  // namespace

// Whatever the quick way does not understand is for the other to judge, from the start.
std::unique_ptr<Module> load(std::string_view text, int compute_capability, const Binder* binders,
                             Reading reading) {
  std::unique_ptr<Module> module = empty_module(text);
  if (reading == Reading::when_asked) try {
      module->unread = std::make_shared<Reader>(lex_around_bodies(module->source),
                                                compute_capability, binders, *module);
      return module;
    } catch (const PtxError&) {
      module = empty_module(text);
    }
  const std::vector<Token> tokens = lex(module->source);
  ModuleParser(tokens, compute_capability, binders, *module).parse();
  return module;
}

}  // namespace emu::ptx
