// SPDX-License-Identifier: MIT
// The shared library as a file: what it exports, what it needs, and what its header declares.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "test/host/child.h"
#include "tools/testing/catch.h"

namespace {

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

std::set<std::string> all_matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

std::string file_text(const char* path) {
  std::ifstream file(path);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("The library exports the functions that its header declares, and nothing else") {
  const std::set<std::string> declared = all_matches(
      file_text("include/nvfp4_gemm.h"), "NVFP4_API [a-z0-9_ ]*[ *](nvfp4_[a-z0-9_]+)\\(");
  CHECK(declared.size() > 20);  // or the expression finds nothing
  const std::string symbols =
      output_of("nm -D --defined-only " + host_test::built("libnvfp4gemm.so"));
  CHECK(all_matches(symbols, "[^A] (\\w+)@@NVFP4GEMM_0") == declared);
  // One line per function, and one for the version node itself.
  CHECK(size_t(std::count(symbols.begin(), symbols.end(), '\n')) == declared.size() + 1);
}

TEST_CASE("The library needs the C library and nothing else") {
  const std::string dynamic = output_of("readelf -dW " + host_test::built("libnvfp4gemm.so"));
  for (const std::string& name : all_matches(dynamic, "NEEDED.*\\[(.*)\\]")) {
    CAPTURE(name);
    CHECK(std::regex_match(name, std::regex("(libc|libm|libdl|ld-linux.*)\\.so\\.[0-9]+")));
  }
  CHECK(dynamic.find("Library soname: [libnvfp4gemm.so.0]") != std::string::npos);
  CHECK(dynamic.find("RPATH") == std::string::npos);
  CHECK(dynamic.find("RUNPATH") == std::string::npos);
  CHECK(dynamic.find("TEXTREL") == std::string::npos);
}

// malloc and posix_memalign: a log callback and a plan. That nothing else uses them: plans.cc.
TEST_CASE("The library cannot open files or start programs, and hardly allocate") {
  const std::string symbols =
      output_of("nm -D --undefined-only " + host_test::built("libnvfp4gemm.so"));
  const std::set<std::string> used = all_matches(symbols, " U (\\w+)");
  CHECK(used.count("dlopen") == 1);
  for (const char* name : {"open", "open64", "fopen", "fopen64", "system", "popen", "execve",
                           "posix_spawn", "calloc", "realloc", "getenv", "mmap"}) {
    CAPTURE(name);
    CHECK(used.count(name) == 0);
  }
}
