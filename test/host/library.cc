// SPDX-License-Identifier: MIT
// The shared library as a file: what it exports, what it needs, and what its header declares. And
// what it says of itself: statuses, the last error, version and build.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <thread>

#include "nvfp4_gemm.h"
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

TEST_CASE("The library exports the functions that its header declares and nothing else") {
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
TEST_CASE("The library cannot open files or start programs and hardly allocate") {
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

TEST_CASE("Every status of the header has its own name and its own sentence") {
#define STATUS(value) \
  { value, #value }
  const struct {
    nvfp4_status value;
    const char* name;
  } rows[] = {STATUS(NVFP4_SUCCESS),
              STATUS(NVFP4_STATUS_INTERNAL),
              STATUS(NVFP4_STATUS_NULL_POINTER),
              STATUS(NVFP4_STATUS_MISALIGNED),
              STATUS(NVFP4_STATUS_INVALID_VALUE),
              STATUS(NVFP4_STATUS_INVALID_ENUM),
              STATUS(NVFP4_STATUS_INVALID_STRUCT),
              STATUS(NVFP4_STATUS_OVERLAP),
              STATUS(NVFP4_STATUS_LIMIT),
              STATUS(NVFP4_STATUS_NOT_SUPPORTED),
              STATUS(NVFP4_STATUS_NO_DRIVER),
              STATUS(NVFP4_STATUS_DRIVER_TOO_OLD),
              STATUS(NVFP4_STATUS_NO_DEVICE),
              STATUS(NVFP4_STATUS_NO_CONTEXT),
              STATUS(NVFP4_STATUS_UNSUPPORTED_ARCH),
              STATUS(NVFP4_STATUS_IMAGE_LOAD),
              STATUS(NVFP4_STATUS_AFTER_FORK),
              STATUS(NVFP4_STATUS_DRIVER_ERROR),
              STATUS(NVFP4_STATUS_PRIOR_ERROR),
              STATUS(NVFP4_STATUS_OUT_OF_MEMORY),
              STATUS(NVFP4_STATUS_WRONG_RESULT)};
#undef STATUS
  std::set<nvfp4_status> numbers;
  std::set<std::string> sentences;
  for (const auto& row : rows) {
    CHECK(std::string(nvfp4_status_name(row.value)) == row.name);
    const std::string sentence = nvfp4_status_string(row.value);
    CHECK(sentence.back() == '.');
    sentences.insert(sentence);
    numbers.insert(row.value);
  }
  CHECK(sentences.size() == std::size(rows));
  for (nvfp4_status number = -3; number < 100; ++number) {
    const bool unknown = std::string(nvfp4_status_name(number)) == "NVFP4_STATUS_UNKNOWN";
    CHECK(unknown == (numbers.count(number) == 0));
    CHECK(nvfp4_status_string(number) != nullptr);
  }
}

TEST_CASE("The last error is empty at first and stays over successes and is each thread's own") {
  nvfp4_gemm_run(nullptr, nullptr);
  const std::string here = nvfp4_last_error();
  std::string at_start, there;
  std::thread other([&] {
    at_start = nvfp4_last_error();
    nvfp4_scale_convert_host(nullptr, 7, nullptr, 1, 1, 16);
    there = nvfp4_last_error();
  });
  other.join();
  CHECK(at_start.empty());
  CHECK(there ==
        "src_layout = 7 is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR");
  CHECK(std::string(nvfp4_last_error()) == here);
  CHECK(nvfp4_scale_convert_host(nullptr, 1, nullptr, 1, 0, 16) == NVFP4_SUCCESS);
  CHECK(std::string(nvfp4_last_error()) == here);
}

TEST_CASE("Version and build text agree with the header and name every image") {
  CHECK(nvfp4_version() == NVFP4_VERSION);
  const std::string info = nvfp4_build_info();
  const std::string version = std::to_string(NVFP4_VERSION_MAJOR) + "." +
                              std::to_string(NVFP4_VERSION_MINOR) + "." +
                              std::to_string(NVFP4_VERSION_PATCH);
  CAPTURE(info);
  CHECK(info.rfind("nvfp4gemm " + version + ", kernels by ", 0) == 0);
  for (const char* image :
       {"sm_100a cubin (10.0", "sm_100f cubin (10.0 10.3 10.7", "compute_100f PTX (10.0 10.3 10.7",
        "sm_90a cubin (9.0", "compute_90a PTX (9.0"}) {
    CHECK(info.find(image + ("; CUDA " + host_test::compiler()) + ")") != std::string::npos);
  }
  // By name, and once for each capability.
  CHECK(info.find("mma.sync compute_80 PTX (10.0 10.3 8.0 8.6 8.9 10.7 11.0 12.0 12.1 9.0; CUDA "
                  "12.4)") != std::string::npos);
  CHECK(info.find("quantizer compute_80 PTX (CUDA 12.4)") != std::string::npos);
  CHECK(info.find('/') == std::string::npos);  // no path
  CHECK(info.find('\n') == std::string::npos);
}
