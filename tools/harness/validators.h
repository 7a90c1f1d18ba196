// SPDX-License-Identifier: MIT
// What the command lines take as the value of an option, with a sentence for what they do not.
#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace support {

// What is wrong with a whole number, or "".
template <typename Whole>
std::string complaint_of_whole(const std::string& text, Whole least, Whole most) {
  Whole value = 0;
  const bool below = std::is_unsigned<Whole>::value && text.size() > 1 && text[0] == '-';
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + below, end, value);
  if (error == std::errc::invalid_argument || stopped != end) return text + " is no whole number";
  if (!below && error == std::errc() && value >= least && value <= most) return "";
  return text + " is not within " + std::to_string(least) + " to " + std::to_string(most);
}

template <typename Whole>
CLI::Validator wholes(Whole least, Whole most) {
  const auto complaint = [least, most](std::string& text) {
    return complaint_of_whole(text, least, most);
  };
  return CLI::Validator(complaint, "");
}

// Numbers of fp32. inf and nan are some, a number that would become infinity or 0 is none.
inline std::string complaint_of_number(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const float value = std::strtof(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') return text + " is no number";
  const bool lost = errno == ERANGE && (value == 0 || std::isinf(value));
  return lost ? text + " is beyond the range of fp32" : "";
}

inline CLI::Validator numbers() {
  return CLI::Validator([](std::string& text) { return complaint_of_number(text); }, "");
}

// An option of values with commas between them, or several of them. CLI11's own delimiter drops
// empty ones. `convert` turns a word into a value, and returns what is wrong with it, or "".
template <typename Value, typename Convert>
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<Value>& values,
                      const std::string& text, Convert convert) {
  const auto split = [name, &values, convert](const std::vector<std::string>& lists) {
    values.clear();
    for (const std::string& list : lists) {
      for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
        end = list.find(',', at);
        const std::string word = list.substr(at, end - at);
        values.emplace_back();
        const std::string wrong =
            word.empty() ? "a value between commas is empty" : convert(word, values.back());
        if (!wrong.empty()) throw CLI::ValidationError(name, wrong);
      }
    }
  };
  return app.add_option_function<std::vector<std::string>>(name, split, text);
}

inline CLI::Option* add_list(CLI::App& app, const std::string& name,
                             std::vector<std::string>& words, const std::string& text) {
  const auto same = [](const std::string& word, std::string& value) {
    return value = word, std::string();
  };
  return add_list(app, name, words, text, same);
}

inline CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<int64_t>& values,
                             const std::string& text, int64_t least, int64_t most) {
  const auto whole = [least, most](const std::string& word, int64_t& value) {
    std::from_chars(word.data(), word.data() + word.size(), value);
    return complaint_of_whole(word, least, most);
  };
  return add_list(app, name, values, text, whole)->type_name("INT");
}

// No option of the commands takes "".
inline void refuse_empty(CLI::App& app) {
  const CLI::Validator filled(
      [](std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); }, "");
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->get_items_expected_max() > 0) option->transform(filled);
    }
  }
}

}  // namespace support
