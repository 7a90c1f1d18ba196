// SPDX-License-Identifier: MIT
// What happens around a launch: addresses, allocations, dependent launches, repeated calls.
#include <cstring>
#include <set>

#include "test/regression/regression.h"

using namespace regression;
using host_test::contains;
using host_test::DriverChoice;
using host_test::probe;
using host_test::starting_with;

// The workspace moved under captured graphs when a larger batch came.
TEST_CASE("vllm #52540: the workspace grows with M under captured graphs", "[regression]") {
  nvfp4_gemm_desc g = support::make_desc(make_problem({1, 512, 1024}), NVFP4_SCALE_LAYOUT_128X4);
  g.a = g.b = g.a_scales = g.b_scales = reinterpret_cast<void*>(uint64_t{1} << 40);
  g.d = reinterpret_cast<void*>(uint64_t{1} << 44);
  uint64_t largest = 0;
  for (int64_t m = 1; m <= 8192; m += m < 300 ? 1 : 97) {
    g.m = m;
    uint64_t bytes = 1;
    CAPTURE(m);
    REQUIRE(nvfp4_gemm_workspace_bytes(&g, 100, &bytes) == NVFP4_SUCCESS);
    REQUIRE(bytes >= largest);
    largest = bytes;
  }
}

// Each decode step allocated a workspace of its own, behind a map that threads shared unguarded.
TEST_CASE("flashinfer #4549: memory allocated by every call", "[regression]") {
  const auto last = [](const std::string& actions) {
    return probe(DriverChoice::fake, actions).back();
  };
  CHECK(last("run run-pdl1 run-pdl2 run-k0 run run run allocations") == last("run allocations"));
  CHECK(last("plan plan-run plan-all plan-d allocations") == last("plan plan-run allocations"));
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const support::DeviceGemm gemm(gpu.driver, make_problem({65, 129, 320}, Data::exact, 350));
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  emulator.reset_calls();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  CHECK(!contains(emulator.recorded(), "Alloc"));
  CHECK(contains(emulator.recorded(), "cuLaunchKernelEx"));
}

// A heuristic call while a stream was captured invalidated the graph.
TEST_CASE("cuBLASLt 6288786: calls that a capture does not allow", "[regression]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  // A shape and variant of its own: nothing about it can be cached.
  const support::DeviceGemm gemm(
      gpu.driver, forced(EACH_VARIANT, make_problem({67, 131, 448}, Data::exact, 351)));
  emulator.reset_calls();
  REQUIRE(gemm.enqueue() == NVFP4_SUCCESS);
  const std::set<std::string> allowed = {"cuCtxGetCurrent", "cuCtxGetDevice",
                                         "cuTensorMapEncodeTiled", "cuLaunchKernelEx"};
  std::string calls = emulator.recorded();
  for (const char* call = std::strtok(calls.data(), "\n"); call;
       call = std::strtok(nullptr, "\n")) {
    CAPTURE(call);
    CHECK(allowed.count(call) == 1);
  }
}

// A graph of the whole model failed as soon as it held an FP4 product.
TEST_CASE("vllm #21367: an FP4 product inside a graph of the whole model", "[regression]") {
  USE_GPU(gpu);
  const support::Driver& driver = gpu.driver;
  // Two products in one graph, the second on a D that the first one does not touch.
  const Problem first = make_problem({33, 72, 320}, Data::exact, 357);
  const Problem second = forced(EACH_VARIANT, make_problem({130, 40, 192}, Data::exact, 358));
  const support::DeviceGemm one(driver, first), two(driver, second);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec model = nullptr;
  driver.check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
  CHECK(one.enqueue(stream) == NVFP4_SUCCESS);
  CHECK(two.enqueue(stream) == NVFP4_SUCCESS);
  driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  CHECK(two.d() == std::vector<uint16_t>(130 * 40, 0xFFFF));  // recorded, not run
  driver.check(driver.cuGraphInstantiateWithFlags(&model, graph, 0), "instantiate");
  for (int step = 0; step < 3; ++step) {
    driver.check(driver.cuGraphLaunch(model, stream), "cuGraphLaunch");
    driver.check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
    CHECK(support::compare_bits(first.shape(), one.d(), support::reference(first)).passed());
    CHECK(support::compare_bits(second.shape(), two.d(), support::reference(second)).passed());
    // The next step must write D again.
    const CUdeviceptr d = reinterpret_cast<CUdeviceptr>(two.desc.d);
    driver.check(driver.cuMemsetD8(d, 0xFF, 130 * 40 * 2), "cuMemsetD8");
  }
  CHECK(one.damage() == "");
  CHECK(two.damage() == "");
  driver.check(driver.cuGraphExecDestroy(model), "cuGraphExecDestroy");
  driver.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
  driver.check(driver.cuStreamDestroy(stream), "cuStreamDestroy");
}

// Tensor maps kept the addresses of the tuning run; results had a cosine of 0.5.
TEST_CASE("nvfp4-megamoe-kernel: tensor maps bound to the addresses of the first call",
          "[regression]") {
  USE_GPU(gpu);
  const Problem first = make_problem({65, 129, 320}, Data::exact, 352);
  const Problem second = make_problem({65, 129, 320}, Data::exact, 353);
  nvfp4_gemm_plan* plan = nullptr;
  const support::DeviceGemm two(gpu.driver, second);
  {
    const support::DeviceGemm one(gpu.driver, first);
    REQUIRE(one.enqueue() == NVFP4_SUCCESS);
    REQUIRE(nvfp4_gemm_plan_create(&one.desc, &plan) == NVFP4_SUCCESS);
  }
  // The first buffers are gone: an old address is a fault.
  const nvfp4_gemm_addresses others = support::addresses_of(two.desc);
  const nvfp4_status status = nvfp4_gemm_plan_run(plan, &others, nullptr);
  nvfp4_gemm_plan_destroy(plan);
  REQUIRE(status == NVFP4_SUCCESS);
  CHECK(support::compare_bits(second.shape(), two.d(), support::reference(second)).passed());
}

// A dependent launch read alpha and operands before the previous kernel had written them.
TEST_CASE("cuBLASLt CUB-10409: reads before griddepcontrol.wait", "[regression]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  Problem problem = forced(EACH_VARIANT, make_problem({130, 136, 1600}, Data::exact, 354));
  problem.pdl = NVFP4_PDL_ON;
  run(gpu, problem);
  CHECK(emulator.counter("dependency_waits") > 0);
  // On 9.0 the kernel that puts many tokens into the workspace has waited before weights are
  // loaded.
  const bool behind_tokens = gpu.info.major == 9 && gemm_test::tile_tokens(problem.variant) > 8;
  if (!behind_tokens) CHECK(emulator.counter("early_bytes") == 0);
}

// Dependent launch helps some shapes and hurts others: three states were asked for.
TEST_CASE("pytorch #198174: dependent launch is off or on or on with static weights",
          "[regression]") {
  const std::vector<std::string> launches =
      starting_with(probe(DriverChoice::fake, "run run-pdl1 run-pdl2"), "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 3);
  CHECK(contains(launches[0], " attributes=0 "));
  CHECK(contains(launches[1], "static=0 attribute=6,1"));
  CHECK(contains(launches[2], "static=1 attribute=6,1"));
}

// The answer for a token depended on how many others were in the batch.
TEST_CASE("TransformerEngine #2986: a row's bits depend on the batch around it", "[regression]") {
  USE_GPU(gpu);
  const char* variant = EACH_VARIANT;
  const Problem whole = forced(variant, make_problem({300, 40, 1600}, Data::random, 355));
  const std::vector<uint16_t> all = run(gpu, whole);
  for (const int64_t m : {1, 17, 128, 257}) {
    Problem part = whole;
    part.m = part.a.rows = m;
    const std::vector<uint16_t> d = run(gpu, part);
    CAPTURE(variant, m);
    CHECK(std::equal(d.begin(), d.end(), all.begin()));
  }
}

// Not a number in an expert's scale made NaN of tokens of other experts.
TEST_CASE("flashinfer #4486: NaN beyond the batch that holds it", "[regression]") {
  USE_GPU(gpu);
  Problem problem = forced(EACH_VARIANT, make_problem({33, 40, 320, 3}, Data::exact, 356));
  const std::vector<uint16_t> clean = run(gpu, problem);
  for (uint8_t& scale : problem.b.scales) scale = uint8_t(scale | 0x80);  // bit 7 means nothing
  CHECK(run(gpu, problem) == clean);
  for (int64_t n = 0; n < 40; ++n) problem.b.set_scale(1, n, 3, 0x7F);
  const std::vector<uint16_t> d = run(gpu, problem);
  for (size_t i = 0; i < d.size(); ++i) {
    const bool second_batch = i / (33 * 40) == 1;
    CAPTURE(i);
    REQUIRE(d[i] == (second_batch ? 0x7FFF : clean[i]));
  }
}

// Leading dimensions above 4 GiB were cut to 32 bits: wrong results or an illegal access.
TEST_CASE("cuBLASLt CUB-9572: leading dimensions of more than 32 bits", "[regression]") {
  const std::vector<std::string> lines = probe(DriverChoice::fake, "run-wide");
  const std::vector<std::string> maps = starting_with(lines, "call cuTensorMapEncodeTiled");
  REQUIRE(maps.size() == 2);
  CHECK(contains(maps[0], "strides=4294967312,"));  // B: 2^33 + 32 elements
  CHECK(contains(maps[1], "strides=8589934608,"));  // A: 2^34 + 32
  const std::vector<std::string> launches = starting_with(lines, "call cuLaunchKernelEx");
  REQUIRE(launches.size() == 1);
  CHECK(contains(launches[0], " d_ld=4294967297 "));
}
