// SPDX-License-Identifier: MIT
// The settings as an environment gives them.
#include "tools/emulator/base/settings.h"

#include "tools/emulator/test/support/driver_session.h"
#include "tools/emulator/test/support/exec_support.h"

using namespace emu;

namespace {

struct Said {
  std::string error, warning;
};
Said said_of(std::vector<const char*> environment, Settings* read = nullptr) {
  environment.push_back(nullptr);
  Said said;
  const Settings s = read_settings(environment.data(), &said.error, &said.warning);
  if (read) *read = s;
  return said;
}
std::string error_of(std::vector<const char*> environment, Settings* read = nullptr) {
  return said_of(std::move(environment), read).error;
}

}  // namespace

TEST_CASE("an environment sets what it names and empty values are the defaults") {
  Settings s;
  CHECK(error_of({"PATH=x", "EMU_SEED=0x10", "EMU_ORDER=latest", "EMU_DEVICE=H100",
                  "EMU_TRACE_BLOCKS=7", "EMU_WORKERS=", "EMU_LATE=3-5.1"},
                 &s)
            .empty());
  CHECK(s.seed == 16);
  CHECK(s.order == emu::Order::latest);
  CHECK(s.device == "H100");
  CHECK((s.trace_blocks.first == 7 && s.trace_blocks.last == 7));
  CHECK(s.workers == 0);
  CHECK((s.late.first == 3 && s.late.last == 5 && s.late.rank == 1));
}

TEST_CASE("a bad value names the setting and what it takes") {
  CHECK(error_of({"EMU_ORDER=sooner"}) == "EMU_ORDER=sooner is not one of soonest latest random");
  CHECK(error_of({"EMU_WORKERS=1025"}) == "EMU_WORKERS=1025 is not a number from 0 to 1024");
  for (const char* bad :
       {"EMU_SEED=-1", "EMU_SEED= 1", "EMU_SEED=1x", "EMU_MMA_ZERO_GROUP=2", "EMU_TRACE_BLOCKS=4-2",
        "EMU_TRACE_BLOCKS=a", "EMU_FORMAL=stopp", "EMU_LATE=5-4", "EMU_LATE=32", "EMU_LATE=1.16",
        "EMU_LATE=1.", "EMU_LATE=loader"}) {
    CAPTURE(bad);
    CHECK(contains(error_of({bad}), " is not "));
  }
}

TEST_CASE("an unknown EMU_ name is told with all that there are and the others count") {
  Settings s;
  const Said unknown = said_of({"EMU_SEDE=1", "EMU_SEED=5"}, &s);
  CHECK(unknown.error.empty());
  CHECK(contains(unknown.warning,
                 "EMU_SEDE is no setting and changes nothing; there are EMU_DEVICE, "));
  for (const auto& row : emu::setting_rows()) CHECK(contains(unknown.warning, row.name));
  CHECK(s.seed == 5);
  CHECK(said_of({"EMU_SEED=5"}).warning.empty());
  CHECK(contains(said_of({"EMU_HAZARD=stop"}).warning, "EMU_HAZARD is no setting"));
  CHECK(said_of({"EMU_ROM_PATH=/roms"}).warning.empty());  // somebody else's
  const std::string told = driver_test::in_child(
      {{"EMU_SEDE", "1"}}, [](driver_test::Session& d) { OK(d, d.cuInit(0)); });
  CHECK(contains(told, "emulator: EMU_SEDE is no setting"));
}

TEST_CASE("late warps are a number or a range for every CTA or for one") {
  const SettingRow& row = *find_setting("EMU_LATE");
  Settings s;
  for (const auto& [text, shown] :
       {std::pair("7", "7-7"), std::pair("0-31.15", "0-31.15"), std::pair("4.0", "4-4.0"),
        std::pair("seed", "seed"), std::pair("", "")}) {
    REQUIRE(row.set(s, text));
    CHECK(row.show(s) == shown);
  }
  REQUIRE(row.set(s, "4-5.1"));
  CHECK((s.late.holds(1, 4) && s.late.holds(1, 5)));
  CHECK_FALSE((s.late.holds(0, 4) || s.late.holds(1, 3) || s.late.holds(1, 6)));
  REQUIRE(row.set(s, "4"));
  CHECK((s.late.holds(0, 4) && s.late.holds(3, 4)));
  CHECK(error_of({"EMU_LATE=x"}) ==
        "EMU_LATE=x is not a warp's number from 0 to 31, or first-last, and then .rank if wanted; "
        "or `seed`");
}

TEST_CASE("every setting shows what it was set to") {
  for (const auto& row : emu::setting_rows()) {
    CAPTURE(row.name);
    Settings s;
    const std::string value = row.show(s);
    REQUIRE(row.set(s, value.c_str()));
    CHECK(row.show(s) == value);
  }
}

TEST_CASE("a change between launches is refused for what the process has fixed") {
  driver_test::in_child([](driver_test::Session& s) {
    auto set = s.extension<decltype(&nvfp4emu_set)>("nvfp4emu_set");
    for (const auto& row : emu::setting_rows())
      IS(s, set(row.name, row.show(Settings()).c_str()), row.per_launch ? 0 : -1);
  });
}
