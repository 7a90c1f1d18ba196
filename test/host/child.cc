// SPDX-License-Identifier: MIT
#include "test/host/child.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace host_test {

namespace {

const char* setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string search_path(DriverChoice driver) {
  switch (driver) {
    case DriverChoice::none: return built("test/host/none");
    case DriverChoice::ancient: return built("test/host/ancient");
    case DriverChoice::stub: return built("test/host/stub");
    case DriverChoice::fake: return built("test/host/fake");
    case DriverChoice::idle: return built("bench/idle");
    case DriverChoice::emulator: return built("emulator");
  }
  return "";
}

}  // namespace

std::string built(const std::string& file) {
  return std::string(setting("NVFP4_TEST_BUILD", "build")) + "/" + file;
}

bool emulator_is_built() { return std::ifstream(built("emulator/libcuda.so.1")).good(); }

std::vector<std::string> probe(DriverChoice driver, const std::string& actions,
                               const std::string& environment) {
  const char* program = driver == DriverChoice::idle ? "test/host/idle_probe" : "test/host/probe";
  const std::string command = "LD_LIBRARY_PATH=" + search_path(driver) + " " + environment + " " +
                              setting("NVFP4_TEST_LAUNCHER", "") + " " + built(program) + " " +
                              actions + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  INFO(command << "\n" << text);
  REQUIRE(pclose(pipe) == 0);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

std::string compiler() {
  const std::string info = nvfp4_build_info();  // "..., kernels by nvcc 13.0.88, ..."
  std::smatch found;
  REQUIRE(std::regex_search(info, found, std::regex("kernels by \\S+ (\\d+\\.\\d+)")));
  return found[1];
}

std::vector<std::string> starting_with(const std::vector<std::string>& lines,
                                       const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.rfind(prefix, 0) == 0) found.push_back(line);
  }
  return found;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace host_test
