// SPDX-License-Identifier: MIT
// Statuses, sentences, version and build text.
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

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

TEST_CASE("The last error is empty at first, stays over successes, and is each thread's own") {
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
  CHECK(there == "src_layout = 7 is none of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR");
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
       {"sm_100a cubin (10.0)", "sm_100f cubin (10.0 10.3 10.7)",
        "compute_100f PTX (10.0 10.3 10.7)", "sm_90a cubin (9.0)", "compute_90a PTX (9.0)"}) {
    CHECK(info.find(image) != std::string::npos);
  }
  CHECK(info.find('/') == std::string::npos);  // no path
  CHECK(info.find('\n') == std::string::npos);
}
