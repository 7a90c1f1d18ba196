// SPDX-License-Identifier: MIT
#include "tools/nvfp4/strict_json.h"

#include <set>
#include <stdexcept>

namespace nvfp4_tool {

namespace {

constexpr int kDeepest = 64;

}  // namespace

StrictJson parse_strict(const std::string& text) {
  std::vector<std::set<std::string>> keys;  // keys of the enclosing objects
  using Event = StrictJson::parse_event_t;
  const auto watch = [&keys](int depth, Event event, StrictJson& parsed) {
    if (depth > kDeepest) throw std::runtime_error("JSON nested too deeply");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw std::runtime_error("the key '" + parsed.get<std::string>() + "' twice");
    }
    return true;
  };
  try {
    return StrictJson::parse(text, watch);
  } catch (const StrictJson::exception& error) {
    throw std::runtime_error(std::string("JSON that is none: ") + error.what());
  }
}

}  // namespace nvfp4_tool
