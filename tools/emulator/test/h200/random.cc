// SPDX-License-Identifier: MIT
// Random programs on a GPU and in the emulator. On a GPU: RANDOM_PROGRAMS of them (20,000) from
// number RANDOM_FIRST (0) on, each compared with the emulator's library beside this program, and
// those that differ shrunk and shown with what they begin with (RANDOM_SHOWN of them; RANDOM_KEEP:
// a folder for their PTX). From 2^32 on they have one step each. In the emulator alone: the first
// ones, compared with what an H200 gave.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tools/emulator/test/h200/random_program.h"
#include "tools/testing/catch.h"

namespace {

using h200::kRandomResults;
using h200::random_program;
using h200::RandomDriver;
using h200::RandomProcess;
using h200::RandomProgram;

constexpr size_t kPerModule = 100;

size_t number_of(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::vector<RandomProgram> programs(size_t first, size_t count) {
  std::vector<RandomProgram> all;
  for (size_t i = 0; i < count; ++i) all.push_back(random_program(first + i));
  return all;
}

// "r5", "half 1 of d2", "p", "line": a word of a lane, and of what the lanes begin with.
std::string name_of(uint32_t word) {
  if (word < 8) return "r" + std::to_string(word);
  if (word < 16) return "half " + std::to_string(word % 2) + " of d" + std::to_string(word / 2 - 4);
  return word == 16 ? "p" : "line";
}

// The words in which the two disagree on one program, a few of them, and what their lanes begin
// with.
std::string difference(uint64_t number, const uint32_t* gpu, const uint32_t* emulator) {
  const std::vector<uint32_t> begin = h200::random_values(number);
  std::string all;
  uint32_t words = 0, lanes = 0;
  char text[160];
  for (uint32_t i = 0; i < kRandomResults; ++i) {
    if (gpu[i] == emulator[i]) continue;
    if (++words > 6) continue;
    std::snprintf(text, sizeof text, "    # lane %u, %s: GPU 0x%08x, emulator 0x%08x\n", i % 32,
                  name_of(i / 32).c_str(), gpu[i], emulator[i]);
    all += text;
    if (lanes >> i % 32 & 1) continue;
    lanes |= 1u << i % 32;
    all += "    #   begins with";
    for (uint32_t word = 0; word <= h200::kRandomWords; ++word) {
      std::snprintf(text, sizeof text, " %08x", begin[word * 32 + i % 32]);
      all += text;
    }
    all += "\n";
  }
  if (!words) return "";
  return all + "    # words that differ: " + std::to_string(words) + "\n";
}

// The program without the steps that the difference does not need.
RandomProgram shrunk(RandomProgram program, const RandomDriver& gpu, const RandomProcess& emulator,
                     std::string* what) {
  const auto differs = [&](const RandomProgram& p) -> std::string {
    const std::vector<uint32_t> words = gpu.run({p});
    return words.empty() ? "" : difference(p.number, words.data(), emulator.run({p}).data());
  };
  *what = differs(program);
  for (size_t i = program.steps.size(); i-- > 0;) {
    RandomProgram less = program;
    less.steps.erase(less.steps.begin() + long(i));
    const std::string text = differs(less);
    if (text.empty()) continue;
    program = less;
    *what = text;
  }
  return program;
}

// If GPU and emulator agree when ptxas leaves the program as it stands (-O0), the difference comes
// from what ptxas makes of it.
const char* as_it_stands(const RandomProgram& p, const RandomDriver& gpu,
                         const RandomProcess& emulator) {
  const std::vector<uint32_t> words = gpu.run({p}, 0);
  if (words.empty()) return "not compiled";
  return words == emulator.run({p}) ? "the emulator's words" : "other words, too";
}

void keep(const RandomProgram& p) {
  const char* const folder = std::getenv("RANDOM_KEEP");
  if (folder)
    std::ofstream(std::string(folder) + "/" + std::to_string(p.number) + ".ptx")
        << h200::random_module({p});
}

struct Recorded {
  uint64_t number, hash;
};
// RANDOM_RECORDED: another file than that of the repository.
std::vector<Recorded> recorded() {
  const std::string here = __FILE__;
  const char* const other = std::getenv("RANDOM_RECORDED");
  std::ifstream in(other ? other
                         : here.substr(0, here.find("h200/random.cc")) + "golden/random_words.csv");
  std::vector<Recorded> all;
  for (std::string word; in >> word;) {
    Recorded r{};
    if (std::sscanf(word.c_str(), "%lu,%lx", &r.number, &r.hash) == 2) all.push_back(r);
  }
  return all;
}

void replay(const RandomDriver& emulator) {
  const std::vector<Recorded> all = recorded();
  REQUIRE(all.size() >= 1100);
  for (size_t first = 0; first < all.size(); first += kPerModule) {
    const size_t count = std::min(kPerModule, all.size() - first);
    std::vector<RandomProgram> part;
    for (size_t i = 0; i < count; ++i) part.push_back(random_program(all[first + i].number));
    const std::vector<uint32_t> words = emulator.run(part);
    for (size_t i = 0; i < count; ++i) {
      INFO("program " << part[i].number);
      CHECK(h200::hash_of(&words[i * kRandomResults]) == all[first + i].hash);
    }
  }
}

struct Compared {
  std::vector<RandomProgram> different, not_compiled;
  std::string record;  // "number,hash"
  void add(const Compared& more) {
    different.insert(different.end(), more.different.begin(), more.different.end());
    not_compiled.insert(not_compiled.end(), more.not_compiled.begin(), more.not_compiled.end());
    record += more.record;
  }
};
Compared compare(const std::vector<RandomProgram>& part, const RandomDriver& gpu,
                 const RandomProcess& emulator) {
  Compared result;
  const std::vector<uint32_t> on_gpu = gpu.run(part);
  if (on_gpu.empty() && part.size() > 1) {  // one at a time: which is it?
    for (const RandomProgram& p : part) result.add(compare({p}, gpu, emulator));
    return result;
  }
  if (on_gpu.empty()) {
    result.not_compiled.push_back(part[0]);
    return result;
  }
  const std::vector<uint32_t> emulated = emulator.run(part);
  for (size_t i = 0; i < part.size(); ++i) {
    const uint32_t* const words = &on_gpu[i * kRandomResults];
    char line[64];
    std::snprintf(line, sizeof line, "%llu,%016llx\n", (unsigned long long)part[i].number,
                  (unsigned long long)h200::hash_of(words));
    result.record += line;
    if (std::memcmp(words, &emulated[i * kRandomResults], 4 * kRandomResults) != 0)
      result.different.push_back(part[i]);
  }
  return result;
}

// RANDOM_RECORD: a file for "number,hash of the words", of all programs; of the emulator's too.
void compare_all(const RandomDriver& gpu, const RandomProcess& emulator) {
  const size_t first = number_of("RANDOM_FIRST", 0), count = number_of("RANDOM_PROGRAMS", 20000);
  const size_t shown = number_of("RANDOM_SHOWN", 30);
  const char* const path = std::getenv("RANDOM_RECORD");
  std::ofstream record;
  if (path) record.open(path);
  Compared all;
  for (size_t at = 0; at < count; at += kPerModule)
    all.add(compare(programs(first + at, std::min(kPerModule, count - at)), gpu, emulator));
  record << all.record;
  record.close();  // what follows may take long
  const std::vector<RandomProgram>& different = all.different;
  std::printf("%zu random programs on %s: %zu differ in the emulator; ptxas cannot compile %zu\n",
              count, gpu.device().c_str(), different.size(), all.not_compiled.size());
  for (const RandomProgram& p : all.not_compiled)
    std::printf("  not compiled: %llu\n", (unsigned long long)p.number);
  std::fflush(stdout);
  for (size_t i = 0; i < std::min(shown, different.size()); ++i) {
    std::string what;
    const RandomProgram least = shrunk(different[i], gpu, emulator, &what);
    std::string text;
    for (const std::string& step : least.steps) text += "    " + step + "\n";
    std::printf("  program %lu\n%s%s    # ptxas -O0: %s\n", least.number, text.c_str(),
                what.c_str(), as_it_stands(least, gpu, emulator));
    keep(least);
    std::fflush(stdout);
  }
  CHECK(different.empty());
}

}  // namespace

TEST_CASE("random programs give the same words on a GPU and in the emulator", "[random]") {
  setenv("EMU_DEVICE", "H200", 0);
  const RandomProcess emulator(h200::beside_this_program("emulator/libcuda.so.1"));
  const RandomDriver driver("libcuda.so.1");
  if (driver.emulated() && !std::getenv("RANDOM_RECORD"))
    replay(driver);
  else
    compare_all(driver, emulator);
}
