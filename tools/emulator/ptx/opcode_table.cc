// SPDX-License-Identifier: MIT
// Building the table, matching, and the sentences about what did not match.
#include "tools/emulator/ptx/opcode_table.h"

#include <algorithm>

#include "tools/emulator/ptx/operands.h"
#include "tools/emulator/ptx/rules.h"

namespace emu::ptx {
namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 200)) + "'"; }

// What there is no row for: the sentence of absent.def, or that it is unknown.
void require_known(const ParsedInstr& in) {
  constexpr std::pair<std::string_view, const char*> rows[] = {
#define ABSENT(words, meaning) {words, meaning},
#include "tools/emulator/ptx/absent.def"
#undef ABSENT
  };
  for (const auto& [words, meaning] : rows)
    if (in.text.substr(0, words.size()) == words &&
        (in.text.size() == words.size() || in.text[words.size()] == '.' ||
         in.text[words.size()] == ' '))
      throw PtxError(in.pos,
                     std::string(words) + ", " + meaning + ", is not emulated: " + quoted(in.text));
}

// .sync belongs to the opcode of vote, shfl and redux, and may stand anywhere after it.
std::vector<Token> sync_in_front(std::vector<Token> words) {
  const std::string_view opcode = words[0].text;
  if (opcode != "vote" && opcode != "shfl" && opcode != "redux") return words;
  for (size_t i = 2; i < words.size(); ++i)
    if (words[i].text == "sync" && words[1].text != "sync")
      std::rotate(words.begin() + 1, words.begin() + long(i), words.begin() + long(i) + 1);
  return words;
}

// wmma.mma has a layout of A and one of B, which may be the same word: opcodes.def calls the second
// .b:row or .b:col, which no lexer gives.
std::vector<Token> layout_of_b_named(std::vector<Token> words) {
  if (words[0].text != "wmma" || words.size() < 2 || words[1].text != "mma") return words;
  bool second = false;
  for (Token& word : words) {
    if (word.text != "row" && word.text != "col") continue;
    if (second) word.text = word.text == "row" ? "b:row" : "b:col";
    second = true;
  }
  return words;
}

// The modifiers after the base opcode, sorted into the set and the list of types.
Places sort_words(const ParsedInstr& in, const std::vector<Token>& words, size_t from, Instr& out) {
  Places places{};
  for (size_t i = from; i < words.size(); ++i) {
    const Suffix s = find_suffix(words[i].text);
    const std::string word = "." + std::string(words[i].text);
    if (s.kind == Suffix::Kind::unknown) require_known(in);
    if (s.kind == Suffix::Kind::unknown)
      throw PtxError(words[i].pos, "unknown modifier " + word + " in " + quoted(in.text));
    if (s.kind == Suffix::Kind::type) {
      if (out.type_count == std::size(out.types))
        throw PtxError(words[i].pos, "one type too many in " + quoted(in.text));
      out.types[out.type_count++] = s.type;
    } else if (out.mods.test(size_t(s.mod))) {
      throw PtxError(words[i].pos, word + " stands twice in " + quoted(in.text));
    } else {
      out.mods.set(size_t(s.mod));
      places[size_t(s.mod)] = uint8_t(i - from);
    }
  }
  return places;
}

// Whether the form takes all modifiers and types. Most forms of an opcode lack one of the words.
bool takes_all(const Form& form, Suffixes& left) {
  return (left.mods & ~form.named).none() && matches(form.modifiers, left) && left.empty();
}

bool admitted(const Opcode& op, const Instr& in, const Places& places) {
  for (const Form& form : op.forms) {
    Suffixes left{in.mods, &places, in.types, in.type_count};
    if (takes_all(form, left)) return true;
  }
  return false;
}

// No form has these modifiers: which one is to blame? Tried: one less, one more.
std::string blame(const Opcode& op, const Instr& in, const Places& places) {
  for (size_t i = 0; i < size_t(Mod::count); ++i) {
    Instr other = in;
    other.mods.flip(i);
    if (!admitted(op, other, places)) continue;
    return "." + std::string(text_of(Mod(i))) +
           (in.mods.test(i) ? " does not go with the rest of " : " is missing in ");
  }
  return "no form of " + std::string(op.text) + " has these modifiers and types: ";
}

}  // namespace

OpcodeTable::OpcodeTable() {
#define OPCODE(name, text) opcodes_.push_back({text, opcodes_.size(), {}});
#define FORM(since, text) add_form(Since::since, text);
#include "tools/emulator/ptx/opcodes.def"
#undef OPCODE
#undef FORM
  for (size_t i = 0; i < opcodes_.size(); ++i) by_text_[opcodes_[i].text] = i;
}

void OpcodeTable::add_form(Since since, const char* text) {
  Opcode& op = opcodes_.back();
  const std::string_view row = text;
  const size_t gap = std::min(row.find("  "), row.size());
  Form form{since, text, {}, {}, {}};
  parse_modifiers(row.substr(0, gap).substr(std::string_view(op.text).size()), form.modifiers);
  form.named = modifiers_in(form.modifiers);
  form.slots = parse_slots(row.substr(std::min(gap + 2, row.size())));
  op.forms.push_back(std::move(form));
}

const OpcodeTable& OpcodeTable::get() {
  static const OpcodeTable table;
  return table;
}

const Opcode* OpcodeTable::find(const std::vector<Token>& words, size_t* used) const {
  std::string text(words[0].text);
  const Opcode* best = nullptr;
  for (size_t n = 1; n <= 5; ++n) {  // cp.async.bulk.prefetch.tensor
    const auto found = by_text_.find(text);
    if (found != by_text_.end()) {
      best = &opcodes_[found->second];
      *used = n;
    }
    if (n == words.size()) break;
    text += '.';
    text += words[n].text;
  }
  return best;
}

Match match(const ParsedInstr& in, const Target& target, Instr& out) {
  size_t used = 0;
  const std::vector<Token> words = layout_of_b_named(sync_in_front(in.words));
  const Opcode* op = OpcodeTable::get().find(words, &used);
  if (!op) require_known(in);
  if (!op) throw PtxError(in.pos, "unknown instruction " + quoted(in.text));
  out.opcode = op->text;
  out.pos = in.pos;
  const Places places = sort_words(in, words, used, out);

  std::string elsewhere;  // the targets on which it fits
  int needed = 0;         // fits, but not before this version
  OperandError operand_error;
  bool modifiers_fit = false;
  for (const Form& form : op->forms) {
    Suffixes left{out.mods, &places, out.types, out.type_count};
    if (!takes_all(form, left)) continue;
    if (!target.has(form.since) || target.number < left.floor.target) {
      elsewhere = target.has(form.since) ? "sm_" + std::to_string(left.floor.target) + " or newer"
                                         : describe(form.since);
      continue;
    }
    modifiers_fit = true;
    out.ops.clear();
    const OperandError error = fit_operands(form.slots, in, out);
    if (error.text.empty() && left.floor.version > target.version) {
      needed = left.floor.version;
      continue;
    }
    if (error.text.empty()) {
      check_rules(in, out);
      return {*op, form};
    }
    if (operand_error.text.empty() || error.tells_more_than(operand_error)) operand_error = error;
  }
  if (needed) throw PtxError(in.pos, target.needs_version(quoted(in.text), needed));
  if (modifiers_fit)
    throw PtxError(operand_error.pos, operand_error.text + " in " + quoted(in.text));
  if (!elsewhere.empty())
    throw PtxError(in.pos, quoted(in.text) + " needs target " + elsewhere +
                               ", the module's is sm_" + std::to_string(target.number) +
                               (target.variant ? std::string(1, target.variant) : ""));
  throw PtxError(in.pos, blame(*op, out, places) + quoted(in.text));
}

}  // namespace emu::ptx
