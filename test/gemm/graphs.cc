// SPDX-License-Identifier: MIT
// Runs and plans in CUDA graphs: captured in global mode, replayed with other data, bit by bit; and
// what each public function asks of the driver.
#include <functional>

#include "test/gemm/emulator.h"
#include "test/gemm/sizes.h"

namespace {

// A non-blocking stream whose work becomes a graph.
class Recorder {
 public:
  explicit Recorder(const support::Driver& driver) : driver_(driver) {
    driver.check(driver.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  ~Recorder() {
    if (instance_) driver_.cuGraphExecDestroy(instance_);
    if (graph_) driver_.cuGraphDestroy(graph_);
    driver_.cuStreamDestroy(stream_);
  }
  Recorder(const Recorder&) = delete;

  CUstream stream() const { return stream_; }
  void record(const std::function<void()>& body) {
    driver_.check(driver_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin");
    body();
    driver_.check(driver_.cuStreamEndCapture(stream_, &graph_), "cuStreamEndCapture");
    driver_.check(driver_.cuGraphInstantiateWithFlags(&instance_, graph_, 0), "instantiate");
  }
  void launch() const {
    driver_.check(driver_.cuGraphLaunch(instance_, stream_), "cuGraphLaunch");
    driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
  }
  size_t nodes() const {
    size_t count = 0;
    driver_.check(driver_.cuGraphGetNodes(graph_, nullptr, &count), "cuGraphGetNodes");
    return count;
  }
  // The types of the edges, CU_GRAPH_DEPENDENCY_TYPE_*.
  std::vector<int> edges() const {
    CUgraphNode from[16], to[16];
    CUgraphEdgeData data[16];
    size_t count = 16;
    driver_.check(driver_.cuGraphGetEdges(graph_, from, to, data, &count), "cuGraphGetEdges");
    std::vector<int> types;
    for (size_t i = 0; i < count; ++i) types.push_back(data[i].type);
    return types;
  }

 private:
  const support::Driver& driver_;
  CUstream stream_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec instance_ = nullptr;
};

}  // namespace

TEST_CASE("a captured run gives the reference's bits at every replay with new data in between",
          "[graph]") {
  USE_GPU(gpu);
  const support::Shape shape{gpu.sized(65, 9), gpu.sized(129, 72), 320, 2};
  const Problem first = gemm_test::forced(SOME_VARIANTS(0), make_problem(shape, Data::exact, 100));
  const Problem second = gemm_test::forced(first.variant, make_problem(shape, Data::exact, 101));
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  const support::DeviceGemm gemm(gpu.driver, first);
  const std::vector<uint16_t> untouched = gemm.d_memory();
  Recorder recorder(gpu.driver);
  recorder.record([&] { REQUIRE(gemm.enqueue(recorder.stream()) == NVFP4_SUCCESS); });
  CHECK(recorder.nodes() == (gemm.desc.workspace_bytes > 0 ? 2 : 1));  // tokens to fp16 first
  CHECK(gemm.d_memory() == untouched);
  for (int i = 0; i < 3; ++i) {
    recorder.launch();
    require_bits(first, gemm);
  }
  Problem mixed = first;
  mixed.a.codes = second.a.codes;
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(gemm.desc.a),
                                           mixed.a.codes.data(), mixed.a.codes.size()),
                   "cuMemcpyHtoD");
  // A copy of so few bytes returns once they are staged, and the recorder's stream waits for none.
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  recorder.launch();
  require_bits(mixed, gemm.d());
}

TEST_CASE("a plan captured with other addresses is replayed a hundred times", "[graph][plan]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 102);
  const support::DeviceGemm one(gpu.driver, problem), two(gpu.driver, problem);
  nvfp4_gemm_addresses other = support::no_addresses();
  other.a = two.desc.a, other.d = two.desc.d;
  Recorder recorder(gpu.driver);
  {
    const support::Plan plan(one.desc);
    recorder.record([&] {
      REQUIRE(plan.run(recorder.stream()) == NVFP4_SUCCESS);
      REQUIRE(plan.run(other, recorder.stream()) == NVFP4_SUCCESS);
    });
  }  // the graph has all that it needs
  for (int i = 0; i < gpu.sized(100, 5); ++i) recorder.launch();
  require_bits(problem, one);
  require_bits(problem, two);
}

TEST_CASE("K = 0 is captured as fills", "[graph]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 0, 3}, Data::exact, 103, {0, 0, 3, 0, 0, 5, 0});
  const support::DeviceGemm gemm(gpu.driver, problem);
  Recorder recorder(gpu.driver);
  recorder.record([&] { REQUIRE(gemm.enqueue(recorder.stream()) == NVFP4_SUCCESS); });
  CHECK(recorder.nodes() == 3);
  CHECK(gemm.d() == std::vector<uint16_t>(8 * 40 * 3, 0xFFFF));
  recorder.launch();
  CHECK(gemm.d() == std::vector<uint16_t>(8 * 40 * 3, 0));
  CHECK(gemm.damage() == "");
}

TEST_CASE("linear scales are captured with the kernels that make tiles of them",
          "[graph][linear]") {
  USE_GPU(gpu);
  Problem problem = make_problem({gpu.sized(65, 9), 129, 336}, Data::exact, 107);
  problem.a.layout = problem.b.layout = NVFP4_SCALE_LAYOUT_LINEAR;
  const support::DeviceGemm gemm(gpu.driver, problem);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  Recorder recorder(gpu.driver);
  recorder.record([&] { REQUIRE(gemm.enqueue(recorder.stream()) == NVFP4_SUCCESS); });
  const size_t tokens_first = gemm.desc.workspace_bytes > 0 ? 2 : 1;
  CHECK(recorder.nodes() == (gpu.info.major == 10 ? 3 : tokens_first));
  recorder.launch();
  require_bits(problem, gemm);
  // Scales are read at the replay, not when it was captured.
  problem.a.scales = make_problem(problem.shape(), Data::exact, 108).a.scales;
  const std::vector<uint8_t> other = problem.a.device_scales(0xFF, 0);
  gpu.driver.check(gpu.driver.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(gemm.desc.a_scales),
                                           other.data(), other.size()),
                   "cuMemcpyHtoD");
  gpu.driver.check(gpu.driver.cuCtxSynchronize(), "cuCtxSynchronize");
  recorder.launch();
  require_bits(problem, gemm.d());
}

TEST_CASE("products on two streams of one capture join in one graph", "[graph]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 104);
  const support::DeviceGemm one(gpu.driver, problem), two(gpu.driver, problem);
  const support::Driver& driver = gpu.driver;
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  Recorder recorder(driver);
  CUstream side = nullptr;
  CUevent fork = nullptr, join = nullptr;
  driver.check(driver.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  driver.check(driver.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  driver.check(driver.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  recorder.record([&] {
    driver.check(driver.cuEventRecord(fork, recorder.stream()), "cuEventRecord");
    driver.check(driver.cuStreamWaitEvent(side, fork, 0), "cuStreamWaitEvent");
    REQUIRE(one.enqueue(recorder.stream()) == NVFP4_SUCCESS);
    REQUIRE(two.enqueue(side) == NVFP4_SUCCESS);
    driver.check(driver.cuEventRecord(join, side), "cuEventRecord");
    driver.check(driver.cuStreamWaitEvent(recorder.stream(), join, 0), "cuStreamWaitEvent");
  });
  CHECK(recorder.nodes() == 2);
  CHECK(recorder.edges().empty());
  recorder.launch();
  require_bits(problem, one);
  require_bits(problem, two);
  driver.cuEventDestroy(join);
  driver.cuEventDestroy(fork);
  driver.cuStreamDestroy(side);
}

TEST_CASE("a launch with pdl becomes a programmatic edge", "[graph][pdl]") {
  USE_GPU(gpu);
  const auto edges_with = [&](int32_t pdl) {
    Problem problem = make_problem({8, 40, 128}, Data::exact, 105);
    problem.pdl = pdl;
    const support::DeviceGemm one(gpu.driver, problem), two(gpu.driver, problem);
    REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
    Recorder recorder(gpu.driver);
    recorder.record([&] {
      REQUIRE(one.enqueue(recorder.stream()) == NVFP4_SUCCESS);
      REQUIRE(two.enqueue(recorder.stream()) == NVFP4_SUCCESS);
    });
    recorder.launch();
    require_bits(problem, one);
    require_bits(problem, two);
    return recorder.edges();
  };
  CHECK(edges_with(NVFP4_PDL_OFF) == std::vector<int>{CU_GRAPH_DEPENDENCY_TYPE_DEFAULT});
  CHECK(edges_with(NVFP4_PDL_ON) == std::vector<int>{CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
  CHECK(edges_with(NVFP4_PDL_ON_STATIC_WEIGHTS) ==
        std::vector<int>{CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
}

TEST_CASE("a D that is made apart is two kernels and a programmatic edge", "[graph][apart]") {
  USE_GPU(gpu);
  const char* const name = gpu.info.major == 9 ? "sm90_64x8x256/apart" : "sm100_128x64x256/apart";
  if (gpu.info.major != 9 && gpu.info.major != 10) return;
  support::Fields fields;
  fields.activation = NVFP4_ACTIVATION_SILU;
  Problem problem = with_fields(make_problem({8, 40, 128}, Data::exact, 109), fields, 109);
  problem.variant = name;
  const support::DeviceGemm gemm(gpu.driver, problem);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  Recorder recorder(gpu.driver);
  recorder.record([&] { REQUIRE(gemm.enqueue(recorder.stream()) == NVFP4_SUCCESS); });
  CHECK(recorder.nodes() == 2);
  CHECK(recorder.edges() == std::vector<int>{CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
  for (int i = 0; i < 3; ++i) {
    recorder.launch();
    CHECK(first_difference(problem, gemm.d_bytes(), problem.reference()) == "");
  }
}

// Every public function that may meet a driver, once everything is loaded. No call here allocates
// device memory or waits.
TEST_CASE("each function asks of the driver exactly this", "[calls]") {
  USE_GPU_OF_FAMILY(gpu, 10);  // on 9.0 tokens have no tensor map
  USE_EMULATOR(gpu, emulator);
  const Problem problem = make_problem({8, 40, 128}, Data::exact, 106);
  const support::DeviceGemm gemm(gpu.driver, problem);
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  nvfp4_gemm_desc fill = gemm.desc, nothing = gemm.desc;
  fill.k = 0, nothing.m = 0;
  nvfp4_gemm_plan* plan = nullptr;
  const int capability = gpu.info.compute_capability();
  uint64_t bytes = 0;
  char text[2048];
  const auto calls_of = [&](const std::function<nvfp4_status()>& function) {
    emulator.reset_calls();
    CHECK(function() == NVFP4_SUCCESS);
    return emulator.recorded();
  };
  const std::string site = "cuCtxGetCurrent\ncuCtxGetDevice\n";
  const std::string encode = "cuTensorMapEncodeTiled\ncuTensorMapEncodeTiled\n";
  const std::string launch = "cuLaunchKernelEx\n";
  CHECK(calls_of([&] { return nvfp4_gemm_run(&gemm.desc, nullptr); }) == site + encode + launch);
  CHECK(calls_of([&] { return nvfp4_gemm_run(&fill, nullptr); }) == site + "cuMemsetD2D16Async\n");
  CHECK(calls_of([&] { return nvfp4_gemm_run(&nothing, nullptr); }).empty());
  CHECK(calls_of([&] { return nvfp4_gemm_plan_create(&gemm.desc, &plan); }) == site + encode);
  CHECK(calls_of([&] { return nvfp4_gemm_plan_run(plan, nullptr, nullptr); }) == site + launch);
  CHECK(calls_of([&] { return nvfp4_gemm_plan_destroy(plan), NVFP4_SUCCESS; }).empty());
  CHECK(calls_of([&] { return nvfp4_gemm_supported(&gemm.desc, capability); }).empty());
  CHECK(
      calls_of([&] { return nvfp4_gemm_workspace_bytes(&gemm.desc, capability, &bytes); }).empty());
  CHECK(calls_of([&] {
          return nvfp4_gemm_explain(&gemm.desc, capability, 1, text, sizeof text);
        }).empty());
  const std::string mode = "cuThreadExchangeStreamCaptureMode\n";
  std::string prepare = site + mode;
  // Three entries each, plain, general and of D with scales, or two, a product and the sum of its K
  // partitions. Each tile has two for groups; two have one for gated ones, one of them for both.
  // Three tiles of mma.sync have one for groups, which stands for gated ones, too.
  const size_t entries =
      5 * gemm_test::variants().size() + 2 + 1 + 2 * gemm_test::half_variants().size() + 2 * 3;
  for (size_t i = 0; i < entries; ++i) prepare += "cuKernelGetFunction\ncuFuncLoad\n";
  prepare += mode + mode;
  for (int kernel = 0; kernel < 30; ++kernel) prepare += "cuKernelGetFunction\ncuFuncLoad\n";
  CHECK(calls_of([&] { return nvfp4_prepare(); }) == prepare + mode);
}
