// SPDX-License-Identifier: MIT
// The .version that targets and instructions need, against ptxas.
#include <cstdlib>
#include <cstring>
#include <map>

#include "tools/emulator/ptx/target.h"
#include "tools/emulator/test/support/ptx_judge.h"
#include "tools/emulator/test/support/ptx_samples.h"
#include "tools/emulator/test/support/ptx_support.h"

namespace {

using namespace ptx_test;
using emu::ptx::dotted;
using emu::ptx::Target;

// What the ptxas on PATH says of a version that does not exist: "current version is '9.0'".
int newest_of_ptxas() {
  const std::string said = ptxas_verdict(module_head("sm_90", 99) + ".entry k() { ret; }\n");
  const char* const words = "current version is '";
  const size_t at = said.find(words);
  REQUIRE(at != std::string::npos);
  return int(10 * std::stod(said.substr(at + std::strlen(words))) + 0.5);
}

// As the emulator knows them.
std::vector<int> versions() {
  std::vector<int> all;
  for (int v = 60, known; v < 100; ++v)
    if (emu::ptx::find_version(dotted(v), known)) all.push_back(v);
  return all;
}

int version_below(int version) {
  int below = 0;
  for (const int v : versions())
    if (v < version) below = v;
  return below;
}

Target target_named(const std::string& name) {
  Target target;
  REQUIRE(emu::ptx::find_target(name, target));
  return target;
}

std::string our_verdict_at(const std::string& statement, const std::string& target, int version) {
  return verdict(frame_for(statement, target, version).text + statement + "\n}\n",
                 target_named(target).number);
}

// The first version with which the front end loads it, 0 = none.
int first_version(const std::string& statement, const std::string& target) {
  const int lowest = target_named(target).first;
  std::string v = our_verdict_at(statement, target, lowest);
  if (v == "accepted") return lowest;
  int needed = 0;
  // A type may need one version and the instruction, which is looked at later, a newer one.
  while (v != "accepted" && needed < 90) {
    const char* const words = " needs .version ";
    const size_t at = v.find(words);
    if (at == std::string::npos) break;
    needed = int(10 * std::stod(v.substr(at + std::strlen(words))) + 0.5);
    if (needed > 90) break;
    v = our_verdict_at(statement, target, needed);
  }
  INFO(statement << ": " << v);
  if (v != "accepted") {
    CHECK(our_verdict_at(statement, target, 90) != "accepted");
    return 0;
  }
  CHECK(our_verdict_at(statement, target, version_below(needed)) != "accepted");
  return needed;
}

// Every row, each alternative and option, and some drawn.
std::vector<std::string> row_samples() {
  std::mt19937 random(2026);
  std::vector<std::string> all;
  for (const emu::ptx::Opcode& opcode : emu::ptx::OpcodeTable::get().opcodes())
    for (const emu::ptx::Form& form : opcode.forms) {
      for (std::string& s : samples(opcode, form)) all.push_back(std::move(s));
      for (int i = 0; i < 4; ++i) all.push_back(random_sample(opcode, form, random));
    }
  return all;
}

}  // namespace

TEST_CASE("versions and targets are those of ptxas with each target from its first version on") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const auto theirs = [](const std::string& target, int version) {
    return ptxas_verdict(module_head(target, version) + ".entry k() { ret; }\n");
  };
  const int newest = newest_of_ptxas();
  CHECK(newest >= 90);
  for (int v = 60, known; v <= newest; ++v) {
    CAPTURE(v);
    const bool unsupported = theirs("sm_90", v).find("Unsupported .version") != std::string::npos;
    CHECK(unsupported != emu::ptx::find_version(dotted(v), known));
  }
  const char* const targets[] = {
#define EMU_TARGET(number, variant, first) "sm_" #number #variant,
#include "tools/emulator/ptx/targets.def"
#undef EMU_TARGET
  };
  for (const char* target : targets) {
    const int first = target_named(target).first;
    CAPTURE(target, first);
    if (first > newest) continue;
    CHECK(theirs(target, first) == "");
    CHECK(theirs(target, version_below(first)).find("does not support .target") !=
          std::string::npos);
  }
}

// There are many more samples than rows. Two targets take all samples, and each of the others takes
// a fourth of them.
TEST_CASE("a row is loaded from the .version on from which ptxas accepts it and not before") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const std::vector<std::string> all = row_samples();
  size_t turn = 0;
  for (const char* target :
       {"sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_100f", "sm_120a"}) {
    std::map<int, std::vector<std::string>> accepted, refused;  // by version
    size_t late = 0;
    const bool whole = std::getenv("NVFP4_LONG") != nullptr || std::strcmp(target, "sm_90") == 0 ||
                       std::strcmp(target, "sm_100a") == 0;
    ++turn;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!whole && i % 4 != turn % 4) continue;
      const std::string& sample = all[i];
      const int first = first_version(sample, target);
      if (!first) continue;
      accepted[first].push_back(sample);
      // Below 8.3 there is no register to write .b128 with: declarations are judged below.
      const bool wide = sample.find(".b128") != std::string::npos;
      if (first == target_named(target).first || wide) continue;
      refused[version_below(first)].push_back(sample);
      ++late;
    }
    CAPTURE(target);
    CHECK(accepted[target_named(target).first].size() > (whole ? 1000 : 250));
    if (std::strcmp(target, "sm_100f") != 0) CHECK(late > (whole ? 10 : 3));  // all is of 8.8
    for (const auto& [version, list] : accepted) {
      const std::vector<std::string> errors = parser_verdicts(list, frame_at(target, version));
      for (size_t i = 0; i < list.size(); ++i) {
        INFO(".version " << dotted(version) << ": " << list[i]);
        CHECK(errors[i] == "");
      }
    }
    for (const auto& [version, list] : refused) {
      const std::vector<std::string> errors = parser_verdicts(list, frame_at(target, version));
      for (size_t i = 0; i < list.size(); ++i) {
        INFO(".version " << dotted(version) << ": " << list[i] << ": " << errors[i]);
        CHECK(errors[i].find("requires ") != std::string::npos);  // a version, or a newer target
      }
    }
  }
}

// The reverse of the test above: a target is denied nothing that it has. Some of what ptxas checks
// it finds only when it generates code.
TEST_CASE("ptxas refuses to a target what it lacks by the rows") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  const std::vector<std::string> all = row_samples();
  const bool whole = std::getenv("NVFP4_LONG") != nullptr;
  size_t turn = 0;
  for (const char* target :
       {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103a", "sm_110f", "sm_120a"}) {
    ++turn;
    std::vector<std::string> denied;
    for (size_t i = turn % 9; i < all.size(); i += whole ? 1 : 9)
      if (our_verdict_at(all[i], target, 90).find(" needs target ") != std::string::npos)
        denied.push_back(all[i]);
    CAPTURE(target);
    CHECK(denied.size() > (whole ? 100 : 10));
    const std::vector<std::string> errors = parser_verdicts(denied, frame_at(target, 90));
    for (size_t i = 0; i < denied.size(); ++i) {
      INFO(denied[i]);
      CHECK((!errors[i].empty() ||
             !ptxas_accepts(frame_at(target, 90).text + denied[i] + "\nret;\n}\n")));
    }
  }
}

namespace {

// What stands outside of instructions, a module each.
std::vector<std::string> declaring_modules() {
  const std::string entry = ".entry k() { ret; }\n";
  std::vector<std::string> all = {
      ".extern .entry k() { ret; }\n",
      ".common .entry k() { ret; }\n",
      ".common .func f() { ret; }\n" + entry,
      ".weak .func f() { ret; }\n" + entry,
      ".func f() .noreturn { trap; exit; }\n" + entry,
      ".func f(.param .b32 _) { ret; }\n" + entry,
      ".entry k(.param .b32 _) { ret; }\n",
      ".func f(.param .align 16 .b8 a[8000]) { ret; }\n" + entry,
      ".entry k(.param .u64 .ptr .global .align 16 p, .param .u64 .ptr q) { ret; }\n",
  };
  for (const char* directive :
       {".maxntid 32, 1, 1", ".reqntid 32", ".maxnreg 32", ".minnctapersm 2", ".maxnctapersm 2",
        ".maxntid 32 .minnctapersm 2", ".reqnctapercluster 2", ".explicitcluster",
        ".maxclusterrank 4", ".reqnctapercluster 2 .maxclusterrank 4", ".noreturn",
        ".reqntid 32 .reqnctapercluster 2 .blocksareclusters", ".pragma \"nounroll\";"})
    all.push_back(".entry k() " + std::string(directive) + " { ret; }\n");
  for (const char* bytes : {"4352", "4353", "32764", "32765"})
    all.push_back(".entry k(.param .b8 p[" + std::string(bytes) + "]) { ret; }\n");
  for (const char* name :
       {"clusterid.x", "nclusterid.x", "cluster_ctaid.x", "cluster_nctaid.x", "cluster_ctarank",
        "cluster_nctarank", "laneid", "lanemask_ge", "clock", "globaltimer_hi", "total_smem_size",
        "dynamic_smem_size", "aggr_smem_size"})
    all.push_back(".entry k() { .reg .b32 r; mov.b32 r, %" + std::string(name) + "; ret; }\n");
  for (size_t i = 1; i <= size_t(emu::ptx::Type::ue8m0x2); ++i) {
    const std::string type = "." + std::string(text_of(emu::ptx::Type(i)));
    all.push_back(".entry k() { .reg " + type + " r; ret; }\n");
    all.push_back(".global " + type + " v;\n" + entry);
    all.push_back(".entry k() { .shared " + type + " v; ret; }\n");
    all.push_back(".entry k() { .local " + type + " v; ret; }\n");
    all.push_back(".entry k(.param " + type + " p) { ret; }\n");
  }
  for (const char* linkage : {".extern", ".visible", ".weak", ".common"})
    for (const char* space : {".global", ".shared", ".const"})
      all.push_back(std::string(linkage) + " " + space + " .b32 v;\n" + entry);
  return all;
}

}  // namespace

TEST_CASE("declarations and directives are loaded from the .version on from which ptxas has them") {
  if (!have_ptxas()) SKIP_TEST("no ptxas on PATH");
  std::vector<std::string> modules = declaring_modules();
  for (const char* name : {"sm_75", "sm_90"}) {
    size_t late = 0;
    const Target target = target_named(name);
    std::vector<std::string> refused;
    for (const std::string& module : modules) {
      std::string too_old;
      for (const int v : versions()) {
        if (v < target.first) continue;
        const std::string text = module_head(name, v) + module;
        const std::string ours = verdict(text, target.number);
        INFO(text << ours);
        if (ours.find("needs .version") != std::string::npos) {
          too_old = text;
          continue;
        }
        if (ours == "accepted") CHECK(ptxas_verdict(text) == "");
        if (!too_old.empty()) {
          CHECK(ptxas_verdict(too_old).find("rror") != std::string::npos);
          ++late;
        }
        if (ours != "accepted") refused.push_back(module);
        break;
      }
    }
    modules = std::move(refused);  // what the lower target takes needs no second answer
    CAPTURE(name);
    CHECK(late >= (target.number == 75 ? 8 : 1));
  }
}
