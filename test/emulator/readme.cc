// SPDX-License-Identifier: MIT
// The manual of the emulator, tools/emulator/README.md, says what the code says.
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "emulator/settings.h"
#include "support/catch.h"

namespace {

std::string file(const std::string& path) {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("test/emulator/readme.cc")) + path);
  std::stringstream text;
  text << in.rdbuf();
  INFO(path);
  REQUIRE(!text.str().empty());
  return text.str();
}

// The first group of every match: the second, or nothing.
std::map<std::string, std::string> pairs(const std::string& text, const char* pattern) {
  std::map<std::string, std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found[(*it)[1]] = it->size() > 2 ? (*it)[2].str() : "";
  return found;
}

const char* word(emu::Order order) {
  switch (order) {
    case emu::Order::soonest: return "soonest";
    case emu::Order::latest: return "latest";
    case emu::Order::random: return "random";
  }
  return "";
}

const char* word(emu::Reaction reaction) {
  switch (reaction) {
    case emu::Reaction::stop: return "stop";
    case emu::Reaction::report: return "report";
    case emu::Reaction::ignore: return "ignore";
  }
  return "";
}

}  // namespace

TEST_CASE("the manual's table of settings has every setting with its default, and no other") {
  const emu::Settings s;
  const std::map<std::string, std::string> defaults = {
      {"EMU_DEVICE", s.device},
      {"EMU_DRIVER_VERSION", std::to_string(s.driver_version)},
      {"EMU_ORDER", word(s.order)},
      {"EMU_SEED", std::to_string(s.seed)},
      {"EMU_WORKERS", std::to_string(s.workers)},
      {"EMU_MAX_INSTRUCTIONS", std::to_string(s.max_instructions)},
      {"EMU_HAZARDS", word(s.hazards)},
      {"EMU_FORMAL", word(s.formal)},
      {"EMU_MMA_ZERO_GROUP", std::to_string(s.zero_group_raises)},
  };
  CHECK(pairs(file("tools/emulator/README.md"), R"(\| `(EMU_\w+)` \| `(\w+)` \|)") == defaults);
  // A setting that is new in the code has to come here, too.
  const auto read = pairs(file("tools/emulator/settings.cc"), R"re("(EMU_\w+)")re");
  CHECK(read.size() == defaults.size());
  for (const auto& setting : read) {
    CAPTURE(setting.first);
    CHECK(defaults.count(setting.first) == 1);
  }
}

TEST_CASE("the manual names every device and counts what the emulator counts") {
  const std::string manual = file("tools/emulator/README.md");
  const auto devices = pairs(file("tools/emulator/driver/devices.def"), R"(EMU_DEVICE\((\w+), ")");
  const auto counters = pairs(file("tools/emulator/exec/counters.def"), R"(EMU_COUNTER\((\w+), ")");
  REQUIRE(devices.size() > 1);
  REQUIRE(counters.size() > 1);
  for (const auto* names : {&devices, &counters})
    for (const auto& name : *names) {
      CAPTURE(name.first);
      CHECK(manual.find("`" + name.first + "`") != std::string::npos);
    }
}
