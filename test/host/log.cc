// SPDX-License-Identifier: MIT
// The log callback. What goes to stderr without one: driver.cc.
#include <atomic>
#include <functional>
#include <thread>

#include "nvfp4_gemm.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

namespace {

using Lines = std::vector<std::string>;

void keep(void* user, int32_t level, const char* line) {
  static_cast<Lines*>(user)->push_back(std::to_string(level) + " " + line);
}

void count(void* user, int32_t, const char*) { ++*static_cast<std::atomic<int>*>(user); }

void fail_once() { nvfp4_gemm_supported(nullptr, 100); }

// Back to stderr, which is silent in tests, at the end of a test.
struct NoCallback {
  ~NoCallback() { nvfp4_set_log_callback(nullptr, nullptr, 0); }
};

}  // namespace

TEST_CASE("A log callback gets the lines up to its level") {
  const NoCallback at_the_end;
  Lines lines;
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 1) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines == Lines{"1 NVFP4_STATUS_NULL_POINTER: desc is NULL and is required here"});
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 0) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 1);
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 3) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 2);
  REQUIRE(nvfp4_set_log_callback(nullptr, nullptr, 0) == NVFP4_SUCCESS);
  fail_once();
  CHECK(lines.size() == 2);
}

TEST_CASE("A level that is none is refused and changes nothing") {
  const NoCallback at_the_end;
  Lines lines;
  REQUIRE(nvfp4_set_log_callback(keep, &lines, 1) == NVFP4_SUCCESS);
  CHECK(nvfp4_set_log_callback(nullptr, nullptr, 4) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_set_log_callback(nullptr, nullptr, -1) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(lines == Lines{"1 NVFP4_STATUS_INVALID_VALUE: level = 4 is outside 0 to 3",
                       "1 NVFP4_STATUS_INVALID_VALUE: level = -1 is outside 0 to 3"});
}

TEST_CASE("Threads log while the callback changes and no line is lost") {
  const NoCallback at_the_end;
  constexpr int kThreads = 4, kCalls = 2000;
  std::atomic<int> even{0}, odd{0};
  REQUIRE(nvfp4_set_log_callback(count, &even, 1) == NVFP4_SUCCESS);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int call = 0; call < kCalls; ++call) fail_once();
    });
  }
  for (int i = 1; i <= 200; ++i) nvfp4_set_log_callback(count, i % 2 ? &odd : &even, 1);
  for (std::thread& thread : threads) thread.join();
  CHECK(even + odd == kThreads * kCalls);
}

namespace {

// The notes of one call at that level, without "2 note: ".
Lines notes_of(const std::function<nvfp4_status()>& call, int32_t level = 2) {
  const NoCallback at_the_end;
  Lines lines, notes;
  REQUIRE(nvfp4_set_log_callback(keep, &lines, level) == NVFP4_SUCCESS);
  CHECK(call() == NVFP4_SUCCESS);
  const std::string head = "2 note: ";
  for (const std::string& line : lines) {
    if (line.rfind(head, 0) == 0) notes.push_back(line.substr(head.size()));
  }
  return notes;
}

// A product of the reference, whose arrays hold zeros.
struct Small {
  alignas(16) uint8_t a[64] = {}, b[64] = {}, scales[512] = {};
  float d[64] = {}, one = 1;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;

  Small() {
    g.m = 2, g.n = 2, g.k = 32;
    g.a = a, g.b = b, g.a_scales = g.b_scales = scales, g.d = d;
    g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
    g.a_ld = g.b_ld = 32, g.d_ld = 2, g.d_type = NVFP4_TYPE_F32;
  }
};

}  // namespace

TEST_CASE("A product that leaves D as it was says so at level 2") {
  const Lines want = {
      "m = 2, n = 2, l = 0: nothing is computed where one of them is 0, and D keeps its bytes"};
  Small x;
  CHECK(notes_of([&] { return nvfp4_gemm_reference(&x.g); }).empty());
  x.g.l = 0;
  CHECK(notes_of([&] { return nvfp4_gemm_reference(&x.g); }) == want);
  CHECK(notes_of([&] { return nvfp4_gemm_reference(&x.g); }, 1).empty());
  CHECK(notes_of([&] { return nvfp4_gemm_run(&x.g, nullptr); }) == want);
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &x.g, grouped.rows_kind = NVFP4_ROWS_ENDS;
  CHECK(notes_of([&] { return nvfp4_grouped_run(&grouped, nullptr); }) == want);
  CHECK(notes_of([&] { return nvfp4_grouped_reference(&grouped); }) == want);
  for (const bool of_groups : {false, true}) {
    nvfp4_gemm_plan* plan = nullptr;
    REQUIRE((of_groups ? nvfp4_grouped_plan_create(&grouped, &plan)
                       : nvfp4_gemm_plan_create(&x.g, &plan)) == NVFP4_SUCCESS);
    CHECK(notes_of([&] { return nvfp4_gemm_plan_run(plan, nullptr, nullptr); }) == want);
    nvfp4_gemm_plan_destroy(plan);
  }
}

TEST_CASE("A factor of 0 and a B for all groups are said at level 2") {
  const std::string zero = "alpha = 0: the product with b counts as 0";
  const std::string zero2 = "alpha2 = 0: the product with b2 counts as 0";
  Small x;
  const auto notes = [&] { return notes_of([&] { return nvfp4_gemm_reference(&x.g); }); };
  x.g.alpha = -0.0f;
  CHECK(notes() == Lines{zero});
  x.g.b2 = x.b, x.g.b2_scales = x.scales, x.g.activation = NVFP4_ACTIVATION_SILU;
  CHECK(notes() == Lines{zero, zero2});
  x.g.alpha = x.g.alpha2 = 1e-45f;
  CHECK(notes().empty());
  x.g.alpha = x.g.alpha2 = 0;
  x.g.scalar_mode = NVFP4_SCALARS_DEVICE, x.g.alpha_device = x.g.alpha2_device = &x.one;
  CHECK(notes().empty());
  x.g.scalar_mode = NVFP4_SCALARS_HOST, x.g.alpha_device = x.g.alpha2_device = nullptr;

  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  const int32_t ends[] = {1, 2};
  const float alphas[] = {1, 1};
  grouped.gemm = &x.g, grouped.rows_kind = NVFP4_ROWS_ENDS, grouped.rows = ends;
  grouped.b_shared = 1, x.g.l = 2;
  const auto of_groups = [&] {
    return notes_of([&] { return nvfp4_grouped_reference(&grouped); });
  };
  const std::string shared = "b_shared = 1: all 2 groups use one B";
  CHECK(of_groups() == Lines{shared, zero, zero2});
  grouped.group_alpha = alphas;
  CHECK(of_groups() == Lines{shared, zero2});
  grouped.group_alpha2 = alphas;
  CHECK(of_groups() == Lines{shared});
  grouped.group_alpha = grouped.group_alpha2 = nullptr;
  x.g.k = 0, x.g.l = 1, x.g.b2 = x.g.b2_scales = nullptr;
  CHECK(notes().empty());  // 0 either way
}

TEST_CASE("A launch and a plan's launch say the same of their factors") {
  using namespace host_test;
  const Lines lines = probe(DriverChoice::fake, "run-alpha0", "NVFP4_LOG=2");
  CHECK(starting_with(lines, "nvfp4: note: alpha = 0: ").size() == 2);
}

TEST_CASE("A quantizer of nothing says so at level 2") {
  float x[64] = {};
  uint8_t codes[32] = {}, scales[512] = {};
  const auto linear = NVFP4_SCALE_LAYOUT_LINEAR, tiles = NVFP4_SCALE_LAYOUT_128X4;
  nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
  q.k = 64, q.x_type = NVFP4_TYPE_F32, q.scale_layout = linear, q.tensor_scale = 1;
  nvfp4_fused_quantize_desc f = NVFP4_FUSED_QUANTIZE_DESC_INIT;
  f.k = 64, f.type = NVFP4_TYPE_F32, f.scale_layout = linear, f.tensor_scale = 1;
  f.operation = NVFP4_FUSED_SILU_MUL;
  const std::vector<std::pair<std::string, std::function<nvfp4_status()>>> calls = {
      {"nvfp4_quantize_host",
       [&] { return nvfp4_quantize_host(x, 64, 0, 64, 1, codes, 64, scales, linear); }},
      {"nvfp4_dequantize_host",
       [&] { return nvfp4_dequantize_host(codes, 64, scales, linear, 0, 64, 1, x, 64); }},
      {"nvfp4_scale_convert_host",
       [&] { return nvfp4_scale_convert_host(codes, linear, scales, tiles, 0, 64); }},
      {"nvfp4_scale_convert",
       [&] { return nvfp4_scale_convert(codes, linear, scales, tiles, 0, 64, nullptr); }},
      {"nvfp4_quantize", [&] { return nvfp4_quantize(&q, nullptr); }},
      {"nvfp4_dequantize", [&] { return nvfp4_dequantize(&q, nullptr); }},
      {"nvfp4_quantize_reference", [&] { return nvfp4_quantize_reference(&q); }},
      {"nvfp4_dequantize_reference", [&] { return nvfp4_dequantize_reference(&q); }},
      {"nvfp4_fused_quantize", [&] { return nvfp4_fused_quantize(&f, nullptr); }},
      {"nvfp4_fused_quantize_host", [&] { return nvfp4_fused_quantize_host(&f); }},
  };
  for (const auto& [name, call] : calls) {
    CHECK(notes_of(call) == Lines{name + " with rows = 0, k = 64: nothing is read or written where "
                                         "one of them is 0"});
  }
}

TEST_CASE("With a callback nothing goes to stderr whatever NVFP4_LOG says") {
  using host_test::DriverChoice;
  using host_test::starting_with;
  const Lines lines = host_test::probe(DriverChoice::fake, "callback run", "NVFP4_LOG=3");
  CHECK(starting_with(lines, "nvfp4: ").empty());
  const Lines caught = starting_with(lines, "callback 2: gemm ");
  REQUIRE(caught.size() == 1);
  CHECK(host_test::contains(caught[0], " image=\""));
  CHECK(host_test::contains(caught[0],
                            " variant=sm100_128x64x256 grid=12 replay=\"nvfp4 run --m "
                            "256 --n 384 --k 512 --b-ld 544 --d-ld 385 --alpha 1.5\""));
}

// The first use opens the driver and loads images, while other threads wait for it: no line may
// leave before they can go on. A thread enters the callback once, so calls inside it log nothing.
TEST_CASE("A callback that uses the library during the first use waits for nobody") {
  using namespace host_test;
  const std::string first = GENERATE("run", "prepare", "plan");
  const bool driver_is_open = GENERATE(false, true);  // K = 0 opens it and loads no image
  CAPTURE(first, driver_is_open);
  const Lines lines =
      probe(DriverChoice::fake, (driver_is_open ? "run-k0 " : "") + ("callback-calls " + first));
  const Lines logged = starting_with(lines, "line ");
  REQUIRE(!logged.empty());
  CHECK(logged[0] == (driver_is_open ? "line 3: sm_100a cubin: cuLibraryGetKernel succeeds"
                                     : "line 3: driver opened, 1 device(s)"));
  CHECK(starting_with(lines, "inside NVFP4_SUCCESS").size() == 2 * logged.size());
  CHECK(starting_with(lines, "inside NVFP4_STATUS_NULL_POINTER").size() == logged.size());
}

TEST_CASE("Callbacks of 32 threads that use the library during the first use wait for nobody") {
  using namespace host_test;
  const Lines lines = probe(DriverChoice::fake, "callback-calls threads");
  CHECK(starting_with(lines, "threads ") == Lines{"threads NVFP4_SUCCESS"});
}

TEST_CASE("A callback that uses the library while the driver or an image is refused") {
  using namespace host_test;
  struct Row {
    const char *answers, *line;
  };
  const Row row =
      GENERATE(Row{"cuInit:1:803,cuInit:2:0", "NVFP4_STATUS_NO_DRIVER: cuInit answers "},
               Row{"cuLibraryLoadData:1:200,cuLibraryLoadData:2:0",
                   "NVFP4_STATUS_IMAGE_LOAD: cuLibraryLoadData refuses the sm_100a cubin with "});
  CAPTURE(row.answers);
  const bool opens = std::string(row.answers).rfind("cuInit", 0) == 0;
  const Lines lines =
      probe(DriverChoice::fake, std::string(opens ? "" : "run-k0 ") + "callback-calls run run",
            std::string("FAKE_ANSWERS=") + row.answers);
  CHECK(starting_with(lines, std::string("line 1: ") + row.line).size() == 1);
  // The sentence is that of the run and not of a call inside its callback.
  const Lines answers = starting_with(lines, "NVFP4_");
  REQUIRE(answers.size() == (opens ? 3 : 4));
  CHECK(contains(answers[answers.size() - 2], row.line));
  CHECK(answers.back() == "NVFP4_SUCCESS: ");
}

TEST_CASE("A failing call inside a callback leaves the caller's last error as it was") {
  const NoCallback at_the_end;
  const auto fail_otherwise = [](void*, int32_t, const char*) {
    CHECK(nvfp4_set_log_callback(nullptr, nullptr, 4) == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()) == "level = 4 is outside 0 to 3");
  };
  REQUIRE(nvfp4_set_log_callback(fail_otherwise, nullptr, 1) == NVFP4_SUCCESS);
  fail_once();
  CHECK(std::string(nvfp4_last_error()) == "desc is NULL and is required here");
}
