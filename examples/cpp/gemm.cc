// SPDX-License-Identifier: MIT
//
// gemm.cc: one plan, run for several batches of activations, in C++17 with owners for everything.
//
//     c++ -std=c++17 -Iinclude examples/cpp/gemm.cc -o gemm -Lbuild -lnvfp4gemm -ldl
//
// A linear layer: D in bf16 with a bias; weights quantized once, a plan made once, then one launch
// per batch with new addresses: codes, scales, which are linear here, and the tensor scale on the
// device, since each batch has one of its own. Each result is compared with the library's CPU
// reference. Without a GPU that runs the kernels it says so and ends well.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"

namespace {

int64_t tokens = 96, outputs = 320, inputs = 512;  // or as the program's arguments

// A status becomes an exception that carries the library's sentence.
struct Error : std::runtime_error {
  nvfp4_status status;
  explicit Error(nvfp4_status s)
      : std::runtime_error(std::string(nvfp4_status_name(s)) + ": " + nvfp4_last_error()),
        status(s) {}
};

void check(nvfp4_status status) {
  if (status != NVFP4_SUCCESS) throw Error(status);
}

// ---- A matrix in NVFP4, on the host -------------------------------------------------------------

struct Matrix {
  std::vector<uint8_t> codes, scales;
  float tensor_scale;  // value = code * scale * tensor_scale
  int32_t layout;      // of the scales

  Matrix(const std::vector<float>& x, int64_t rows, int64_t k, int32_t of_scales)
      : layout(of_scales) {
    float amax = 0;
    for (float value : x) amax = std::max(amax, std::fabs(value));
    tensor_scale = amax / 2688;  // 448 * 6, the largest scale times the largest element
    codes.resize(size_t(rows * k / 2));
    scales.resize(nvfp4_scale_bytes(rows, k, layout));
    check(nvfp4_quantize_host(x.data(), k, rows, k, tensor_scale, codes.data(), k, scales.data(),
                              layout));
  }
};

// ---- The driver, as far as this program needs it ------------------------------------------------

class Driver {
 public:
  using Pointer = unsigned long long;  // CUdeviceptr

  // Throws std::runtime_error where there is no driver or no device.
  Driver() : library_(dlopen("libcuda.so.1", RTLD_NOW), dlclose) {
    if (!library_) throw std::runtime_error("no CUDA driver here");
    void* context = nullptr;
    if (call<int(unsigned)>("cuInit", 0u) != 0 ||
        call<int(void**, int)>("cuDevicePrimaryCtxRetain", &context, 0) != 0 ||
        call<int(void*)>("cuCtxSetCurrent", context) != 0) {
      throw std::runtime_error("no CUDA device here");
    }
  }

  // 10 * major + minor.
  int compute_capability() const {
    constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
    int major = 0, minor = 0;
    must<int(int*, int, int)>("cuDeviceGetAttribute", &major, kMajor, 0);
    must<int(int*, int, int)>("cuDeviceGetAttribute", &minor, kMinor, 0);
    return 10 * major + minor;
  }

  // Any failure but those of the constructor is this program's own bug, or the GPU's.
  template <typename Signature, typename... Arguments>
  void must(const char* name, Arguments... arguments) const {
    if (call<Signature>(name, arguments...) != 0)
      throw std::logic_error(std::string(name) + " failed");
  }

 private:
  template <typename Signature, typename... Arguments>
  int call(const char* name, Arguments... arguments) const {
    void* const function = dlsym(library_.get(), name);
    return function != nullptr ? reinterpret_cast<Signature*>(function)(arguments...) : -1;
  }
  std::unique_ptr<void, int (*)(void*)> library_;
};

// Device memory that ends with its scope.
class Buffer {
 public:
  Buffer(const Driver& driver, const void* content, size_t bytes) : driver_(driver), bytes_(bytes) {
    driver.must<int(Driver::Pointer*, size_t)>("cuMemAlloc_v2", &address_, bytes);
    if (content == nullptr) return;
    driver.must<int(Driver::Pointer, const void*, size_t)>("cuMemcpyHtoD_v2", address_, content,
                                                           bytes);
  }
  Buffer(const Driver& driver, const std::vector<uint8_t>& content)
      : Buffer(driver, content.data(), content.size()) {}
  ~Buffer() { driver_.must<int(Driver::Pointer)>("cuMemFree_v2", address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* get() const { return reinterpret_cast<void*>(address_); }
  void copy_to(void* host) const {  // waits for the work before
    driver_.must<int(void*, Driver::Pointer, size_t)>("cuMemcpyDtoH_v2", host, address_, bytes_);
  }

 private:
  const Driver& driver_;
  Driver::Pointer address_ = 0;
  size_t bytes_;
};

// ---- The plan -----------------------------------------------------------------------------------

struct DestroyPlan {
  void operator()(nvfp4_gemm_plan* plan) const { nvfp4_gemm_plan_destroy(plan); }
};
using Plan = std::unique_ptr<nvfp4_gemm_plan, DestroyPlan>;

Plan make_plan(const nvfp4_gemm_desc& desc) {
  nvfp4_gemm_plan* plan = nullptr;
  check(nvfp4_gemm_plan_create(&desc, &plan));
  return Plan(plan);
}

constexpr int32_t kLinear = NVFP4_SCALE_LAYOUT_LINEAR, kTiles = NVFP4_SCALE_LAYOUT_128X4;

nvfp4_gemm_desc describe() {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = tokens, g.n = outputs, g.k = inputs;
  g.a_ld = g.b_ld = inputs, g.d_ld = outputs, g.d_type = NVFP4_TYPE_BF16;
  g.a_scale_layout = kLinear, g.b_scale_layout = kTiles;
  g.bias_type = NVFP4_TYPE_F32;
  return g;
}

std::vector<uint16_t> reference(const Matrix& x, const Matrix& weights,
                                const std::vector<float>& bias) {
  std::vector<uint16_t> d(size_t(tokens * outputs));
  nvfp4_gemm_desc g = describe();
  g.a = x.codes.data(), g.a_scales = x.scales.data(), g.a_tensor_scale = &x.tensor_scale;
  g.b = weights.codes.data(), g.b_scales = weights.scales.data();
  g.b_tensor_scale = &weights.tensor_scale;
  g.bias = bias.data();
  g.d = d.data();
  check(nvfp4_gemm_reference(&g));
  return d;
}

// Both are bf16 of one sign and nearly one value, so the distance of the bits counts in ulps.
int distance(uint16_t a, uint16_t b) {
  const auto ordered = [](uint16_t x) { return x & 0x8000 ? -(x & 0x7FFF) : int(x); };
  return std::abs(ordered(a) - ordered(b));
}

std::vector<float> random_values(std::mt19937& generator, int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (float& value : x) value = float(generator() % 2001) / 1000 - 1;
  return x;
}

int run(const Driver& driver) {
  std::mt19937 generator(1);
  const Matrix weights(random_values(generator, outputs * inputs), outputs, inputs, kTiles);
  const Buffer b(driver, weights.codes), b_scales(driver, weights.scales);
  const Buffer b_scale(driver, &weights.tensor_scale, sizeof(float));
  const std::vector<float> bias = random_values(generator, outputs);
  const Buffer bias_on_device(driver, bias.data(), bias.size() * sizeof(float));
  const Matrix first(random_values(generator, tokens * inputs), tokens, inputs, kLinear);
  const Buffer a(driver, first.codes), a_scales(driver, first.scales);
  const Buffer a_scale(driver, &first.tensor_scale, sizeof(float));
  const Buffer d(driver, nullptr, size_t(tokens * outputs) * sizeof(uint16_t));

  nvfp4_gemm_desc g = describe();
  g.a = a.get(), g.a_scales = a_scales.get(), g.b = b.get(), g.b_scales = b_scales.get();
  g.a_tensor_scale = static_cast<const float*>(a_scale.get());
  g.b_tensor_scale = static_cast<const float*>(b_scale.get());
  g.bias = bias_on_device.get();
  g.d = d.get();
  // On Hopper many tokens need a workspace, and on Blackwell linear scales: one for the plan, whose
  // runs follow each other here.
  check(nvfp4_gemm_workspace_bytes(&g, driver.compute_capability(), &g.workspace_bytes));
  std::unique_ptr<Buffer> workspace;
  if (g.workspace_bytes > 0) {
    workspace = std::make_unique<Buffer>(driver, nullptr, g.workspace_bytes);
    g.workspace = workspace->get();
  }
  const Plan plan = make_plan(g);

  int worst = 0;
  for (int batch = 0; batch < 3; ++batch) {
    const Matrix x(random_values(generator, tokens * inputs), tokens, inputs, kLinear);
    const Buffer codes(driver, x.codes), scales(driver, x.scales);
    const Buffer scale(driver, &x.tensor_scale, sizeof(float));
    nvfp4_gemm_addresses addresses{};  // what stays NULL is the plan's
    addresses.struct_size = sizeof addresses;
    addresses.a = codes.get(), addresses.a_scales = scales.get();
    addresses.a_tensor_scale = static_cast<const float*>(scale.get());
    check(nvfp4_gemm_plan_run(plan.get(), &addresses, nullptr));
    std::vector<uint16_t> result(size_t(tokens * outputs));
    d.copy_to(result.data());
    const std::vector<uint16_t> expected = reference(x, weights, bias);
    int units = 0;  // small sums may differ by more units, but not here by more than this
    int equal = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      equal += result[i] == expected[i];
      if ((expected[i] & 0x7FFF) >= 0x3F80)
        units = std::max(units, distance(result[i], expected[i]));
    }
    std::printf(
        "batch %d: %d of %zu elements have the reference's bits, those beyond 1 differ by at "
        "most %d units\n",
        batch, equal, result.size(), units);
    worst = std::max(worst, units);
  }
  return worst <= 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    tokens = std::atoll(argv[1]), outputs = std::atoll(argv[2]), inputs = std::atoll(argv[3]);
  }
  try {
    std::puts(nvfp4_build_info());
    std::unique_ptr<Driver> driver;
    try {
      driver = std::make_unique<Driver>();
    } catch (const std::runtime_error& nothing) {
      std::printf("%s: nothing was run\n", nothing.what());
      return 0;
    }
    return run(*driver);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status == NVFP4_STATUS_UNSUPPORTED_ARCH ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
