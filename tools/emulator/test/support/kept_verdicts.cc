// SPDX-License-Identifier: MIT
// See kept_verdicts.h.
#include "tools/emulator/test/support/kept_verdicts.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ptx_test {
namespace {

// FNV-1a from another start.
uint64_t hash(const std::string& text, uint64_t start) {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return start;
}

// "" where nothing is kept.
std::string file_of(const std::string& question) {
  const char* const folder = std::getenv("PTXAS_VERDICTS");
  if (folder == nullptr || *folder == 0) return "";
  static const std::string version = execute("ptxas --version 2>&1").output;
  const std::string text = version + question;
  char name[40];
  snprintf(name, sizeof name, "/%016llx%016llx",
           static_cast<unsigned long long>(hash(text, 0xCBF29CE484222325u)),
           static_cast<unsigned long long>(hash(text, 0x9E3779B97F4A7C15u)));
  std::filesystem::create_directories(folder);
  return folder + std::string(name);
}

}  // namespace

Verdict execute(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  Verdict verdict;
  char line[4096];
  while (fgets(line, sizeof line, pipe)) verdict.output += line;
  verdict.status = pclose(pipe);
  return verdict;
}

bool recall(const std::string& question, Verdict* verdict) {
  const std::string name = file_of(question);
  std::ifstream file(name, std::ios::binary);
  if (name.empty() || !(file >> verdict->status) || file.get() != '\n') return false;
  verdict->output.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

// Under its name when it is whole: other processes ask meanwhile.
void keep(const std::string& question, const Verdict& verdict) {
  const std::string name = file_of(question);
  if (name.empty()) return;
  const std::string unfinished = name + "." + std::to_string(getpid());
  std::ofstream(unfinished, std::ios::binary) << verdict.status << '\n' << verdict.output;
  std::filesystem::rename(unfinished, name);
}

}  // namespace ptx_test
