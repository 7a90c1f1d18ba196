// SPDX-License-Identifier: MIT
// Plans and nvfp4_prepare, seen from a driver that records every call.
#include "nvfp4_gemm.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

using host_test::contains;
using host_test::DriverChoice;
using host_test::probe;
using host_test::starting_with;
using Lines = std::vector<std::string>;

namespace {

// What the kernel gets, cut from the line of a launch.
std::string parameters(const std::string& launch) {
  const size_t first = launch.find("grid=");
  return launch.substr(first, launch.find(" stream=") - first) +
         launch.substr(launch.find(" weights="));
}

}  // namespace

TEST_CASE("A plan is made without a launch and launches what a run would") {
  const Lines made = probe(DriverChoice::fake, "plan");
  CHECK(starting_with(made, "call cuLaunchKernelEx").empty());
  CHECK(starting_with(made, "call cuTensorMapEncodeTiled").size() == 2);
  const Lines lines = probe(DriverChoice::fake, "plan plan-run plan-run run");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 4);
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 3);
  CHECK(contains(launches[0], " grid=6,1,1 "));  // the variant that was forced, by a name now gone
  CHECK(contains(launches[0], " stream=0x58 "));
  CHECK(launches[0] == launches[1]);
  const std::string from =
      "weights=0x300000 tokens=0x100000 weight_scales=0x400000 "
      "token_scales=0x200000 d=0x500000 d_ld=385 m=256 n=384 k=512";
  CHECK(contains(parameters(launches[0]), from));
  CHECK(contains(parameters(launches[2]), from));
}

TEST_CASE("Running a plan encodes nothing and loads nothing and asks nothing of the device") {
  const Lines lines = probe(DriverChoice::fake, "plan plan-run plan-run plan-run");
  const Lines made = probe(DriverChoice::fake, "plan");
  for (const char* call : {"call cuTensorMapEncodeTiled", "call cuLibrary", "call cuKernel",
                           "call cuDeviceGetAttribute", "call cuInit"}) {
    CAPTURE(call);
    CHECK(!starting_with(made, call).empty());
    CHECK(starting_with(lines, call).size() == starting_with(made, call).size());
  }
  CHECK(starting_with(lines, "call cuLaunchKernelEx").size() == 3);
}

TEST_CASE("New addresses hold for one run and only A and B cost a tensor map") {
  const Lines lines = probe(DriverChoice::fake, "plan plan-d plan-all plan-run");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 4);
  CHECK(starting_with(lines, "call cuTensorMapEncodeTiled").size() == 2 + 0 + 2 + 0);
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 3);
  CHECK(contains(launches[0],
                 " weights=0x300000 tokens=0x100000 weight_scales=0x400000 "
                 "token_scales=0x200000 d=0x2500000 "));
  CHECK(contains(launches[1],
                 " weights=0x1300000 tokens=0x1100000 weight_scales=0x1400000 "
                 "token_scales=0x1200000 d=0x1500000 "));
  CHECK(contains(launches[2],
                 " weights=0x300000 tokens=0x100000 weight_scales=0x400000 "
                 "token_scales=0x200000 d=0x500000 "));
}

TEST_CASE("New addresses are compared with those that a plan of groups keeps") {
  const Lines answers = starting_with(probe(DriverChoice::fake, "grouped-bad"), "NVFP4_");
  REQUIRE(answers.size() == 8);
  CHECK(answers[0] == "NVFP4_SUCCESS: ");
  const auto overlap = [](const std::string& a, const std::string& b) {
    return "NVFP4_STATUS_OVERLAP: " + a + ") overlaps " + b + ")";
  };
  CHECK(answers[1] == overlap("d = [0x700000, 0x7301fe", "rows = [0x700000, 0x700008"));
  CHECK(answers[2] == overlap("d = [0x7e0000, 0x8101fe", "group_alpha = [0x800000, 0x800008"));
  CHECK(answers[3] == overlap("workspace = [0x600000, 0x603000", "rows = [0x600000, 0x600008"));
  CHECK(answers[4] ==
        overlap("workspace = [0x600000, 0x603000", "group_alpha = [0x600010, 0x600018"));
  CHECK(answers[5] == "NVFP4_STATUS_MISALIGNED: group_alpha = 0x600002 is not 4-byte aligned");
  CHECK(answers[6] == overlap("workspace = [0x500000, 0x503000", "d = [0x500000, 0x5301fe"));
  CHECK(answers[7] == "NVFP4_SUCCESS: ");
}

TEST_CASE("New addresses keep the rules of addresses or nothing is enqueued") {
  const Lines lines = probe(DriverChoice::fake, "plan plan-bad");
  const Lines answers = starting_with(lines, "NVFP4_STATUS_");
  REQUIRE(answers.size() == 5);
  CHECK(answers[0] == "NVFP4_STATUS_MISALIGNED: a = 0x1100008 is not 16-byte aligned");
  CHECK(answers[1] == "NVFP4_STATUS_MISALIGNED: b_scales = 0x1400001 is not 16-byte aligned");
  CHECK(contains(answers[2], "NVFP4_STATUS_OVERLAP: d = [0x1300010, "));
  CHECK(contains(answers[3], "NVFP4_STATUS_LIMIT: the last byte of d"));
  CHECK(contains(answers[4],
                 "NVFP4_STATUS_INVALID_STRUCT: struct_size = 127; "
                 "sizeof(nvfp4_gemm_addresses) is 224, an older one at least 128"));
  CHECK(starting_with(lines, "call cuLaunchKernelEx").empty());
}

TEST_CASE("A plan with K = 0 fills D at the new address if there is one") {
  const Lines lines = probe(DriverChoice::fake, "plan-k0 plan-run plan-d");
  CHECK(starting_with(lines, "NVFP4_SUCCESS").size() == 3);
  CHECK(starting_with(lines, "call cuMemsetD2D16Async to=0x500000 ").size() == 1);
  CHECK(starting_with(lines, "call cuMemsetD2D16Async to=0x2500000 ").size() == 1);
  CHECK(starting_with(lines, "call cuMemsetD2D16Async").size() == 6);
  CHECK(starting_with(lines, "call cuTensorMapEncodeTiled").empty());
}

TEST_CASE("A plan of nothing is made and run without a driver") {
  CHECK(probe(DriverChoice::none, "plan-empty plan-run plan-all destroy") ==
        Lines{"NVFP4_SUCCESS: ", "NVFP4_SUCCESS: ", "NVFP4_SUCCESS: "});
}

TEST_CASE("Thirty-two threads run one plan with addresses of their own") {
  const Lines lines = probe(DriverChoice::fake, "plan plan-threads");
  CHECK(starting_with(lines, "threads ") == Lines{"threads NVFP4_SUCCESS"});
  const Lines launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 32);
  for (const std::string& launch : launches) CHECK(launch == launches[0]);
}

TEST_CASE("run and plan_run allocate nothing and plan_create one block") {
  const Lines lines = probe(DriverChoice::fake,
                            "run run allocations plan allocations plan-run plan-d plan-all "
                            "plan-threads plan-bad prepare run allocations");
  CHECK(starting_with(lines, "allocations") ==
        Lines{"allocations 0", "allocations 1", "allocations 1"});
}

TEST_CASE("Without host memory there is no plan and a status") {
  const Lines lines = probe(DriverChoice::idle, "run refuse-from=1 plan plan-run");
  Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == 3);
  answers.erase(answers.begin());
  CHECK(contains(answers[0], "NVFP4_STATUS_OUT_OF_MEMORY: no "));
  CHECK(answers[1] == "NVFP4_STATUS_NULL_POINTER: plan is NULL and is required here");
}

TEST_CASE("A plan that cannot be made says why as a run does") {
  struct Row {
    const char *environment, *answer;
  };
  const Row row =
      GENERATE(Row{"FAKE_CONTEXT=0", "NVFP4_STATUS_NO_CONTEXT: no CUDA context is current"},
               Row{"FAKE_CAPABILITY=75", "NVFP4_STATUS_UNSUPPORTED_ARCH: compute capability 7.5"},
               Row{"FAKE_ANSWERS=cuTensorMapEncodeTiled:2:1",
                   "NVFP4_STATUS_DRIVER_ERROR: cuTensorMapEncodeTiled answers FAKE_ERROR_1"},
               Row{"FAKE_ANSWERS=cuInit:1:100", "NVFP4_STATUS_NO_DEVICE: cuInit"});
  const char* action = GENERATE("plan", "run");
  CAPTURE(row.environment, action);
  const Lines answers = starting_with(probe(DriverChoice::fake, action, row.environment), "NVFP4_");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].rfind(row.answer, 0) == 0);
}

TEST_CASE("A plan is refused in a forked child of the process that made it") {
  const Lines lines = probe(DriverChoice::fake, "plan fork-plan-run plan-run");
  CHECK(starting_with(lines, "NVFP4_STATUS_AFTER_FORK: process ").size() == 1);
  CHECK(starting_with(lines, "call cuLaunchKernelEx").size() == 1);
}

TEST_CASE("A failing call of plan_run is named and the next run works") {
  const Lines lines = probe(DriverChoice::fake, "plan plan-run plan-run",
                            "FAKE_ANSWERS=cuLaunchKernelEx:1:700,cuLaunchKernelEx:2:0");
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == 3);
  CHECK(contains(answers[1], "NVFP4_STATUS_PRIOR_ERROR: earlier work in the CUDA context failed "));
  CHECK(contains(answers[1], "cuLaunchKernelEx"));
  CHECK(answers[2] == "NVFP4_SUCCESS: ");
}

TEST_CASE("A plan for another compute capability than the current device's is refused") {
  // The fake driver changes its mind: the plan is made on the first device, run on the second.
  const Lines lines = probe(DriverChoice::fake, "plan plan-run", "FAKE_SECOND_CAPABILITY=103");
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == 2);
  CHECK(answers[1] ==
        "NVFP4_STATUS_UNSUPPORTED_ARCH: the plan was made for compute capability "
        "10.0, the current device has 10.3");
  CHECK(starting_with(lines, "call cuLaunchKernelEx").empty());
}

TEST_CASE("prepare loads every kernel into the context; runs after it load nothing") {
  const Lines once = probe(DriverChoice::fake, "prepare");
  CHECK(starting_with(once, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});
  // The images of both kinds of tokens, and the quantizer's, which has that for K = 0.
  CHECK(starting_with(once, "call cuLibraryLoadData").size() == 3);
  constexpr size_t kQuantizerKernels = 30, kTiles = 8;
  constexpr size_t kMma = kTiles + 2 * 3;  // of grouped products, which serve for gated ones, too
  constexpr size_t kSm100 = 12 + 8 + 2 + 1;  // of grouped products, gated ones and both
  for (const char* entry : {"128x64", "128x128", "256x128", "256x256"}) {
    for (const char* kind : {" ", "_plain ", "_scaled "}) {
      CHECK(starting_with(once, std::string("call cuLibraryGetKernel library=1 name=") +
                                    "nvfp4_gemm_sm100_" + entry + kind)
                .size() == 1);
    }
  }
  CHECK(starting_with(once, "call cuKernelSetAttribute").size() == kSm100 + kMma);
  CHECK(starting_with(once, "call cuFuncLoad function=1").size() ==
        kSm100 + kMma + kTiles + kQuantizerKernels);  // each tile of mma.sync with one that adds
  const Lines then = probe(DriverChoice::fake, "prepare run plan plan-run");
  for (const char* call : {"call cuLibrary", "call cuKernel", "call cuFuncLoad"}) {
    CAPTURE(call);
    CHECK(starting_with(then, call).size() == starting_with(once, call).size());
  }
}

// CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT is 9, MAX_DYNAMIC_SHARED_SIZE_BYTES 8.
TEST_CASE("On 9.0 an SM that decodes tokens divides its memory as the GEMM beside it wants it") {
  const Lines lines = probe(DriverChoice::fake, "prepare", "FAKE_CAPABILITY=90");
  CHECK(starting_with(lines, "NVFP4_") == Lines{"NVFP4_SUCCESS: "});
  constexpr size_t kEntries = 0
#define ENTRY(...) +1
#define ALSO(...) +1
#include "kernel/sm80/entries.def"
#define ENTRY(...) +1
#include "kernel/sm90/entries.def"
      ;
  CHECK(starting_with(lines, "call cuKernelSetAttribute attribute=8 ").size() == kEntries);
  const Lines carveouts = starting_with(lines, "call cuKernelSetAttribute attribute=9 ");
  // Eight tiles have their tokens from such a kernel; four of them also take groups.
  CHECK(carveouts.size() == 8 + 4);
  for (const std::string& line : carveouts) CHECK(contains(line, " value=100 "));
}

TEST_CASE("prepare says what is missing") {
  CHECK(contains(probe(DriverChoice::none, "prepare").at(0), "NVFP4_STATUS_NO_DRIVER: "));
  struct Row {
    const char *environment, *answer;
  };
  const Row row =
      GENERATE(Row{"FAKE_CONTEXT=0", "NVFP4_STATUS_NO_CONTEXT: "},
               Row{"FAKE_CAPABILITY=75", "NVFP4_STATUS_UNSUPPORTED_ARCH: "},
               Row{"FAKE_ANSWERS=cuKernelGetFunction:1:2",
                   "NVFP4_STATUS_OUT_OF_MEMORY: cuKernelGetFunction answers FAKE_ERROR_2"},
               Row{"FAKE_ANSWERS=cuFuncLoad:1:999",
                   "NVFP4_STATUS_DRIVER_ERROR: cuFuncLoad answers FAKE_ERROR_999"});
  CAPTURE(row.environment);
  const Lines answers =
      starting_with(probe(DriverChoice::fake, "prepare", row.environment), "NVFP4_");
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].rfind(row.answer, 0) == 0);
}

TEST_CASE("Plan functions refuse NULL and destroy takes it") {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  nvfp4_gemm_plan* plan = reinterpret_cast<nvfp4_gemm_plan*>(&g);
  CHECK(nvfp4_gemm_plan_create(&g, nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_plan_create(nullptr, &plan) == NVFP4_STATUS_NULL_POINTER);
  CHECK(plan == nullptr);
  CHECK(nvfp4_gemm_plan_run(nullptr, nullptr, nullptr) == NVFP4_STATUS_NULL_POINTER);
  nvfp4_gemm_plan_destroy(nullptr);
  // An argument error comes before any driver.
  g.m = g.n = g.l = 1, g.k = 63;
  CHECK(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(plan == nullptr);
}
