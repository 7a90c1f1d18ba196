// SPDX-License-Identifier: MIT
// The entry of a fuzz target without libFuzzer: every file of the folders and of the names given is
// one input. Ends with the line that every runner ends with; a crash ends it before.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/testing/fuzz_input.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) __attribute__((weak));

namespace {

std::vector<std::string> files_of(const std::string& path) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(path)) return {path};
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fuzz::found("cannot read", path.c_str());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // A heap block of exactly the input's size, so that a sanitizer or valgrind sees a step too far.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const std::string& path : files_of(argv[i])) {
      replay(path);
      ++count;
    }
  }
  const char* tally = getenv("NVFP4_TALLY");
  FILE* out = tally ? fopen(tally, "a") : stdout;
  if (count == 0 || !out) return fprintf(stderr, "replay: no input, or no tally\n"), 1;
  fprintf(out, "%zu passed, 0 failed, 0 skipped\n", count);
  if (out != stdout) fclose(out);
  return 0;
}
