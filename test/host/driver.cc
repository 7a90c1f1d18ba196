// SPDX-License-Identifier: MIT
// The way from a checked problem to a launch, seen from a driver that records every call, and every
// way in which a driver can say no.
#include <fstream>
#include <regex>

#include "nvfp4_gemm.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

using host_test::contains;
using host_test::DriverChoice;
using host_test::probe;
using host_test::starting_with;
using Lines = std::vector<std::string>;

TEST_CASE("Without a driver a run answers NO_DRIVER with the loader's reason again and again") {
  const Lines lines = probe(DriverChoice::none, "run run");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == lines[1]);
  CHECK(contains(lines[0], "NVFP4_STATUS_NO_DRIVER: libcuda.so.1 cannot be opened: "));
}

TEST_CASE("An empty problem succeeds without a driver and without pointers") {
  CHECK(probe(DriverChoice::none, "run-empty") == Lines{"NVFP4_SUCCESS: "});
}

TEST_CASE("A driver that is too old or a stub or without devices is named") {
  struct Row {
    const char *environment, *answer;
  };
  const Row row = GENERATE(
      Row{"FAKE_MISSING=cuLaunchKernelEx",
          "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver has no cuLaunchKernelEx of CUDA 11.6"},
      Row{"FAKE_MISSING=cuOccupancyMaxActiveClusters",
          "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver has no cuOccupancyMaxActiveClusters of "
          "CUDA "
          "11.7"},
      Row{"FAKE_ANSWERS=cuGetProcAddress:1:34",
          "NVFP4_STATUS_NO_DRIVER: libcuda.so.1 is the toolkit's stub, not a driver"},
      Row{"FAKE_ANSWERS=cuInit:1:34",
          "NVFP4_STATUS_NO_DRIVER: cuInit answers FAKE_ERROR_34 (34): a planned answer"},
      Row{"FAKE_ANSWERS=cuInit:1:803",
          "NVFP4_STATUS_NO_DRIVER: cuInit answers FAKE_ERROR_803 (803): a planned answer"},
      Row{"FAKE_ANSWERS=cuInit:1:100",
          "NVFP4_STATUS_NO_DEVICE: cuInit answers FAKE_ERROR_100 (100): a planned answer"},
      Row{"FAKE_DEVICES=0", "NVFP4_STATUS_NO_DEVICE: the CUDA driver sees no GPU"});
  const Lines answers = starting_with(probe(DriverChoice::fake, "run", row.environment), "NVFP4_");
  CHECK(answers == Lines{row.answer});
}

// As cuDriverGetVersion counts.
static int driver_of_compiler() {
  int major = 0, minor = 0;
  REQUIRE(sscanf(host_test::compiler().c_str(), "%d.%d", &major, &minor) == 2);
  return 1000 * major + 10 * minor;
}

static std::string answer(DriverChoice driver, const char* actions, const std::string& settings) {
  return starting_with(probe(driver, actions, settings.c_str()), "NVFP4_").at(0);
}

TEST_CASE("A driver that unpacks no image is refused before anything is loaded") {
  const std::string refused =
      "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver supports CUDA 12.3; this library needs 12.4 or "
      "newer";
  CHECK(answer(DriverChoice::fake, "prepare", "FAKE_VERSION=12030") == refused);
  if (!host_test::emulator_is_built()) return;
  CHECK(answer(DriverChoice::emulator, "prepare", "EMU_DRIVER_VERSION=12030") == refused);
}

TEST_CASE("The oldest driver is the one of the CUDA that compiled the images of a GPU") {
  const int oldest = driver_of_compiler();
  const auto with = [](int version) {
    return "FAKE_CAPABILITY=110 FAKE_VERSION=" + std::to_string(version);
  };
  const std::string needs =
      "; the kernels for this GPU need " + host_test::compiler() + " or newer";
  CHECK(answer(DriverChoice::fake, "prepare", with(12080)) ==
        "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver supports CUDA 12.8" + needs);
  CHECK(contains(answer(DriverChoice::fake, "prepare", with(oldest - 10)), needs));
  CHECK(answer(DriverChoice::fake, "prepare", with(oldest)) == "NVFP4_SUCCESS: ");
}

// A cubin is of the CUDA that compiled, the text of an older one.
TEST_CASE("An older driver gets the PTX for 8.0 where it is too old for the cubin") {
  const std::string capability = GENERATE("80", "86", "89", "120");
  const std::string settings = "FAKE_CAPABILITY=" + capability + " FAKE_VERSION=";
  const auto loaded = [&](int version) {
    const Lines lines = probe(DriverChoice::fake, "run-bf16",
                              (settings + std::to_string(version) + " NVFP4_LOG=2").c_str());
    CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 1);
    CHECK(starting_with(lines, "call cuLibraryLoadData").size() == 1);
    const Lines logged = starting_with(lines, "nvfp4: gemm ");
    REQUIRE(logged.size() == 1);
    return logged[0];
  };
  CHECK(contains(loaded(12080), "image=\"mma.sync compute_80 PTX\""));
  const std::string cubin = capability == "120" ? "sm_120" : "sm_80";
  CHECK(contains(loaded(driver_of_compiler()), "image=\"mma.sync " + cubin + " cubin\""));
}

// An H200 with a driver of CUDA 12.4 to 12.9 computed nothing, although that PTX loads there.
TEST_CASE("An older driver gets the PTX for 8.0 where it can load no image of the GPU's own") {
  const std::string capability = GENERATE("90", "100", "103");
  const int version = GENERATE(12040, 12080);
  const std::string settings =
      "NVFP4_LOG=2 FAKE_CAPABILITY=" + capability + " FAKE_VERSION=" + std::to_string(version);
  const Lines lines = probe(DriverChoice::fake, "run-bf16", settings.c_str());
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 1);
  const Lines logged = starting_with(lines, "nvfp4: gemm ");
  REQUIRE(logged.size() == 1);
  CHECK(contains(logged[0], "image=\"mma.sync compute_80 PTX\""));
  CHECK(starting_with(probe(DriverChoice::fake, "prepare", settings.c_str()), "NVFP4_") ==
        Lines{"NVFP4_SUCCESS: "});
  // Refused once, and by the driver that has it.
  const Lines refused = probe(DriverChoice::fake, "run", settings.c_str());
  const std::string sentence =
      "the CUDA driver supports CUDA 12." + std::to_string(version % 1000 / 10) +
      "; with it this GPU has kernels for products of fp16 and bf16 tokens, neither grouped nor "
      "gated; this product needs " +
      host_test::compiler() + " or newer";
  CHECK(starting_with(refused, "NVFP4_") == Lines{"NVFP4_STATUS_DRIVER_TOO_OLD: " + sentence});
  CHECK(starting_with(refused, "nvfp4: ") ==
        Lines{"nvfp4: NVFP4_STATUS_DRIVER_TOO_OLD: " + sentence});
}

// The partitions are a cluster on 9.0, for which nvfp4_gemm_workspace_bytes() answers 0. In the
// image for older drivers they would need a workspace.
TEST_CASE("An older driver on 9.0 is too old for K partitions that desc.variant asks for") {
  const auto answer_of = [](int version) {
    const std::string settings = "FAKE_CAPABILITY=90 FAKE_VERSION=" + std::to_string(version);
    return answer(DriverChoice::fake, "run-split", settings.c_str());
  };
  CHECK(answer_of(12080) ==
        "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver supports CUDA 12.8; with it this GPU has no "
        "kernel for variant = \"sm80_bf16_64x8w4x128/2\", which needs " +
            host_test::compiler() + " or newer");
  CHECK(answer_of(driver_of_compiler()) == "NVFP4_SUCCESS: ");
}

TEST_CASE("The toolkit's own stub of libcuda is told from a driver") {
  if (!std::ifstream(host_test::built("test/host/stub/libcuda.so.1")).good()) {
    SKIP_TEST("this CUDA toolkit has no lib64/stubs/libcuda.so");
  }
  if (getenv("NVFP4_TEST_LAUNCHER") != nullptr) {
    SKIP_TEST("the toolkit's stub is for this machine's processor, these tests for another");
  }
  const std::string answer =
      "NVFP4_STATUS_NO_DRIVER: libcuda.so.1 is the toolkit's stub, not a driver";
  CHECK(probe(DriverChoice::stub, "run prepare plan") == Lines{answer, answer, answer});
}

TEST_CASE("A driver from before cuGetProcAddress_v2 is too old") {
  const Lines lines = probe(DriverChoice::ancient, "run");
  REQUIRE(lines.size() == 1);
  CHECK(contains(lines[0],
                 "NVFP4_STATUS_DRIVER_TOO_OLD: the CUDA driver has no cuGetProcAddress_v2"));
}

TEST_CASE("A driver that fails to start once may start at the next call") {
  // The plan counts calls and answers from the first on; cuDeviceGetCount only fails while it does.
  const Lines lines = probe(DriverChoice::fake, "run run", "FAKE_ANSWERS=cuInit:1:803,cuInit:2:0");
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == 2);
  CHECK(contains(answers[0], "NVFP4_STATUS_NO_DRIVER"));
  CHECK(answers[1] == "NVFP4_SUCCESS: ");
}

TEST_CASE("Without a current context nothing is loaded and nothing launched") {
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_CONTEXT=0");
  REQUIRE(starting_with(lines, "NVFP4_STATUS_NO_CONTEXT: no CUDA context is current").size() == 1);
  CHECK(starting_with(lines, "call cuLibrary").empty());
  CHECK(starting_with(lines, "call cuLaunch").empty());
}

TEST_CASE("A device without a kernel is refused before an image is tried") {
  const std::string capability = GENERATE("75", "87", "101", "109");
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_CAPABILITY=" + capability);
  const Lines answers = starting_with(lines, "NVFP4_STATUS_UNSUPPORTED_ARCH: compute capability ");
  REQUIRE(answers.size() == 1);
  const std::string dotted =
      capability.substr(0, capability.size() - 1) + "." + capability.substr(capability.size() - 1);
  CHECK(contains(answers[0], " " + dotted +
                                 " has no kernel here; served are: 10.0 10.3 9.0 8.0 8.6 "
                                 "8.9 10.7 11.0 12.0 12.1"));
  CHECK(starting_with(lines, "call cuLibrary").empty());
}

TEST_CASE("A run makes two tensor maps and one launch with the numbers of the problem") {
  const Lines lines = probe(DriverChoice::fake, "run");
  CHECK(starting_with(lines, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});

  // {K/2, rows, L} bytes; ld / 2 bytes; with one batch any legal stride; box 128 bytes x the rows
  // of a tile.
  const Lines maps = starting_with(lines, "call cuTensorMapEncodeTiled");
  REQUIRE(maps.size() == 2);
  const std::string rest = " steps=1,1,1 interleave=0 swizzle=3 promotion=3 fill=0 aligned=1 -> 0";
  CHECK(maps[0] ==
        "call cuTensorMapEncodeTiled type=0 rank=3 address=0x300000 dims=256,384,1 "
        "strides=272,272 box=128,128,1" +
            rest);
  CHECK(maps[1] ==
        "call cuTensorMapEncodeTiled type=0 rank=3 address=0x100000 dims=256,256,1 "
        "strides=256,256 box=128,64,1" +
            rest);

  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 1);
  INFO(launches[0]);
  CHECK(contains(launches[0], " grid=12,1,1 block=320,1,1 "));
  CHECK(contains(launches[0], " stream=0x57 attributes=0 kernel=1 extra=0"));
  CHECK(contains(launches[0],
                 " weights=0x300000 tokens=0x100000 weight_scales=0x400000 "
                 "token_scales=0x200000 d=0x500000 d_ld=385 m=256 n=384 k=512 "
                 "tiles=4,3 alpha=1.5 kept=1 "));
}

TEST_CASE("pairs of CTAs are as many as run at once and the driver is asked once") {
  const Lines lines = probe(DriverChoice::fake, "run-pairs run-pairs");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 2);
  const Lines asked = starting_with(lines, "call cuOccupancyMaxActiveClusters");
  REQUIRE(asked.size() == 1);
  CHECK(contains(asked[0], " kernel=1 block=320 "));
  CHECK(contains(asked[0], " attributes=1 cluster=2 "));
  for (const std::string& launch : starting_with(lines, "call cuLaunchKernelEx")) {
    INFO(launch);
    CHECK(contains(launch, " grid=6,1,1 "));  // 3 pairs, says the driver, for four tiles
  }
  CHECK(starting_with(probe(DriverChoice::fake, "run"), "call cuOccupancy").empty());
}

TEST_CASE("pdl is one launch attribute and a promise about weights is one parameter") {
  const Lines lines = probe(DriverChoice::fake, "run run-pdl1 run-pdl2");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 3);
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 3);
  CHECK(contains(launches[0], " attributes=0 "));
  CHECK(contains(launches[0], " static=0 -> 0"));
  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION is 6.
  CHECK(contains(launches[1], " attributes=1 "));
  CHECK(contains(launches[1], " static=0 attribute=6,1 -> 0"));
  CHECK(contains(launches[2], " attributes=1 "));
  CHECK(contains(launches[2], " static=1 attribute=6,1 -> 0"));
}

TEST_CASE("Every entry of a tile may use as much shared memory as it is launched with") {
  const Lines lines = probe(DriverChoice::fake, "run");
  const std::regex allowed(
      "call cuKernelSetAttribute attribute=8 value=([0-9]+) kernel=1 device=0 -> 0");
  const std::regex launched(".* shared=([0-9]+) .*");
  std::smatch set, used;
  const Lines sets = starting_with(lines, "call cuKernelSetAttribute");
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(sets.size() == 6);  // plain or not, of groups or not, gated, D with scales
  REQUIRE(launches.size() == 1);
  REQUIRE(std::regex_match(launches[0], used, launched));
  size_t as_launched = 0;
  for (const std::string& line : sets) {
    REQUIRE(std::regex_match(line, set, allowed));
    as_launched += set[1] == used[1];
  }
  CHECK(as_launched == 3);  // a ring for two matrices has its own stages, groups have a list
  REQUIRE(std::regex_match(sets[0], set, allowed));
  CHECK(std::stoi(set[1]) > 8 * 28672);    // eight stages of 28 KB and barriers
  CHECK(std::stoi(set[1]) <= 227 * 1024);  // what a block of compute capability 10.x can have
}

TEST_CASE("A second run loads nothing and asks nothing of the device and launches again") {
  const Lines once = probe(DriverChoice::fake, "run"), twice = probe(DriverChoice::fake, "run run");
  for (const char* call : {"call cuInit", "call cuLibraryLoadData", "call cuLibraryGetKernel",
                           "call cuKernelSetAttribute", "call cuDeviceGetAttribute"}) {
    CAPTURE(call);
    CHECK(starting_with(once, call).size() == starting_with(twice, call).size());
    CHECK(!starting_with(once, call).empty());
  }
  CHECK(starting_with(twice, "call cuLaunchKernelEx").size() == 2);
}

TEST_CASE("Thirty-two threads that make the first call together open the driver once") {
  const Lines lines = probe(DriverChoice::fake, "threads");
  CHECK(starting_with(lines, "threads ") == Lines{"threads NVFP4_SUCCESS"});
  CHECK(starting_with(lines, "call cuInit").size() == 1);
  CHECK(starting_with(lines, "call cuLibraryLoadData").size() == 1);
  CHECK(starting_with(lines, "call cuLaunchKernelEx").size() == 32);
}

TEST_CASE("An image that is not for the GPU (209) gives way to the next and the PTX is the last") {
  SECTION("at load") {
    const Lines lines = probe(DriverChoice::fake, "run",
                              "FAKE_ANSWERS=cuLibraryLoadData:1:209,cuLibraryLoadData:3:0");
    const Lines loads = starting_with(lines, "call cuLibraryLoadData");
    REQUIRE(loads.size() == 3);
    CHECK(contains(loads[0], " cubin -> 209"));
    CHECK(contains(loads[1], " cubin -> 209"));
    CHECK(contains(loads[2], " ptx -> "));
    CHECK(starting_with(lines, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});
  }
  SECTION("at cuLibraryGetKernel, since loading is lazy; what was refused is unloaded") {
    const Lines lines = probe(DriverChoice::fake, "run",
                              "FAKE_ANSWERS=cuLibraryGetKernel:1:209,cuLibraryGetKernel:3:0");
    CHECK(starting_with(lines, "call cuLibraryGetKernel library=3").size() == 6);
    CHECK(starting_with(lines, "call cuLibraryUnload library=1").size() == 1);
    CHECK(starting_with(lines, "call cuLibraryUnload library=2").size() == 1);
    CHECK(starting_with(lines, "call cuLibraryUnload").size() == 2);
    CHECK(starting_with(lines, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});
  }
}

TEST_CASE("The log of the PTX compiler is in the sentence when no image loads") {
  const Lines lines = probe(
      DriverChoice::fake, "run",
      "FAKE_ANSWERS=cuLibraryLoadData:1:209,cuLibraryLoadData:3:218 FAKE_JIT_LOG=line-7-oops");
  const Lines answers = starting_with(lines, "NVFP4_");
  CHECK(answers ==
        Lines{"NVFP4_STATUS_IMAGE_LOAD: cuLibraryLoadData refuses the compute_100f PTX with "
              "FAKE_ERROR_218 (218): line-7-oops"});
  CHECK(starting_with(lines, "call cuLaunch").empty());
}

TEST_CASE("An image that fails for another reason than 209 is not papered over with the next") {
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_ANSWERS=cuLibraryLoadData:1:200");
  CHECK(starting_with(lines, "call cuLibraryLoadData").size() == 1);
  CHECK(starting_with(lines,
                      "NVFP4_STATUS_IMAGE_LOAD: cuLibraryLoadData refuses the sm_100a cubin "
                      "with FAKE_ERROR_200 (200)")
            .size() == 1);
}

TEST_CASE("A 10.3 device gets the cubin of the family first") {
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_CAPABILITY=103 NVFP4_LOG=2");
  CHECK(starting_with(lines,
                      "nvfp4: gemm m=256 n=384 k=512 l=1 image=\"sm_100f cubin\" "
                      "variant=sm100_128x64x256 grid=12")
            .size() == 1);
}

// The fake driver's context belongs to device 0 at the first call and to device 1 at all later
// ones.
TEST_CASE("A second device of the same kind gets its own shared memory and no second image") {
  const Lines lines = probe(DriverChoice::fake, "run run run", "FAKE_SECOND_CAPABILITY=100");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 3);
  CHECK(starting_with(lines, "call cuLibraryLoadData").size() == 1);
  const Lines sets = starting_with(lines, "call cuKernelSetAttribute");
  REQUIRE(sets.size() == 12);
  for (size_t i = 0; i < 12; ++i) {  // six entries of its tile
    CHECK(contains(sets[i], i < 6 ? " kernel=1 device=0 " : " kernel=1 device=1 "));
  }
}

TEST_CASE("A second device of another kind gets its own image or its own refusal") {
  const Lines lines =
      probe(DriverChoice::fake, "run run", "FAKE_SECOND_CAPABILITY=103 NVFP4_LOG=2");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 2);
  CHECK(starting_with(lines, "call cuLibraryLoadData").size() == 2);
  const Lines logged = starting_with(lines, "nvfp4: gemm ");
  REQUIRE(logged.size() == 2);
  CHECK(contains(logged[0], "image=\"sm_100a cubin\""));
  CHECK(contains(logged[1], "image=\"sm_100f cubin\""));

  const Lines refused =
      starting_with(probe(DriverChoice::fake, "run run", "FAKE_SECOND_CAPABILITY=75"), "NVFP4_");
  REQUIRE(refused.size() == 2);
  CHECK(refused[0] == "NVFP4_SUCCESS: ");
  CHECK(contains(refused[1], "NVFP4_STATUS_UNSUPPORTED_ARCH: compute capability 7.5 "));
}

// Every call that a run makes, and every kind of answer.
TEST_CASE("A failing driver call is named and mapped and the next run works") {
  const std::string call =
      GENERATE("cuDeviceGetCount", "cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetAttribute",
               "cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelSetAttribute",
               "cuTensorMapEncodeTiled", "cuLaunchKernelEx");
  struct Kind {
    int code;
    const char *status, *load_status;
  };
  const Kind kind =
      GENERATE(Kind{700, "PRIOR_ERROR", "PRIOR_ERROR"}, Kind{719, "PRIOR_ERROR", "PRIOR_ERROR"},
               Kind{2, "OUT_OF_MEMORY", "OUT_OF_MEMORY"}, Kind{201, "NO_CONTEXT", "NO_CONTEXT"},
               Kind{709, "NO_CONTEXT", "NO_CONTEXT"}, Kind{1, "DRIVER_ERROR", "IMAGE_LOAD"},
               Kind{999, "DRIVER_ERROR", "IMAGE_LOAD"});
  CAPTURE(call, kind.code);
  const Lines lines =
      probe(DriverChoice::fake, "run run",
            "FAKE_ANSWERS=" + call + ":1:" + std::to_string(kind.code) + "," + call + ":2:0");
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == 2);
  const bool loads = call.rfind("cuLibrary", 0) == 0;
  const std::string status = loads ? kind.load_status : kind.status;
  // An error of earlier work is not this call's, which only hears of it.
  const std::string said =
      status == "PRIOR_ERROR" ? "earlier work in the CUDA context failed with " : call + " ";
  CHECK(answers[0].rfind("NVFP4_STATUS_" + status + ": " + said, 0) == 0);
  CHECK(contains(answers[0], "FAKE_ERROR_" + std::to_string(kind.code) + " ("));
  CHECK(contains(answers[0], call));
  CHECK(answers[1] == "NVFP4_SUCCESS: ");
}

TEST_CASE("An error of earlier work is blamed on that work and not on the call that hears of it") {
  const Lines lines = probe(DriverChoice::fake, "run", "FAKE_ANSWERS=cuTensorMapEncodeTiled:1:700");
  CHECK(starting_with(lines, "NVFP4_") ==
        Lines{"NVFP4_STATUS_PRIOR_ERROR: earlier work in the CUDA context failed with "
              "FAKE_ERROR_700 (700): a planned answer; cuTensorMapEncodeTiled only reports it"});
}

TEST_CASE("K = 0 fills each batch of D and makes no tensor map") {
  const Lines lines = probe(DriverChoice::fake, "run-k0");
  CHECK(starting_with(lines, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});
  const std::string rest = " pitch=770 value=0x0000 width=384 height=256 stream=0x57 -> 0";
  CHECK(starting_with(lines, "call cuMemset") ==
        Lines{"call cuMemsetD2D16Async to=0x500000" + rest,  // batches 2,000,000 bytes apart
              "call cuMemsetD2D16Async to=0x6e8480" + rest,
              "call cuMemsetD2D16Async to=0x8d0900" + rest});
  CHECK(starting_with(lines, "call cuTensorMapEncodeTiled").empty());
  CHECK(starting_with(lines, "call cuLaunchKernelEx").empty());
}

TEST_CASE("A forked child of a process that used the driver is refused without a driver call") {
  const Lines lines = probe(DriverChoice::fake, "run fork-run");
  CHECK(starting_with(lines, "NVFP4_STATUS_AFTER_FORK: process ").size() == 1);
  CHECK(starting_with(lines, "call cuLaunchKernelEx").size() == 1);
}

TEST_CASE("A fork before the first use does not matter to parent or child") {
  const Lines lines = probe(DriverChoice::fake, "fork-run run");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 2);
}

TEST_CASE("NVFP4_LOG is silent by default and prints errors at 1 and calls at 2 and detail at 3") {
  const auto logged = [](const char* environment, const char* actions) {
    return starting_with(probe(DriverChoice::fake, actions, environment), "nvfp4: ").size();
  };
  const std::string device = "FAKE_CAPABILITY=75 ";
  CHECK(logged("", "run") == 0);
  CHECK(logged("NVFP4_LOG=0", "run") == 0);
  CHECK(logged("NVFP4_LOG=1", "run") == 0);
  CHECK(logged("NVFP4_LOG=2", "run") == 1);
  CHECK(logged("NVFP4_LOG=3", "run") > 3);
  CHECK(logged("NVFP4_LOG=4", "run") == 0);
  CHECK(logged("NVFP4_LOG=yes", "run") == 0);
  CHECK(logged((device + "NVFP4_LOG=0").c_str(), "run") == 0);
  CHECK(logged((device + "NVFP4_LOG=1").c_str(), "run") == 1);
}

// The same with the driver that the emulator is: identities and versions that it can be told to
// have.
TEST_CASE(
    "Run on the emulated driver: each refusal of device and driver and context has its status") {
  struct Row {
    const char *actions, *environment, *status;
  };
  const Row row = GENERATE(
      Row{"run", "", "NO_CONTEXT"}, Row{"current run", "EMU_DEVICE=A100", "NOT_SUPPORTED"},
      Row{"current run", "EMU_DEVICE=T4", "UNSUPPORTED_ARCH"},
      Row{"current run", "EMU_DEVICE=A40", "NOT_SUPPORTED"},
      Row{"current run", "EMU_DEVICE=RTX5090 EMU_DRIVER_VERSION=12080", "DRIVER_TOO_OLD"},
      Row{"run", "EMU_DEVICE=none", "NO_DEVICE"},
      Row{"run", "EMU_DRIVER_VERSION=12030", "DRIVER_TOO_OLD"},
      Row{"current run", "EMU_DRIVER_VERSION=12080", "DRIVER_TOO_OLD"},
      Row{"current quantize-packed", "EMU_DEVICE=A100", "NOT_SUPPORTED"},
      Row{"current quantize-packed", "EMU_DEVICE=H200 EMU_DRIVER_VERSION=12080", "DRIVER_TOO_OLD"});
  if (!host_test::emulator_is_built()) SKIP_TEST("the emulator is not built");
  CAPTURE(row.actions, row.environment);
  const Lines answers =
      starting_with(probe(DriverChoice::emulator, row.actions, row.environment), "NVFP4_");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].rfind(std::string("NVFP4_STATUS_") + row.status + ": ", 0) == 0);
}

TEST_CASE(
    "A first use inside a capture in global mode loads the kernel and leaves the capture whole") {
  if (!host_test::emulator_is_built()) SKIP_TEST("the emulator is not built");
  const Lines lines = probe(DriverChoice::emulator, "current capture-run");
  CHECK(lines == Lines{"current: yes", "begin 0", "NVFP4_SUCCESS: ", "end 0"});
}
