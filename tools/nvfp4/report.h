// SPDX-License-Identifier: MIT
// The output of a command, for people or for programs (--json).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace nvfp4_tool {

using Json = nlohmann::ordered_json;

// Text with \xNN or \uNNNN in place of control characters, and of those that reverse what follows:
// names in files are anybody's.
std::string shown(const std::string& text);

class Report {
 public:
  explicit Report(bool json) : as_json_(json) {}

  // "key       text" at once, for people only.
  __attribute__((format(printf, 3, 4))) void line(const char* key, const char* format, ...);
  // A value for programs only. Numbers that are not finite become null.
  Json& operator[](const char* key) { return values_[key]; }
  bool for_programs() const { return as_json_; }
  // The values, for programs.
  void finish();

 private:
  bool as_json_;
  Json values_ = Json::object();
};

}  // namespace nvfp4_tool
