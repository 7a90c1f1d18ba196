// SPDX-License-Identifier: MIT
// The manual of the emulator, tools/emulator/README.md, says what the code says.
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tools/emulator/base/settings.h"
#include "tools/testing/catch.h"

namespace {

std::string file(const std::string& path) {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("tools/emulator/test/base/readme.cc")) + path);
  std::stringstream text;
  text << in.rdbuf();
  INFO(path);
  REQUIRE(!text.str().empty());
  return text.str();
}

// Maps the first group of every match to the second one, or to "" if there is none.
std::map<std::string, std::string> pairs(const std::string& text, const char* pattern) {
  std::map<std::string, std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found[(*it)[1]] = it->size() > 2 ? (*it)[2].str() : "";
  return found;
}

}  // namespace

TEST_CASE("the manual's table of settings is settings.def and has no other row") {
  const std::string manual = file("tools/emulator/README.md");
  for (const emu::SettingRow& row : emu::setting_rows()) {
    const std::string value = row.show(emu::Settings());
    const std::string line = "| `" + std::string(row.name) + "` | " +
                             (value.empty() ? "" : "`" + value + "` ") + "| " + row.meaning +
                             " |\n";
    CAPTURE(line);
    CHECK(manual.find(line) != std::string::npos);
  }
  CHECK(pairs(manual, R"(\| `(EMU_\w+)` \| )").size() == emu::setting_rows().size());
}

TEST_CASE("the manual names every device and counts what the emulator counts") {
  const std::string manual = file("tools/emulator/README.md");
  const auto devices = pairs(file("tools/emulator/driver/devices.def"), R"(EMU_DEVICE\((\w+), ")");
  const auto counters =
      pairs(file("tools/emulator/machine/counters.def"), R"(EMU_COUNTER\((\w+), ")");
  REQUIRE(devices.size() > 1);
  REQUIRE(counters.size() > 1);
  for (const auto* names : {&devices, &counters})
    for (const auto& name : *names) {
      CAPTURE(name.first);
      CHECK(manual.find("`" + name.first + "`") != std::string::npos);
    }
}
