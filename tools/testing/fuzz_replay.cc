// SPDX-License-Identifier: MIT
// The entry of a fuzz target without libFuzzer. A file NAME.inputs has several inputs, each after a
// line with its number of bytes (test/fuzz/inputs.py); any other file is one input. Ends with the
// line that every runner ends with; a crash ends it before.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/testing/fuzz_input.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) __attribute__((weak));

namespace {

// A heap block of exactly the input's size, so that a sanitizer or valgrind sees a step too far.
void replay(const std::vector<uint8_t>& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

// The next input of a file of several: its size is in `line`.
std::vector<uint8_t> next_input(std::ifstream& file, const std::string& line,
                                const std::string& path) {
  char* end = nullptr;
  const unsigned long size = strtoul(line.c_str(), &end, 10);
  if (line.empty() || *end != '\0' || size > (1u << 20)) fuzz::found("no size", path.c_str());
  std::vector<uint8_t> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file || file.get() != '\n') fuzz::found("an input is shorter or longer", path.c_str());
  return bytes;
}

// How many inputs the file had.
size_t replay_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fuzz::found("cannot read", path.c_str());
  const std::string suffix = ".inputs";
  if (path.size() < suffix.size() || path.substr(path.size() - suffix.size()) != suffix) {
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    replay(std::vector<uint8_t>(text.begin(), text.end()));
    return 1;
  }
  size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    replay(next_input(file, line, path));
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  size_t count = 0;
  for (int i = 1; i < argc; ++i) count += replay_file(argv[i]);
  const char* tally = getenv("NVFP4_TALLY");
  FILE* out = tally ? fopen(tally, "a") : stdout;
  if (count == 0 || !out) return fprintf(stderr, "replay: no input, or no tally\n"), 1;
  fprintf(out, "%zu passed, 0 failed, 0 skipped\n", count);
  if (out != stdout) fclose(out);
  return 0;
}
