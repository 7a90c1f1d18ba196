// SPDX-License-Identifier: MIT
// See findings.h.
#include "tools/emulator/base/findings.h"

#include "tools/emulator/base/tell.h"

namespace emu {

namespace {

constexpr size_t most_lines = 2;  // of a rule's other places

// "2624, 2627, 2630, 2633 ..".
std::string first_lines(const std::set<uint32_t>& lines) {
  std::string text;
  size_t n = 0;
  for (const uint32_t line : lines) {
    if (n++ == most_lines) return text + " ..";
    text += (n > 1 ? ", " : "") + std::to_string(line);
  }
  return text;
}

std::vector<std::string> as_text(const std::set<uint32_t>& lines) {
  std::vector<std::string> all;
  for (const uint32_t line : lines) all.push_back(std::to_string(line));
  return all;
}

}  // namespace

const char* name_of(Severity severity) { return severity == Severity::formal ? "formal" : "error"; }

// Once a process: its other launches find the same.
bool Findings::is_first(Severity severity, const std::string& rule) const {
  static std::mutex lock;
  static std::set<std::string>& told = *new std::set<std::string>;
  std::lock_guard guard(lock);
  return told.insert(std::string(name_of(severity)) + ' ' + rule + ' ' + kernel_).second;
}

bool Findings::is_excepted(Severity severity, const std::string& rule) const {
  const std::string& except = settings().except;
  if (severity != Severity::formal || except.rfind(rule + ':', 0) != 0) return false;
  return kernel_.find(except.substr(rule.size() + 1)) != std::string::npos;
}

void Findings::add(Severity severity, const Place& place, const std::string& rule,
                   const std::string& text, const char* left_to) {
  const Reaction what = reaction(severity);
  if (what == Reaction::ignore) return;
  std::lock_guard guard(lock_);
  if (is_excepted(severity, rule)) {
    ++excepted_[rule];
    return;
  }
  ++counts_[size_t(severity)];
  OfRule& of_rule = rules_[size_t(severity)][rule];
  ++of_rule.count;
  if (what == Reaction::stop) {
    of_rule.has_example = true;
    text_ += text + "\n";
    throw Finding(severity, rule, text);
  }
  if (!known_.emplace(place.key, &of_rule).second) return;
  text_ += text + "\n";
  if (left_to) of_rule.left_to = left_to;
  if (!left_to && is_first(severity, rule)) {
    of_rule.has_example = true;
    tell(text, {name_of(severity), rule});
  } else {
    of_rule.lines.insert(place.line);
  }
}

bool Findings::again(Severity severity, uint64_t key) {
  if (reaction(severity) != Reaction::report) return false;
  std::lock_guard guard(lock_);
  const auto known = known_.find(key);
  if (known == known_.end()) return false;
  ++known->second->count;
  ++counts_[size_t(severity)];
  return true;
}

void Findings::tell_the_rest(Severity severity) {
  std::string all;
  for (const auto& [rule, of] : rules_[size_t(severity)]) {
    const uint64_t rest = of.count - of.has_example;
    if (!rest) continue;
    std::string words =
        format("%llu%s ", (unsigned long long)rest, of.has_example ? " more" : "") + rule;
    if (!of.left_to.empty()) words += " (left to " + of.left_to + ")";
    if (of.left_to.empty() && !of.lines.empty())
      words += " (PTX lines " + first_lines(of.lines) + ")";
    Label label{name_of(severity), rule};
    label.more = rest;
    label.lines = as_text(of.lines);
    record("kernel " + kernel_ + ": " + words, label);
    all += (all.empty() ? "" : ", ") + words;
  }
  if (!all.empty()) say("kernel " + kernel_ + ": " + all, name_of(severity));
}

void Findings::tell_the_rest() {
  std::lock_guard guard(lock_);
  for (const Severity severity : {Severity::error, Severity::formal}) tell_the_rest(severity);
}

std::map<std::string, uint64_t> Findings::by_rule() const {
  std::map<std::string, uint64_t> all = excepted_;
  for (const auto& rules : rules_)
    for (const auto& [rule, of] : rules) all[rule] += of.count;
  return all;
}

}  // namespace emu
