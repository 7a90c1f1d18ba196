// SPDX-License-Identifier: MIT
// The opcode table against ptxas: what we accept, it accepts.
#include "ptx_samples.h"
#include "ptx_support.h"

namespace {

using namespace ptx_test;

// What the machine refuses in its own words is no matter of the table.
bool front_end_accepts(const std::string& instruction) {
  const std::string v = body_verdict("L: " + instruction);
  INFO(instruction << ": " << v);
  return v == "accepted" || v.find("not supported: ") != std::string::npos;
}

}  // namespace

TEST_CASE("the judge finds a wrong instruction among right ones") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const std::vector<std::string> errors =
      ptxas_verdicts({"add.s32 r1, r2, r3;", "add.s32 r1, f2, r3;", "add.s32 r1 r2;", "ret;",
                      "tcgen05.wait::ld.sync;", "tcgen05.wait::ld.sync.aligned;"});
  const bool right[] = {true, false, false, true, false, true};
  for (size_t i = 0; i < errors.size(); ++i) {
    CAPTURE(i, errors[i]);
    CHECK(errors[i].empty() == right[i]);
  }
}

TEST_CASE(
    "every row of opcodes.def has an instruction that ptxas accepts, and none that it refuses") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  std::vector<std::string> all;
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes())
    for (const emu::ptx::Form& form : opcode.forms) {
      size_t accepted = 0;
      for (std::string& sample : samples(opcode, form)) {
        if (!front_end_accepts(sample)) continue;
        ++accepted;
        all.push_back(std::move(sample));
      }
      INFO(form.text);
      CHECK(accepted > 0);
    }
  REQUIRE(all.size() > 1000);
  const std::vector<std::string> errors = ptxas_verdicts(all);
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i]);
    CHECK(errors[i] == "");
  }
  // Some refusals come late: the whole has to assemble, each sample in a function of its own.
  // A sample of wgmma repeats registers in its result, which no allocation can satisfy.
  std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n";
  for (size_t i = 0; i < all.size(); ++i)
    if (target_of(all[i]) == "sm_100a")
      text += ".entry k" + std::to_string(i) + "(.param .u64 out) {\n" + declarations() + "L:\n" +
              all[i] + "\n}\n";
  CHECK(ptxas_accepts(text));
}

TEST_CASE("random instructions and single-token mutants that we accept are accepted by ptxas") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  std::mt19937 random(20250);
  std::vector<std::string> accepted;
  for (int round = 0; round < 10; ++round)
    for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes())
      for (const emu::ptx::Form& form : opcode.forms) {
        const std::string sample = random_sample(opcode, form, random);
        for (const std::string& text : {sample, mutant(sample, random), mutant(sample, random)})
          if (front_end_accepts(text)) accepted.push_back(text);
      }
  REQUIRE(accepted.size() > 2000);
  const std::vector<std::string> errors = ptxas_verdicts(accepted);
  for (size_t i = 0; i < accepted.size(); ++i) {
    INFO(accepted[i]);
    CHECK(errors[i] == "");
  }
}
