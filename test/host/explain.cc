// SPDX-License-Identifier: MIT
// The questions that need no driver: explain and workspace_bytes.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "test/host/child.h"
#include "tools/harness/plan_info.h"
#include "tools/testing/catch.h"

using host_test::contains;

namespace {

nvfp4_gemm_desc problem(int64_t m, int64_t n, int64_t k, int64_t l = 1) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  const auto address = [](uint64_t i) { return reinterpret_cast<void*>(i << 44); };
  g.m = m, g.n = n, g.k = k, g.l = l;
  g.a = address(1), g.a_ld = k, g.a_batch_stride = m * k;
  g.b = address(2), g.b_ld = k, g.b_batch_stride = n * k;
  g.a_scales = address(3), g.b_scales = address(4);
  g.d = address(5), g.d_ld = n, g.d_batch_stride = m * n;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.a_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(m, k, g.a_scale_layout));
  g.b_scales_batch_stride_bytes = int64_t(nvfp4_scale_bytes(n, k, g.b_scale_layout));
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  return g;
}

std::string explained(const nvfp4_gemm_desc& g, int32_t capability = 100, int32_t sms = 148) {
  char text[4096];  // the size that the header calls plenty
  memset(text, 'x', sizeof text);
  const nvfp4_status status = nvfp4_gemm_explain(&g, capability, sms, text, sizeof text);
  INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  REQUIRE(status == NVFP4_SUCCESS);
  return text;
}

}  // namespace

TEST_CASE("explain says everything about a headline shape") {
  CHECK(explained(problem(128, 7168, 2048)) ==
        "problem   M 128, N 7168, K 2048, L 1, D fp16\n"
        "device    compute capability 10.0, 148 SMs\n"
        "image     sm_100a cubin, else sm_100f cubin, else compute_100f PTX\n"
        "driver    CUDA " +
            host_test::compiler() +
            " or newer\n"
            "variant   sm100_128x64x256\n"
            "tile      128 weights x 64 tokens, K by 256\n"
            "stages    8 of 28672 bytes; 229600 bytes of shared memory, 512 columns of tensor "
            "memory\n"
            "grid      112 CTAs of 320 threads\n"
            "waves     0.76 of 148 SMs, one CTA each\n"
            "split     1\n"
            "proof     published: kernels that others run on such a GPU have its mechanisms; this "
            "one has run in the emulator alone\n"
            "workspace 0 bytes\n"
            "store     D by threads: the tile has few tokens\n"
            "bytes     10240000 (A 147456, B 8257536, D 1835008; scales included, each once)\n"
            "bound     1.333 us: memory 1.333 at 7.68 TB/s, FP4 units 0.517 at 1.5 GHz\n"
            "why       least time by the timing model of a B200, which none has confirmed:\n"
            "          * sm100_128x64x256: 112 tiles, split 1, 3.13 us\n"
            "          - sm100_128x128x256: 56 tiles, split 1, 3.45 us\n"
            "          - sm100_256x128x256: 28 tiles, split 1, 3.76 us\n"
            "          - sm100_256x256x256: 28 tiles, split 1, 4.57 us\n"
            "replay    nvfp4 run --m 128 --n 7168 --k 2048\n");
}

TEST_CASE("explain says which driver the images of a plan need") {
  nvfp4_gemm_desc g = problem(4, 256, 512);
  const auto driver = [&g](int32_t capability) {
    const std::string text = explained(g, capability, 132);
    const size_t at = text.find("\ndriver ");
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  const std::string own = "driver    CUDA " + host_test::compiler() + " or newer";
  CHECK(driver(90) == own);
  g.a_type = NVFP4_TYPE_BF16, g.a_scale_layout = 0, g.a_scales = nullptr;
  CHECK(driver(90) == own + "; from CUDA 12.4 on mma.sync compute_80 PTX, perhaps with other bits");
  CHECK(driver(80) == "driver    CUDA 12.4 or newer");
  CHECK(driver(100) == "driver    CUDA 12.4 or newer");
  g.variant = "sm90_bf16_64x16x256";
  CHECK(driver(90) == own);
  for (const char* variant : {"sm80_bf16_64x8w4x128", "sm80_bf16_64x8w4x128/1"}) {
    g.variant = variant;
    CHECK(contains(driver(90), "; from CUDA 12.4 on "));
  }
  g.variant = "sm80_bf16_64x8w4x128/2";
  CHECK(driver(90) == own);
  CHECK(driver(100) == "driver    CUDA 12.4 or newer");
}

TEST_CASE("explain says how CTAs of 10.x share K") {
  const std::string text = explained(problem(128, 7168, 16384));
  CHECK(contains(text, "variant   sm100_128x128x256\n"));
  CHECK(contains(text, "grid      112 CTAs of 320 threads\n"));
  CHECK(contains(text, "split     2\n"));
  CHECK(contains(text, "store     D by threads: CTAs share K\n"));
}

TEST_CASE("explain says that a pair of CTAs has a tile on 10.x") {
  const std::string text = explained(problem(4096, 4096, 4096));
  CHECK(contains(text, "variant   sm100_256x256x256\n"));
  CHECK(contains(text, "tile      256 weights x 256 tokens of a pair of CTAs, K by 256\n"));
  CHECK(contains(text, "grid      148 CTAs of 320 threads, 256 tiles\n"));
  CHECK(contains(text, "split     1\n"));
}

TEST_CASE("explain says why a tile and its split were chosen on 9.0") {
  const std::string text = explained(problem(128, 7168, 2048), 90, 132);
  CHECK(contains(text,
                 "why       fewest clocks of the longest running SM, as the planner counts them:\n"
                 "          - sm90_64x1x256: split 1, "));
  CHECK(contains(text, "          * sm90_64x128x256: split 1, "));
  CHECK(contains(text, "\nproof     hardware: this library has run it on such a GPU\n"));
  // 2^25 tiles of 256 tokens, 2^32 and more of one or two.
  const nvfp4_gemm_desc huge = problem(int64_t{1} << 30, 1024, 64);
  CHECK(contains(explained(huge, 90, 132),
                 "          - sm90_64x2x256: more than 2147483647 tiles\n"));
}

TEST_CASE("explain gives the published speed of light of the task's shapes") {
  CHECK(contains(explained(problem(128, 7168, 16384)), "\nbound     8.994 us: memory 8.994 "));
  CHECK(contains(explained(problem(128, 4096, 7168)), "\nbound     2.354 us: memory 2.354 "));
  // Many tokens are bound by the FP4 units.
  CHECK(contains(explained(problem(4096, 4096, 4096)), "\nbound     18.893 us: memory 6.827 at "));
}

TEST_CASE("The replay line has what differs from the default and nothing else") {
  nvfp4_gemm_desc g = problem(65, 129, 320, 2);
  g.a_ld = 352, g.b_ld = 384, g.d_ld = 131, g.alpha = 0.1f;
  g.a_batch_stride = 65 * 352, g.b_batch_stride = 0, g.d_batch_stride = 65 * 131;
  g.variant = "sm100_256x128x256", g.pdl = NVFP4_PDL_ON;
  CHECK(
      contains(explained(g),
               "\nreplay    nvfp4 run --m 65 --n 129 --k 320 --l 2 --a-ld 352 "
               "--a-batch-stride 22880 --b-ld 384 --b-batch-stride 0 --d-ld 131 "
               "--d-batch-stride 8515 --alpha 0.100000001 --variant sm100_256x128x256 --pdl 1\n"));
  CHECK(contains(explained(g), "\nwhy       desc.variant names it\n"));
  g.variant = "sm100_128x64x256/2";
  const std::string split = explained(g);
  CHECK(contains(split, "\nwhy       desc.variant names it, and in how many parts K is cut\n"));
  CHECK(contains(split, "\nvariant   sm100_128x64x256\n"));
  CHECK(contains(split, "\nsplit     2\n"));
  CHECK(contains(split, " --variant sm100_128x64x256/2 --pdl 1\n"));
  CHECK(contains(explained(g), " B 23220, "));  // repeated weights are read once
}

TEST_CASE("explain and the replay line have every field of the epilogue") {
  nvfp4_gemm_desc g = problem(64, 256, 128, 2);
  g.d_type = NVFP4_TYPE_BF16, g.cd_order = NVFP4_CD_ORDER_COLUMN_MAJOR;
  g.d_ld = 72, g.d_batch_stride = 256 * 72;
  g.c = reinterpret_cast<void*>(uint64_t{6} << 44), g.c_type = NVFP4_TYPE_F32, g.beta = 0.5f;
  g.c_ld = 65, g.c_batch_stride = 0;
  g.bias = reinterpret_cast<void*>(uint64_t{7} << 44), g.bias_type = NVFP4_TYPE_F16;
  g.bias_axis = NVFP4_BIAS_AXIS_ROW, g.activation = NVFP4_ACTIVATION_GELU_TANH;
  g.a_tensor_scale = g.b_tensor_scale = reinterpret_cast<float*>(uint64_t{8} << 44);
  g.b_tensor_scale_columns = 128, g.alpha = 2;
  std::string text = explained(g);
  CHECK(contains(text, "L 2, D bf16\n"));
  CHECK(contains(text,
                 "\nepilogue  alpha, a_tensor_scale, b_tensor_scale for each 128 columns, C fp32, "
                 "bias fp16 by row, gelu-tanh; D bf16 by columns\n"));
  CHECK(contains(text, "C 65536, D 65536; scales included"));
  CHECK(contains(text,
                 "\nreplay    nvfp4 run --m 64 --n 256 --k 128 --l 2 --a-batch-stride 8192 "
                 "--a-tensor-scale --b-batch-stride 32768 --b-tensor-scale 128 --c-ld 65 "
                 "--c-batch-stride 0 --d-ld 72 --d-batch-stride 18432 --alpha 2 --beta 0.5 "
                 "--c-type f32 --d-type bf16 --bias-type f16 --activation gelu-tanh "
                 "--cd-order column --bias-axis row\n"));
  g.a_tensor_scale_rows = 1;
  text = explained(g);
  CHECK(contains(text, "\nepilogue  alpha, a_tensor_scale for each row, b_tensor_scale for each"));
  CHECK(contains(text, " --bias-axis row --a-tensor-scale-rows\n"));
  g.a_tensor_scale_rows = 0;
  g.scalar_mode = NVFP4_SCALARS_DEVICE;
  g.alpha_device = g.beta_device = g.a_tensor_scale;
  text = explained(g);
  CHECK(contains(text, "alpha on the device, a_tensor_scale"));
  CHECK(contains(text, "C fp32 unless beta on the device is 0, "));
  CHECK(contains(text,
                 " --c-type f32 --d-type bf16 --bias-type f16 --scalars device --activation gelu"));
  // A C that is not read is none.
  g.scalar_mode = NVFP4_SCALARS_HOST, g.beta = 0, g.alpha_device = g.beta_device = nullptr;
  text = explained(g);
  CHECK(!contains(text, "C fp32"));
  CHECK(!contains(text, "--c-"));
}

TEST_CASE("explain's longest text fits the buffer that the header calls plenty") {
  nvfp4_gemm_desc g = problem(131072, 107168, 116384, 13);
  g.a_ld = g.b_ld = 116416, g.c_ld = 107203, g.d_ld = 107201;
  g.a_batch_stride = 16842752000, g.b_batch_stride = 117702656000;
  g.c_batch_stride = g.d_batch_stride = 14100000001;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = int64_t{1} << 35;
  g.workspace = reinterpret_cast<void*>(uint64_t{6} << 44);
  g.workspace_bytes = uint64_t{1} << 40;
  g.c_type = NVFP4_TYPE_F32, g.c = reinterpret_cast<void*>(uint64_t{7} << 44);
  g.bias_type = NVFP4_TYPE_BF16, g.bias = reinterpret_cast<void*>(uint64_t{8} << 44);
  g.bias_axis = NVFP4_BIAS_AXIS_ROW, g.activation = NVFP4_ACTIVATION_GELU_TANH;
  g.a_tensor_scale = g.b_tensor_scale = reinterpret_cast<float*>(uint64_t{9} << 44);
  g.b_tensor_scale_columns = 128;
  g.alpha = 0.1f, g.beta = 0.3f;
  g.pdl = NVFP4_PDL_ON, g.batch_invariant = 1;
  CHECK(explained(g).size() > 2048);  // which was called plenty
  CHECK(explained(g).size() < 3072);
  CHECK(explained(g, 90, 132).size() < 3072);
}

TEST_CASE("explain knows problems without a kernel") {
  nvfp4_gemm_desc g = problem(128, 256, 0);
  CHECK(contains(explained(g), "variant   fill\nwhy       K is 0: "));
  g.d_type = NVFP4_TYPE_F32;
  CHECK(contains(explained(g), "variant   empty_sum\nwhy       K is 0: D is the epilogue of "));
  g.m = 0;
  CHECK(contains(explained(g), "why       M, N or L is 0: nothing is read, written or enqueued\n"));
}

TEST_CASE("A compute capability below 0 is written as the number that was given") {
  char text[2048];
  nvfp4_gemm_desc g = problem(128, 256, 256);
  CHECK(nvfp4_gemm_explain(&g, -1, 148, text, sizeof text) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  CHECK(std::string(nvfp4_last_error()) ==
        "compute capability -1 has no kernel here; served are: 10.0 10.3 9.0 8.0 8.6 8.9 10.7 11.0 "
        "12.0 12.1");
  g.m = 0;  // asks for no kernel
  CHECK(contains(explained(g, -1), "device    compute capability -1, 148 SMs\n"));
}

TEST_CASE("explain takes device identities as numbers: waves change but the plan does not") {
  const nvfp4_gemm_desc g = problem(512, 7168, 2048);
  const std::string large = explained(g, 103, 160), small = explained(g, 103, 20);
  CHECK(contains(large, "image     sm_100f cubin, else compute_100f PTX\n"));
  CHECK(contains(large, "grid      112 CTAs"));
  CHECK(contains(large, "waves     0.70 of 160 SMs"));
  CHECK(contains(small, "grid      20 CTAs of 320 threads, 56 tiles\n"));
  CHECK(contains(small, "waves     5.60 of 20 SMs"));
}

TEST_CASE("explain tells where a CTA computes several tiles") {
  const nvfp4_gemm_desc many = problem(4096, 7168, 2048), few = problem(256, 7168, 2048);
  CHECK(contains(explained(many, 90, 132),
                 "grid      132 CTAs of 384 threads, 896 tiles\n"
                 "waves     6.79 of 132 SMs"));
  CHECK(contains(explained(many, 90, 114), "grid      114 CTAs of 384 threads, 896 tiles\n"));
  CHECK(contains(explained(few, 90, 132), "grid      112 CTAs of 384 threads\n"));
}

TEST_CASE("explain's predicted microseconds are near those measured on an H200") {
  // m, n, k, variant, us: cold weights, by graph replay.
  std::ifstream file("bench/results/gpu-h200-2026-11-22.csv");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    long m, n, k;
    char variant[64];
    double measured;
    if (sscanf(line.c_str(), "%ld,%ld,%ld,%63[^,],%lf,", &m, &n, &k, variant, &measured) != 5)
      continue;
    const nvfp4_plan_info plan = support::plan_info(problem(m, n, k), 90, 132);
    CAPTURE(line, plan.variant, plan.predicted_ns);
    if (std::string(variant) != plan.variant) continue;  // the planner has moved on
    const double predicted = plan.predicted_ns * 1e-3;
    CHECK(std::abs(predicted / measured - 1) < 0.15);
    ++rows;
  }
  CHECK(rows > 10);
  const auto limit = [](int64_t m, int64_t n, int64_t k) {
    const std::string text = explained(problem(m, n, k), 90, 132);
    const size_t at = text.find("limit: ") + 7;
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(limit(1, 7168, 16384) == "memory");
  CHECK(limit(4096, 7168, 16384) == "tensor cores");
  CHECK(limit(64, 7168, 16384) == "stages of the longest running SM");
  CHECK(limit(1, 64, 64) == "start of a CTA");
  CHECK(!contains(explained(problem(128, 7168, 2048)), "\ntime "));  // no Blackwell was measured
}

TEST_CASE("explain refuses what a run refuses and a buffer that is too small") {
  nvfp4_gemm_desc g = problem(128, 256, 256);
  char text[64];
  CHECK(nvfp4_gemm_explain(nullptr, 100, 148, text, sizeof text) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_explain(&g, 87, 148, text, sizeof text) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  CHECK(nvfp4_gemm_explain(&g, 89, 148, text, sizeof text) == NVFP4_STATUS_NOT_SUPPORTED);
  CHECK(nvfp4_gemm_explain(&g, 100, 0, text, sizeof text) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_gemm_explain(&g, 100, 148, nullptr, 0) == NVFP4_STATUS_NULL_POINTER);

  const std::string whole = explained(g);
  CHECK(nvfp4_gemm_explain(&g, 100, 148, text, sizeof text) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()) ==
        "bytes = 64 is less than the " + std::to_string(whole.size() + 1) + " that the text needs");
  CHECK(text == whole.substr(0, sizeof text - 1));
  std::string exact(whole.size() + 1, 'x');
  CHECK(nvfp4_gemm_explain(&g, 100, 148, &exact[0], exact.size() - 1) ==
        NVFP4_STATUS_INVALID_VALUE);
  CHECK(exact.back() == 'x');  // not one byte more
  CHECK(nvfp4_gemm_explain(&g, 100, 148, &exact[0], exact.size()) == NVFP4_SUCCESS);
  char none = 'x';
  CHECK(nvfp4_gemm_explain(&g, 100, 148, &none, 0) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(none == 'x');
  g.k = 100;
  CHECK(nvfp4_gemm_explain(&g, 100, 148, text, sizeof text) == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE("workspace_bytes is 0 for every variant or the refusal of a run") {
  nvfp4_gemm_desc g = problem(128, 256, 256);
  for (const char* variant : {static_cast<const char*>(nullptr), "sm100_128x64x256",
                              "sm100_128x128x256", "sm100_256x256x256"}) {
    uint64_t bytes = 7;
    g.variant = variant;
    CHECK(nvfp4_gemm_workspace_bytes(&g, 100, &bytes) == NVFP4_SUCCESS);
    CHECK(bytes == 0);
  }
  uint64_t bytes = 7;
  CHECK(nvfp4_gemm_workspace_bytes(&g, 100, nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_workspace_bytes(&g, 75, &bytes) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  g.a = nullptr;
  CHECK(nvfp4_gemm_workspace_bytes(&g, 100, &bytes) == NVFP4_STATUS_NULL_POINTER);
  CHECK(bytes == 7);
}

TEST_CASE("explain says what a call does about linear scales and how to avoid it on 10.x") {
  nvfp4_gemm_desc g = problem(128, 7168, 2048);
  g.workspace = reinterpret_cast<void*>(uint64_t{6} << 44);
  g.workspace_bytes = uint64_t{1} << 30;
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  const std::string converted = explained(g);
  CHECK(contains(converted, "\nworkspace 917504 bytes\n"));
  CHECK(contains(converted,
                 "\nscales    b_scales are linear: every call first converts them to 128x4, 917504 "
                 "bytes of the workspace; nvfp4_scale_convert once, or quantizing to 128x4, avoids "
                 "it\n"));
  CHECK(!contains(converted, "a_scales are linear"));
  CHECK(contains(converted, "\nreplay    nvfp4 run --m 128 --n 7168 --k 2048 --b-scales linear\n"));
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  CHECK(contains(explained(g), "\nworkspace 933888 bytes\n"));
  const std::string read = explained(g, 90, 132);
  CHECK(contains(read, "\nscales    a_scales are linear: the kernel reads them as they are\n"));
  CHECK(contains(read, " --a-scales linear --b-scales linear\n"));
}

TEST_CASE("on 10.x linear scales need their tiles as a workspace for each batch that has some") {
  const auto needs = [](const nvfp4_gemm_desc& g, int32_t capability) {
    uint64_t bytes = 7;
    REQUIRE(nvfp4_gemm_workspace_bytes(&g, capability, &bytes) == NVFP4_SUCCESS);
    return bytes;
  };
  nvfp4_gemm_desc g = problem(130, 70, 80, 3);
  g.a_ld = g.b_ld = 96, g.a_batch_stride = 130 * 96, g.b_batch_stride = 96 * 70;
  CHECK(needs(g, 100) == 0);
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  CHECK(needs(g, 100) == 3 * 2 * 2 * 512);
  CHECK(needs(g, 103) == 3 * 2 * 2 * 512);
  g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  CHECK(needs(g, 100) == 3 * 3 * 2 * 512);
  g.b_scales_batch_stride_bytes = 0;
  CHECK(needs(g, 100) == 3 * 2 * 2 * 512 + 2 * 512);
  g.k = 0;
  CHECK(needs(g, 100) == 0);
  // 2^31 rows of 2^31 elements are 2^58 bytes of tiles; of 16 batches and more they do not fit.
  nvfp4_gemm_desc huge = NVFP4_GEMM_DESC_INIT;
  huge.m = 1, huge.n = huge.k = (int64_t{1} << 31) - 64, huge.l = 32;
  huge.a_ld = huge.b_ld = huge.k, huge.d_ld = huge.n;
  huge.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4, huge.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  huge.b_scales_batch_stride_bytes = int64_t{1} << 58, huge.d_batch_stride = huge.n;
  huge.d_type = NVFP4_TYPE_F16;
  uint64_t bytes = 7;
  CHECK(nvfp4_gemm_workspace_bytes(&huge, 100, &bytes) == NVFP4_STATUS_LIMIT);
  CHECK(bytes == 7);
}
