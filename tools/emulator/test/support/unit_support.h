// SPDX-License-Identifier: MIT
// Golden tables and expected faults for the tests of the emulator's units.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/test/support/golden_forms.h"
#include "tools/testing/catch.h"

namespace unit {

using Row = std::vector<std::string>;

inline std::string golden_text(const std::string& name) {
  const std::string formed = formed_table(name);
  if (!formed.empty()) return formed;
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("support/unit_support.h")) + "golden/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The lines of a golden table after its header line. The table follows from a closed form, or is a
// file of the folder golden/ beside this one.
inline std::vector<Row> golden(const std::string& name) {
  std::stringstream in(golden_text(name));
  std::vector<Row> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::stringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  INFO("test/golden/" << name);
  REQUIRE(!rows.empty());
  return rows;
}

inline uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 0); }

// What the Fault says that f throws; "no fault" or "another kind: .." when it does not as expected.
template <class F>
std::string fault(emu::FaultKind kind, F f) {
  try {
    f();
  } catch (const emu::Fault& e) {
    return e.kind == kind ? e.text : "another kind: " + e.text;
  }
  return "no fault";
}

inline bool says(const std::string& text, const std::string& part) {
  return text != "no fault" && text.find("another kind") != 0 &&
         text.find(part) != std::string::npos;
}

// splitmix64: the tests' own numbers.
struct Random {
  uint64_t state;
  uint64_t operator()() {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t n) { return (*this)() % n; }
};

}  // namespace unit

// The expression faults with that kind and its text has `part`.
#define CHECK_FAULT(kind_, part_, ...)                                                        \
  do {                                                                                        \
    const std::string fault_text_ = unit::fault(emu::FaultKind::kind_, [&] { __VA_ARGS__; }); \
    INFO(fault_text_);                                                                        \
    CHECK(unit::says(fault_text_, part_));                                                    \
  } while (0)
