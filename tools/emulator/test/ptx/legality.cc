// SPDX-License-Identifier: MIT
// The opcode table against ptxas: what we accept, it accepts. `make check-legality` asks for more.
#include <cstdio>
#include <cstdlib>
#include <future>
#include <sstream>
#include <thread>

#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/ptx_mutants.h"
#include "tools/emulator/test/support/ptx_samples.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace ptx_test;

// "not supported" is the machine's refusal, which does not concern the table.
bool front_end_accepts(const std::string& instruction) {
  const std::string v = body_verdict("L: T: .branchtargets L; " + instruction);
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
    "every row of opcodes.def has an instruction that ptxas accepts and none that it refuses") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const bool whole = std::getenv("NVFP4_LONG") != nullptr;
  std::vector<std::string> all;
  std::vector<bool> to_code;  // the first of each row, and every fourth
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes())
    for (const emu::ptx::Form& form : opcode.forms) {
      size_t accepted = 0;
      for (std::string& sample : samples(opcode, form)) {
        // small_floats.cc has the verdicts for what is newer than the .version of this frame.
        accepted += body_verdict("L: " + sample).find("needs .version 9.") != std::string::npos;
        if (!front_end_accepts(sample)) continue;
        to_code.push_back(whole || accepted == 0 || all.size() % 4 == 0);
        ++accepted;
        all.push_back(std::move(sample));
      }
      INFO(form.text);
      CHECK(accepted > 0);
    }
  REQUIRE(all.size() > 1000);
  const std::vector<std::string> errors = ptxas_verdicts(all, plain_frame(), to_code);
  for (size_t i = 0; i < all.size(); ++i) {
    INFO(all[i]);
    CHECK(errors[i] == "");
  }
}

namespace {

// The files whose statements are changed: a probe, and what LEGALITY_PTX names, : between them.
std::vector<std::string> files() {
  std::vector<std::string> all{EMU_TEST_PTX_DIR "/load_probe.ptx"};
  const char* const more = std::getenv("LEGALITY_PTX");
  std::stringstream names(more ? more : "");
  for (std::string name; std::getline(names, name, ':');) all.push_back(name);
  return all;
}

// Mutants of the rows and of the statements in files(), a share each, and whole modules.
Score score_of(size_t mutants, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Corpus> corpora;
  for (const std::string& file : files())
    for (Corpus& c : file_corpora(file)) corpora.push_back(std::move(c));
  const size_t from_files = corpora.size();
  REQUIRE(from_files > 0);
  for (size_t i = 0; i < from_files * 2; ++i) corpora.push_back(row_corpus(random));
  const size_t modules = mutants / 20, share = (mutants - modules) / corpora.size() + 1;
  const size_t threads = std::max(1u, std::thread::hardware_concurrency());
  Score total;
  for (size_t first = 0; first < corpora.size(); first += threads) {
    std::vector<std::future<Score>> parts;
    for (size_t i = first; i < std::min(first + threads, corpora.size()); ++i)
      parts.push_back(std::async(std::launch::async, judge, std::cref(corpora[i]), share,
                                 uint32_t(seed * 1000 + i)));
    for (auto& part : parts) total.add(part.get());
  }
  total.add(judge_modules(sample_modules(), modules, seed));
  return total;
}

}  // namespace

TEST_CASE("single-token mutants that we accept are accepted by ptxas") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const size_t mutants = std::getenv("NVFP4_LONG") ? 600 : 200;
  const Score score = score_of(mutants, 20250);
  CHECK(score.mutants >= mutants);
  CHECK(score.both_accept > mutants / 20);
  CHECK(score.both_refuse > mutants / 4);
  for (const std::string& mutant : score.too_lenient) {
    INFO(mutant);
    CHECK(mutant == "");
  }
}

TEST_CASE("as many mutants as LEGALITY_MUTANTS says", "[.][legality]") {
  REQUIRE(have_ptxas());
  const char* const mutants = std::getenv("LEGALITY_MUTANTS");
  const char* const seed = std::getenv("LEGALITY_SEED");
  const Score score =
      score_of(mutants ? strtoul(mutants, nullptr, 10) : 20000, seed ? uint32_t(atoi(seed)) : 1);
  size_t strict = 0;
  for (const auto& [reason, n] : score.too_strict) strict += n;
  printf(
      "%zu mutants: %zu accepted by both, %zu refused by both,\n"
      "%zu accepted by us and refused by ptxas, %zu refused by us and accepted by ptxas:\n",
      score.mutants, score.both_accept, score.both_refuse, score.too_lenient.size(), strict);
  for (const auto& [reason, n] : score.too_strict) printf("%6zu  %s\n", n, reason.c_str());
  if (std::getenv("LEGALITY_EXAMPLES"))
    for (const std::string& example : score.strict_examples) printf("%s\n", example.c_str());
  for (const std::string& mutant : score.too_lenient) {
    INFO(mutant);
    CHECK(mutant == "");
  }
}
