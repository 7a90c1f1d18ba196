// SPDX-License-Identifier: MIT
// Every racy program of tools/emulator/test/pairs is reported in every schedule, every repaired one
// is silent, and nothing that the emulator takes is refused by ptxas.
#include <cstring>

#include "tools/emulator/driver/watch.h"
#include "tools/emulator/hardware/tensor_map_bits.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/op/load.h"
#include "tools/emulator/test/pairs/pairs.h"
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/test/support/ptx_support.h"

using namespace emu;
using hazard_test::Pair;

namespace {

std::vector<Pair> pairs_of(const std::string& folder) {
  const std::string here = __FILE__;
  return hazard_test::read_pairs(here.substr(0, here.find("order/pairs.cc")) + folder);
}
std::vector<Pair> all_pairs() { return pairs_of("pairs"); }

struct Outcome {
  uint64_t errors = 0, formal = 0;
  bool faulted = false;  // in a way that no finding explains
  std::string text;      // findings, or the fault
};

TensorMap map_of(uint64_t buffer) {
  const uint64_t dims[] = {hazard_test::map_columns, hazard_test::map_rows};
  const uint64_t pitch[] = {hazard_test::map_columns * 4};
  const uint32_t box[] = {hazard_test::map_columns, hazard_test::map_box}, steps[] = {1, 1};
  alignas(64) TensorMap map;
  TensorMapArguments a;
  a.map = &map;
  a.type = 2;  // CU_TENSOR_MAP_DATA_TYPE_UINT32
  a.rank = 2;
  a.address = buffer;
  a.dims = dims;
  a.strides = pitch;
  a.box = box;
  a.element_strides = steps;
  REQUIRE(encode_tiled(a, 100, &map) == "");
  return map;
}

Outcome run(const Pair& pair, const std::string& text) {
  auto module = ops::load(text, int(pair.target));
  GlobalMemory memory(1ull << 20);
  uint64_t buffers[2];
  for (uint64_t& b : buffers) {
    b = memory.allocate(hazard_test::buffer_bytes, "a buffer");
    memset(memory.at(b, hazard_test::buffer_bytes, 1, "test"), 0, hazard_test::buffer_bytes);
  }
  Findings findings;
  Launch launch;
  launch.module = module.get();
  launch.function = module->entry("k");
  launch.grid.x = pair.grid;
  launch.block.x = pair.block;
  launch.cluster.x = pair.cluster;
  launch.params.resize(64 + sizeof(EncodedMap));
  memcpy(launch.params.data(), buffers, 16);
  const EncodedMap map = map_of(buffers[0]);
  memcpy(&launch.params[64], &map, sizeof map);
  launch.memory = &memory;
  launch.sm_count = 148;
  launch.findings = &findings;
  Outcome out;
  try {
    run_watched(launch);
  } catch (const Fault& fault) {
    out.text = fault.text;
    // A warp that meets an mbarrier before its init faults at once.
    // So does one that meets freed tensor memory.
    if (fault.kind == FaultKind::barrier_misuse || fault.kind == FaultKind::tensor_memory)
      ++out.errors;
    else
      out.faulted = fault.kind != FaultKind::ordering;
  }
  out.errors += findings.count(Severity::error);
  out.formal += findings.count(Severity::formal);
  out.text += findings.text();
  return out;
}

struct Schedule {
  Order order;
  uint64_t seed;
  bool late = false;  // EMU_LATE=seed
};

std::vector<Schedule> schedules() {
  std::vector<Schedule> all = {{Order::soonest, 1}, {Order::latest, 1}};
  for (uint64_t seed = 1; seed <= 8; ++seed) all.push_back({Order::random, seed});
  for (uint64_t seed = 2; seed <= 4; ++seed) {
    all.push_back({Order::soonest, seed});
    all.push_back({Order::latest, seed});
    all.push_back({Order::random, seed, true});
  }
  return all;
}

}  // namespace

TEST_CASE("every racy program is reported and every repaired one silent in every schedule") {
  exec_test::SettingsGuard guard;
  settings().max_instructions = 20'000'000;
  const std::vector<Pair> pairs = all_pairs();
  REQUIRE(pairs.size() >= 130);
  for (const Pair& pair : pairs)
    for (const Schedule& s : schedules()) {
      settings().order = s.order;
      settings().seed = s.seed;
      settings().late.by_seed = s.late;
      CAPTURE(pair.name, int(s.order), s.seed, s.late);
      settings().formal = pair.expected == "formal" ? Reaction::stop : Reaction::ignore;
      const Outcome racy = run(pair, pair.racy);
      settings().formal = Reaction::stop;
      const Outcome repaired = run(pair, pair.repaired);
      {
        INFO("racy: " << racy.text);
        CHECK((pair.expected == "error" ? racy.errors : racy.formal) > 0);
        CHECK((pair.expected == "error" || racy.errors == 0));
        CHECK_FALSE(racy.faulted);
      }
      INFO("repaired: " << repaired.text);
      CHECK(repaired.errors + repaired.formal == 0);
      CHECK_FALSE(repaired.faulted);
    }
}

TEST_CASE("public kernels begin and hand over and end as they do without an error") {
  exec_test::SettingsGuard guard;
  settings().max_instructions = 20'000'000;
  const std::vector<Pair> all = pairs_of("corpus");
  REQUIRE(all.size() >= 69);
  for (const Pair& form : all)
    for (const Order order : {Order::soonest, Order::latest, Order::random}) {
      CAPTURE(form.name, int(order));
      settings().order = order;
      settings().formal = Reaction::report;
      const Outcome ships = run(form, form.racy);
      {
        INFO(ships.text);
        CHECK((form.expected == "formal") == (ships.formal > 0));
        CHECK(ships.errors == 0);
        CHECK_FALSE(ships.faulted);
      }
      if (form.expected == "silent") continue;
      const Outcome repaired = run(form, form.repaired);
      INFO("repaired: " << repaired.text);
      CHECK(repaired.errors + repaired.formal == 0);
      CHECK_FALSE(repaired.faulted);
    }
}
