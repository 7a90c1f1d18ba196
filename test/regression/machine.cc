// SPDX-License-Identifier: MIT
// Machines and drivers other than the developer's.
#include <dlfcn.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "test/regression/regression.h"

using namespace regression;
using host_test::contains;
using host_test::DriverChoice;
using host_test::probe;
using host_test::starting_with;
using Lines = std::vector<std::string>;

namespace {

const char* const kLibrary = "build/libnvfp4gemm.so";

std::string content(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

nvfp4_gemm_desc plain_desc() {
  nvfp4_gemm_desc g = support::make_desc(make_problem({64, 64, 64}), NVFP4_SCALE_LAYOUT_128X4);
  g.a = g.b = g.a_scales = g.b_scales = reinterpret_cast<void*>(uint64_t{1} << 40);
  g.d = reinterpret_cast<void*>(uint64_t{1} << 44);
  return g;
}

}  // namespace

// supports_fp4 said yes and the first launch was an illegal instruction.
TEST_CASE("vllm #38423: the question about support is answered yes but the launch fails",
          "[regression]") {
  const nvfp4_gemm_desc g = plain_desc();
  int served = 0;
  for (const int capability : {75, 80, 86, 89, 90, 100, 101, 103, 110, 120, 121}) {
    const bool said = nvfp4_gemm_supported(&g, capability) == NVFP4_SUCCESS;
    const Lines lines =
        probe(DriverChoice::fake, "run", "FAKE_CAPABILITY=" + std::to_string(capability));
    CAPTURE(capability);
    CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == (said ? 1 : 0));
    CHECK(starting_with(lines, "call cuLaunchKernel").size() == (said ? 1 : 0));
    served += said;
  }
  CHECK(served > 0);
  CHECK(served < 11);
}

// A check of the major number let kernels for 10.0 run on 10.3: Xid 13 and hangs.
TEST_CASE("sglang #34360: the image is chosen by the major number alone", "[regression]") {
  // 10.1 and 10.2 have the major number of a B200 and no kernel here.
  for (const int capability : {101, 102, 109}) {
    const nvfp4_gemm_desc g = plain_desc();
    CAPTURE(capability);
    CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_STATUS_UNSUPPORTED_ARCH);
    const Lines lines =
        probe(DriverChoice::fake, "run", "FAKE_CAPABILITY=" + std::to_string(capability));
    CHECK(starting_with(lines, "NVFP4_STATUS_UNSUPPORTED_ARCH").size() == 1);
    CHECK(starting_with(lines, "call cuLibraryLoadData").empty());
  }
  // An image that says 10.0 alone is not the one that a B300 gets.
  char text[4096];
  const nvfp4_gemm_desc g = plain_desc();
  REQUIRE(nvfp4_gemm_explain(&g, 103, 148, text, sizeof text) == NVFP4_SUCCESS);
  INFO(text);
  CHECK(!contains(text, "sm_100a"));
  CHECK(contains(text, "sm_100f cubin"));
}

// On a B300 the launch itself answered "invalid argument".
TEST_CASE("vllm #46796: a launch that the driver refuses", "[regression]") {
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_ANSWERS=cuLaunchKernelEx:1:1");
  const Lines answers = starting_with(lines, "NVFP4_STATUS_DRIVER_ERROR: ");
  REQUIRE(answers.size() == 1);
  CHECK(contains(answers[0], "cuLaunchKernelEx"));
}

// "Arch unsupported": neither the found one nor the supported ones were named.
TEST_CASE("TensorRT-LLM #2869: which architecture was found and which are supported",
          "[regression]") {
  const nvfp4_gemm_desc g = plain_desc();
  REQUIRE(nvfp4_gemm_supported(&g, 75) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  CHECK(contains(nvfp4_last_error(), "7.5"));
  CHECK(contains(nvfp4_last_error(), "10.0"));
  CHECK(contains(nvfp4_last_error(), "10.3"));
}

// cuBLAS failed with a number and nothing else.
TEST_CASE("TransformerEngine #376: a driver's error without the call that gave it",
          "[regression]") {
  for (const char* call : {"cuTensorMapEncodeTiled", "cuLaunchKernelEx", "cuKernelSetAttribute"}) {
    const Lines lines =
        probe(DriverChoice::fake, "run", std::string("FAKE_ANSWERS=") + call + ":1:999");
    const Lines answers = starting_with(lines, "NVFP4_STATUS_");
    CAPTURE(call);
    REQUIRE(answers.size() == 1);
    CHECK(contains(answers[0], call));
    CHECK(contains(answers[0], "999"));
  }
}

// An illegal instruction of earlier work showed up as the failure of an innocent copy.
TEST_CASE("btx #89: an error of earlier work reported as this call's", "[regression]") {
  const std::string code = GENERATE("700", "715", "719");
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_ANSWERS=cuLaunchKernelEx:1:" + code);
  CHECK(starting_with(lines, "NVFP4_STATUS_PRIOR_ERROR").size() == 1);
}

// A symbol was missing when the module was imported on a machine without that GPU.
TEST_CASE("vllm #40255: the library cannot be loaded where it cannot run", "[regression]") {
  // The probe links the library; each function that needs no GPU still works.
  const Lines lines = probe(DriverChoice::none, "run-empty run prepare plan");
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "NVFP4_SUCCESS: ");
  for (size_t i = 1; i < 4; ++i) CHECK(contains(lines[i], "NVFP4_STATUS_NO_DRIVER: "));
  void* again = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  CHECK(again != nullptr);
  if (again != nullptr) dlclose(again);
}

// The header declared a function that the library did not have.
TEST_CASE("pytorch #196073: a declared function is missing from the library", "[regression]") {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const std::string header = content("include/nvfp4_gemm.h");
  const std::regex declaration(R"(NVFP4_API\s[^;(]*?(nvfp4_\w+)\()");
  int functions = 0;
  for (std::sregex_iterator at(header.begin(), header.end(), declaration), end; at != end; ++at) {
    CAPTURE(at->str(1));
    CHECK(dlsym(library, at->str(1).c_str()) != nullptr);
    ++functions;
  }
  CHECK(functions >= 15);
  dlclose(library);
}

// Wheels of 2.38 GB passed the index's limit of 2 GiB.
TEST_CASE("flashinfer #4757: the size of the library", "[regression]") {
  struct stat file;
  REQUIRE(stat(kLibrary, &file) == 0);
  CHECK(file.st_size < 10600000);  // as tools/gates/check_hardening.sh
}

// A cache built for the plain architecture lacked the FP4 instructions, and nothing noticed.
TEST_CASE("FreeToken #277: the FP4 instruction is missing from the image", "[regression]") {
  const std::string ptx = content(NVFP4_TEST_KERNEL_DIR "/gemm_sm100.ptx");
  CHECK(contains(ptx, ".target sm_100f"));
  CHECK(contains(ptx, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale"));
  CHECK(contains(content(kLibrary), content(NVFP4_TEST_KERNEL_DIR "/gemm_sm100.ptx.fatbin")));
  for (const char* image : {"sm_100a", "sm_100f", "compute_100f"}) {
    CHECK(contains(nvfp4_build_info(), image));
  }
}

// Shared memory was counted too high and every launch answered an internal error.
TEST_CASE("cutlass #3096: more shared memory than the device has", "[regression]") {
  const Lines lines = probe(DriverChoice::fake, "run");
  const std::regex shared(R"(.* shared=(\d+) .*)");
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 1);
  std::smatch bytes;
  REQUIRE(std::regex_match(launches[0], bytes, shared));
  CHECK(std::stoi(bytes[1]) <= 227 * 1024);
  // And the emulator, which knows the limit of a B200 and a B300, launches every variant.
  for (const char* device : {"B200", "B300"}) {
    for (const char* variant : {"sm100_128x64x256", "sm100_128x128x256", "sm100_256x256x256"}) {
      const std::string command = std::string("EMU_DEVICE=") + device +
                                  " LD_LIBRARY_PATH=build/emulator build/nvfp4 run --m 64 --n 64"
                                  " --k 64 --data exact --variant " +
                                  variant + " >/dev/null 2>&1";
      CAPTURE(command);
      CHECK(std::system(command.c_str()) == 0);
    }
  }
}

// The device's number was taken as 0, so the second GPU got the first one's settings.
TEST_CASE("TransformerEngine #3134: everything is done for device 0", "[regression]") {
  const Lines lines =
      probe(DriverChoice::fake, "run run", "FAKE_CAPABILITY=100 FAKE_SECOND_CAPABILITY=103");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 2);
  std::set<std::string> devices;
  for (const std::string& line : starting_with(lines, "call cuKernelSetAttribute")) {
    devices.insert(line.substr(line.find("device="), 8));
  }
  CHECK(devices == std::set<std::string>{"device=0", "device=1"});
}
