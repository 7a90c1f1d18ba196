// SPDX-License-Identifier: MIT
// Branches by table: brx.idx index, list (PTX ISA 9.7.12). A brx.idx is replaced by a comparison
// and a branch for each label of its list. The brx.idx itself stays behind them, and only an index
// beyond the end of the list reaches it.
#include "tools/emulator/ptx/body.h"

namespace emu::ptx {
namespace {

constexpr std::string_view chosen = " this label";  // no text can name this predicate

// setp.eq{.and}.u32 chosen, index, number{, guard};
ParsedInstr comparison(const ParsedInstr& brx, uint64_t number) {
  ParsedInstr setp = brx;
  setp.guard = {};
  setp.words.assign(brx.guard.empty() ? 3 : 4, brx.words[0]);
  const std::string_view words[] = {"setp", "eq", "u32", "and"};
  for (size_t i = 0; i < setp.words.size(); ++i) {
    setp.words[i].text = words[i];
    setp.words[i].kind = i ? Token::Kind::dotted : Token::Kind::word;
  }
  setp.ops.assign(3, brx.ops[0]);
  setp.ops[0] = {};
  setp.ops[0].name = chosen;
  setp.ops[2] = {};
  setp.ops[2].kind = ParsedOperand::Kind::integer;
  setp.ops[2].bits = number;
  if (!brx.guard.empty()) {
    setp.ops.emplace_back();
    setp.ops[3].name = brx.guard;
    setp.ops[3].negated = brx.guard_negated;
  }
  for (ParsedOperand& op : setp.ops) op.pos = brx.pos;
  return setp;
}

}  // namespace

// list: .branchtargets A, B;
void BodyParser::branch_targets(std::string_view name) {
  const SourcePos pos = in_.pos();
  in_.next();
  std::vector<std::string_view> labels;
  do labels.push_back(in_.expect_word("a label"));
  while (in_.accept(','));
  in_.expect(';');
  if (!branch_targets_.emplace(name, std::move(labels)).second)
    throw PtxError(pos, "list '" + std::string(name) + "' stands twice in one function");
}

void BodyParser::branch_by_table(const ParsedInstr& brx) {
  if (brx.ops.size() != 2) return;  // append() says what is missing
  const auto list = branch_targets_.find(brx.ops[1].name);
  if (list == branch_targets_.end())
    throw PtxError(brx.ops[1].pos, "'" + std::string(brx.ops[1].name) +
                                       "' is no list of .branchtargets above this");
  scopes_.push();
  scopes_.declare(
      chosen, {Symbol::Kind::reg, Type::pred, Space::generic, function_.register_slots++}, brx.pos);
  function_.register_names.resize(function_.register_slots, "brx.idx");
  for (size_t i = 0; i < list->second.size(); ++i) {
    ParsedInstr setp = comparison(brx, i);
    append(setp);
    ParsedInstr guarded = brx;
    guarded.guard = chosen;
    guarded.guard_negated = false;
    branch(guarded, list->second[i]);
  }
  scopes_.pop([](uint32_t, uint32_t) {});
}

}  // namespace emu::ptx
