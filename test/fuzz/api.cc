// SPDX-License-Identifier: MIT
// A sequence of calls of the public functions, on the emulator's driver. Each answers a status of
// the header; what fails has a sentence and enqueues nothing; what is well formed succeeds and has
// the reference's bits; whatever happened, nothing is left behind.
#include <dlfcn.h>

#include <memory>

#include "nvfp4_gemm.h"
#include "nvfp4emu.h"
#include "tools/harness/driver.h"
#include "tools/testing/fuzz_input.h"

namespace {

const support::Driver* driver;
decltype(&nvfp4emu_fail) fail_planned;
decltype(&nvfp4emu_calls) calls;
decltype(&nvfp4emu_reset_calls) reset_calls;
decltype(&nvfp4emu_ledger) ledger;

template <class F>
void find(F* function, const char* name) {
  *function = reinterpret_cast<F>(driver->extension(name));
  fuzz::expect(*function != nullptr, "the driver is not the emulator: no", name);
}

std::string recorded() {
  std::string text(calls(nullptr, 0), '\0');
  calls(text.data(), text.size());
  return text;
}

bool enqueued() {
  const std::string text = recorded();
  return text.find("cuLaunch") != std::string::npos || text.find("cuMemset") != std::string::npos;
}

nvfp4_status judged(nvfp4_status status) {
  fuzz::expect(strcmp(nvfp4_status_name(status), "NVFP4_STATUS_UNKNOWN") != 0, "an unknown status");
  fuzz::expect(status != NVFP4_STATUS_INTERNAL, "an internal error", nvfp4_last_error());
  if (status != NVFP4_SUCCESS) fuzz::expect(*nvfp4_last_error() != '\0', "no sentence");
  return status;
}

// ---- a small problem, each buffer exactly as large as the header says ---------------------------

struct Sizes {
  int64_t m, n, k, l;
  int64_t a_ld, b_ld, d_ld;
  int32_t a_layout, b_layout;
};

Sizes small_sizes(fuzz::Input& input) {
  Sizes s;
  s.m = 1 + input.below(70), s.n = 1 + input.below(140);
  s.k = 64 * int64_t(input.below(4)), s.l = 1 + input.below(2);
  s.a_ld = s.k + 32 * int64_t(input.below(3)), s.b_ld = s.k + 32 * int64_t(input.below(3));
  s.d_ld = s.n + input.below(9);
  s.a_layout = NVFP4_SCALE_LAYOUT_128X4 + int32_t(input.below(2));
  s.b_layout = NVFP4_SCALE_LAYOUT_128X4 + int32_t(input.below(2));
  if (input.below(2)) s.k += 16 * int64_t(input.below(4)), s.a_ld += 64, s.b_ld += 64;
  return s;
}

int64_t scales_stride(int64_t rows, int64_t k, int32_t layout) {
  return (int64_t(nvfp4_scale_bytes(rows, k, layout)) + 15) / 16 * 16;
}

nvfp4_gemm_desc desc_of(const Sizes& s) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = s.m, g.n = s.n, g.k = s.k, g.l = s.l;
  g.a_ld = s.a_ld, g.b_ld = s.b_ld, g.d_ld = s.d_ld;
  g.a_batch_stride = s.m * s.a_ld, g.b_batch_stride = s.n * s.b_ld;
  g.d_batch_stride = s.m * s.d_ld;
  g.a_scale_layout = s.a_layout, g.b_scale_layout = s.b_layout;
  g.a_scales_batch_stride_bytes = scales_stride(s.m, s.k, s.a_layout);
  g.b_scales_batch_stride_bytes = scales_stride(s.n, s.k, s.b_layout);
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  return g;
}

struct Buffers {
  std::vector<uint8_t> a, a_scales, b, b_scales;
  size_t d_bytes;

  Buffers(const Sizes& s, fuzz::Input& input)
      : a(size_t((s.l - 1) * s.m * s.a_ld + (s.m - 1) * s.a_ld + s.k) / 2),
        a_scales(size_t((s.l - 1) * scales_stride(s.m, s.k, s.a_layout)) +
                 nvfp4_scale_bytes(s.m, s.k, s.a_layout)),
        b(size_t((s.l - 1) * s.n * s.b_ld + (s.n - 1) * s.b_ld + s.k) / 2),
        b_scales(size_t((s.l - 1) * scales_stride(s.n, s.k, s.b_layout)) +
                 nvfp4_scale_bytes(s.n, s.k, s.b_layout)),
        d_bytes(size_t((s.l - 1) * s.m * s.d_ld + (s.m - 1) * s.d_ld + s.n) * 2) {
    uint32_t seed = input.number<uint32_t>();
    const auto next = [&] { return seed = seed * 1664525 + 1013904223, uint8_t(seed >> 24); };
    for (uint8_t& x : a) x = next();
    for (uint8_t& x : b) x = next();
    // Powers of two, so that every sum is exact and device and reference agree to the bit.
    for (uint8_t& x : a_scales) x = uint8_t(0x30 + next() % 3 * 8);
    for (uint8_t& x : b_scales) x = uint8_t(0x30 + next() % 3 * 8);
  }
};

struct OnDevice {
  CUdeviceptr address = 0;
  explicit OnDevice(const std::vector<uint8_t>& content) {
    if (content.empty()) return;
    driver->check(driver->cuMemAlloc(&address, content.size()), "cuMemAlloc");
    driver->check(driver->cuMemcpyHtoD(address, content.data(), content.size()), "cuMemcpyHtoD");
  }
  ~OnDevice() { driver->cuMemFree(address); }
  OnDevice(const OnDevice&) = delete;
  void* pointer() const { return reinterpret_cast<void*>(address); }
};

// ---- the calls ---------------------------------------------------------------------------------

struct World {
  fuzz::Input& input;
  bool has_context = false;
  CUcontext context = nullptr;
  std::vector<nvfp4_gemm_plan*> plans = {};
  int launches = 0;  // the emulator takes milliseconds for each

  void enter() {
    if (has_context) return;
    driver->check(driver->cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    driver->check(driver->cuCtxSetCurrent(context), "cuCtxSetCurrent");
    has_context = true;
  }
  void leave() {
    if (!has_context) return;
    driver->cuCtxSetCurrent(nullptr);
    driver->cuDevicePrimaryCtxRelease(0);
    has_context = false;
  }

  // A well-formed problem: success and the reference's bits, by run or by a plan.
  void run_small() {
    enter();
    const Sizes s = small_sizes(input);
    const Buffers host(s, input);
    if (++launches > 3) return;
    const std::vector<uint8_t> untouched(host.d_bytes, 0xFF);
    const OnDevice a(host.a), a_scales(host.a_scales), b(host.b), b_scales(host.b_scales),
        d(untouched);
    nvfp4_gemm_desc g = desc_of(s);
    const char* const variants[] = {nullptr, "sm100_128x64x256", "sm100_128x128x256",
                                    "sm100_256x128x256"};
    g.variant = input.pick(variants);
    g.pdl = int32_t(input.below(3));
    g.a = a.pointer(), g.a_scales = a_scales.pointer();
    g.b = b.pointer(), g.b_scales = b_scales.pointer(), g.d = d.pointer();
    uint64_t bytes = 0;
    fuzz::expect(judged(nvfp4_gemm_workspace_bytes(&g, 100, &bytes)) == NVFP4_SUCCESS,
                 "a good problem has no workspace", nvfp4_last_error());
    const OnDevice workspace(std::vector<uint8_t>(size_t(bytes), 0xFF));
    if (bytes > 0) g.workspace = workspace.pointer(), g.workspace_bytes = bytes;
    g.activation = input.below(3) == 1 ? NVFP4_ACTIVATION_RELU : NVFP4_ACTIVATION_NONE;
    if (input.below(3) == 1) g.d_type = NVFP4_TYPE_BF16;
    launch(g);
    g.workspace = nullptr, g.workspace_bytes = 0;
    std::vector<uint8_t> seen(host.d_bytes), expected(untouched);
    driver->check(driver->cuMemcpyDtoH(seen.data(), d.address, seen.size()), "cuMemcpyDtoH");
    g.a = host.a.data(), g.a_scales = host.a_scales.data();
    g.b = host.b.data(), g.b_scales = host.b_scales.data(), g.d = expected.data();
    fuzz::expect(judged(nvfp4_gemm_reference(&g)) == NVFP4_SUCCESS, "the reference refuses",
                 nvfp4_last_error());
    fuzz::expect(seen == expected, "the device's D is not the reference's");
  }

  void launch(const nvfp4_gemm_desc& g) {
    if (input.below(2)) {
      fuzz::expect(judged(nvfp4_gemm_run(&g, nullptr)) == NVFP4_SUCCESS, "a good run is refused",
                   nvfp4_last_error());
      return;
    }
    nvfp4_gemm_plan* plan = nullptr;
    fuzz::expect(judged(nvfp4_gemm_plan_create(&g, &plan)) == NVFP4_SUCCESS,
                 "a good plan is refused", nvfp4_last_error());
    fuzz::expect(judged(nvfp4_gemm_plan_run(plan, nullptr, nullptr)) == NVFP4_SUCCESS,
                 "a good plan does not run", nvfp4_last_error());
    nvfp4_gemm_plan_destroy(plan);
  }

  // Words of the struct replaced by anything. It may pass the checks, but must never be launched:
  // the driver refuses its first launch and its first fill.
  void wild() {
    struct {
      nvfp4_gemm_desc desc;
      unsigned char tail[64];
    } x;
    memset(&x, 0, sizeof x);
    x.desc = desc_of(small_sizes(input));
    void** const pointers[] = {const_cast<void**>(&x.desc.a), const_cast<void**>(&x.desc.a_scales),
                               const_cast<void**>(&x.desc.b), const_cast<void**>(&x.desc.b_scales),
                               &x.desc.d};
    for (size_t i = 0; i < 5; ++i) *pointers[i] = reinterpret_cast<void*>((i + 1) << 36);
    for (uint32_t changes = input.below(4); changes > 0; --changes) {
      const size_t word = input.below(sizeof x / 4);
      const uint32_t values[] = {0,          1,          16,         0x7FFFFFFF,
                                 0x80000000, 0xFFFFFFFF, 0x00010000, input.number<uint32_t>()};
      const uint32_t value = input.pick(values);
      memcpy(reinterpret_cast<unsigned char*>(&x) + 4 * word, &value, 4);
    }
    const char* const variants[] = {nullptr, "sm100_128x128x256", "", "sm100"};
    x.desc.variant = input.pick(variants);
    if (x.desc.struct_size > sizeof x) x.desc.struct_size = sizeof x;
    ask(x.desc);
    create(x.desc);
    if (x.desc.k == 0) return;  // K = 0 fills: as many calls as batches
    fail_planned("cuLaunchKernelEx", 1, CUDA_ERROR_NOT_PERMITTED);
    const nvfp4_status status = judged(nvfp4_gemm_run(&x.desc, nullptr));
    fail_planned("cuLaunchKernelEx", 0, 0);
    const bool empty = x.desc.m == 0 || x.desc.n == 0 || x.desc.l == 0;
    fuzz::expect(status != NVFP4_SUCCESS || empty, "a refused launch is a success");
  }

  void ask(const nvfp4_gemm_desc& g) {
    reset_calls();
    uint64_t bytes = 7;
    char text[512];
    const int32_t capability = input.below(2) ? 100 : int32_t(input.number<uint16_t>());
    const bool good = judged(nvfp4_gemm_supported(&g, capability)) == NVFP4_SUCCESS;
    const bool sized = judged(nvfp4_gemm_workspace_bytes(&g, capability, &bytes)) == NVFP4_SUCCESS;
    // A workspace that is missing is none of workspace_bytes' business.
    fuzz::expect(good ? sized : true, "workspace_bytes and supported differ");
    fuzz::expect(sized != (bytes == 7), "an answer beside a refusal");
    nvfp4_plan_info info{};
    info.struct_size = sizeof info;
    const bool described = judged(nvfp4_gemm_describe(&g, capability, 148, &info)) == NVFP4_SUCCESS;
    fuzz::expect(described == sized, "describe and workspace_bytes differ");
    fuzz::expect(!described || info.workspace_bytes == bytes, "two numbers for one workspace");
    judged(nvfp4_gemm_explain(&g, capability, int32_t(input.number<uint16_t>()), text,
                              input.below(256)));
    fuzz::expect(recorded().size() == 1, "a question reached the driver", recorded().c_str());
  }

  void create(const nvfp4_gemm_desc& g) {
    reset_calls();
    nvfp4_gemm_plan* plan = reinterpret_cast<nvfp4_gemm_plan*>(this);
    const nvfp4_status status = judged(nvfp4_gemm_plan_create(&g, &plan));
    fuzz::expect((plan != nullptr) == (status == NVFP4_SUCCESS), "a plan and a refusal");
    fuzz::expect(!enqueued(), "plan_create enqueues");
    if (plan != nullptr) plans.push_back(plan);
  }

  // Addresses of a plan replaced by anything.
  void run_plan() {
    if (plans.empty()) return;
    nvfp4_gemm_addresses x{};
    x.struct_size = input.below(4) ? sizeof x : input.number<uint16_t>() % (sizeof x + 1);
    const auto any = [&] { return reinterpret_cast<void*>(input.number<uint64_t>()); };
    x.a = any(), x.b_scales = any(), x.d = any(), x.workspace = any();
    const uint64_t which = input.number<uint64_t>();
    if (which % 4 == 1) x.a_scales = any(), x.b = any(), x.c = any(), x.bias = any();
    if (which % 8 >= 6) {
      x.a_tensor_scale = static_cast<const float*>(any());
      x.b_tensor_scale = static_cast<const float*>(any());
      x.alpha_device = static_cast<const float*>(any());
      x.beta_device = static_cast<const float*>(any());
      x.workspace_bytes = which;
    }
    if (which % 16 == 15) x.d_scales = any();  // not there yet
    nvfp4_gemm_plan* const plan = plans[input.below(uint32_t(plans.size() % 256))];
    reset_calls();
    fail_planned("cuLaunchKernelEx", 1, CUDA_ERROR_NOT_PERMITTED);
    fail_planned("cuTensorMapEncodeTiled", input.below(3), CUDA_ERROR_INVALID_VALUE);
    judged(nvfp4_gemm_plan_run(plan, &x, nullptr));
    fail_planned("cuTensorMapEncodeTiled", 0, 0);
  }

  void destroy_plan() {
    if (plans.empty()) return;
    nvfp4_gemm_plan_destroy(plans.back());
    plans.pop_back();
  }

  // A driver call that fails: what the caller gets is a refusal, and nothing has been enqueued.
  void fail_once() {
    enter();
    const char* const entries[] = {"cuCtxGetCurrent", "cuCtxGetDevice", "cuTensorMapEncodeTiled",
                                   "cuLaunchKernelEx"};
    const CUresult answers[] = {CUDA_ERROR_INVALID_VALUE,   CUDA_ERROR_OUT_OF_MEMORY,
                                CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_CONTEXT,
                                CUDA_ERROR_UNKNOWN,         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
    Sizes s = small_sizes(input);
    if (s.k == 0) s.k = s.a_ld = s.b_ld = 64;
    s.a_layout = s.b_layout = NVFP4_SCALE_LAYOUT_128X4;  // no workspace
    nvfp4_gemm_desc g = desc_of(s);
    g.a = reinterpret_cast<void*>(1ull << 36), g.a_scales = reinterpret_cast<void*>(2ull << 36);
    g.b = reinterpret_cast<void*>(3ull << 36), g.b_scales = reinterpret_cast<void*>(4ull << 36);
    g.d = reinterpret_cast<void*>(5ull << 36);
    const char* const entry = input.pick(entries);
    fail_planned(entry, 1, input.pick(answers));
    const nvfp4_status status = judged(nvfp4_gemm_run(&g, nullptr));
    fail_planned(entry, 0, 0);
    fuzz::expect(status != NVFP4_SUCCESS, "a failing driver call is a success", entry);
    fuzz::expect(strstr(nvfp4_last_error(), entry) != nullptr, "the failing call is not named",
                 nvfp4_last_error());
    leave();  // a sticky error ends with its context
  }

  void quantize() {
    const int64_t rows = int64_t(input.below(40)), k = 16 * int64_t(input.below(6));
    const int64_t x_ld = k + input.below(3), codes_ld = k + 2 * input.below(3);
    const int32_t layout = int32_t(input.below(4)), other = int32_t(input.below(4));
    std::vector<float> x(rows ? size_t((rows - 1) * x_ld + k) : 0);
    for (float& value : x) value = input.number<float>();
    std::vector<uint8_t> codes(rows ? size_t((rows - 1) * codes_ld + k) / 2 : 0);
    std::vector<uint8_t> scales(nvfp4_scale_bytes(rows, k, layout));
    std::vector<uint8_t> converted(nvfp4_scale_bytes(rows, k, other));
    const float t = input.below(2) ? 1.0f : input.number<float>();
    judged(nvfp4_quantize_host(x.data(), x_ld, rows, k, t, codes.data(), codes_ld, scales.data(),
                               layout));
    judged(nvfp4_dequantize_host(codes.data(), codes_ld, scales.data(), layout, rows, k, t,
                                 x.data(), x_ld));
    judged(nvfp4_scale_convert_host(scales.data(), layout, converted.data(), other, rows, k));
  }

  void step() {
    switch (input.below(8)) {
      case 0: return run_small();
      case 1: return wild();
      case 2: return run_plan();
      case 3: return destroy_plan();
      case 4: return fail_once();
      case 5: return quantize();
      case 6: return has_context ? leave() : enter();
      case 7: judged(nvfp4_prepare()); return;
    }
  }
};

nvfp4emu_counts alive() {
  nvfp4emu_counts counts;
  ledger(&counts);
  counts.libraries = 0;  // loaded once, and kept
  return counts;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("EMU_WORKERS", "1", 1);
  driver = &support::Driver::get();
  find(&fail_planned, "nvfp4emu_fail");
  find(&calls, "nvfp4emu_calls");
  find(&reset_calls, "nvfp4emu_reset_calls");
  find(&ledger, "nvfp4emu_ledger");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  fuzz::Input input(data, bytes);
  const nvfp4emu_counts before = alive();
  World world{input};
  for (int step = 0; step < 24 && !input.empty(); ++step) world.step();
  while (!world.plans.empty()) world.destroy_plan();
  world.leave();
  const nvfp4emu_counts after = alive();
  fuzz::expect(memcmp(&before, &after, sizeof before) == 0, "something is left behind");
  reset_calls();
  return 0;
}
