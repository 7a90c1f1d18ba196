// SPDX-License-Identifier: MIT
// Which target takes which form of the small floats, against what two ptxas said of each:
// test/golden/small_floats.csv, which tools/emulator/small_floats.py writes.
#include <fstream>
#include <sstream>

#include "tools/emulator/ptx/target.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> all;
  std::stringstream text(line);
  for (std::string cell; std::getline(text, cell, '\t');) all.push_back(cell);
  return all;
}

std::string verdict_of(const std::string& form, const std::string& target, int version) {
  const std::string registers =
      ".reg .b8 %b<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<4>;\n";
  emu::ptx::Target of;
  REQUIRE(emu::ptx::find_target(target, of));
  return ptx_test::verdict(
      ptx_test::module_head(target, version) + ".entry k() {\n" + registers + form + "\nret;\n}\n",
      of.number == 101 ? 110 : of.number);
}

}  // namespace

TEST_CASE("forms of small floats have the targets that two ptxas give them") {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.find("ptx/small_floats.cc")) + "golden/small_floats.csv");
  std::string line;
  REQUIRE(std::getline(in, line));
  const std::vector<std::string> targets = cells(line);
  REQUIRE(targets.size() > 20);
  REQUIRE(targets[0] == "ptxas 13.0 and 13.5");
  constexpr int versions[] = {90, 95};
  size_t taken = 0, refused = 0;
  while (std::getline(in, line)) {
    const std::vector<std::string> row = cells(line);
    REQUIRE(row.size() == targets.size());
    for (size_t t = 1; t < row.size(); ++t)
      for (size_t p = 0; p < std::size(versions); ++p) {
        if (row[t][p] == '-') continue;
        const std::string ours = verdict_of(row[0], "sm_" + targets[t], versions[p]);
        INFO(targets[t] << ", .version " << versions[p] << ": " << row[0] << ": " << ours);
        CHECK((ours == "accepted") == (row[t][p] == 'y'));
        ++(row[t][p] == 'y' ? taken : refused);
      }
  }
  CHECK(taken > 2000);
  CHECK(refused > 2000);
}
