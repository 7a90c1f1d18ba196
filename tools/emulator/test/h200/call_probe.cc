// SPDX-License-Identifier: MIT
// Calls that nvcc leaves to run time, of the same PTX on a GPU and in the emulator.
#include <numeric>

#include "tools/emulator/test/h200/device.h"

using h200::Buffer;
using h200::Module;

namespace {

constexpr uint32_t kThreads = 96, kWords = 6;
constexpr size_t kStack = 16 * 1024;  // without optimisation frames are larger than the default

int32_t fibonacci(int32_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

void expect(int32_t t, uint32_t seed, int32_t* out) {
  const auto square = [=](int32_t unit) { return t * t * unit; };
  const auto triangle = [=](int32_t unit) { return t * (t + 3) * unit / 2; };
  const auto pair = [=](int32_t unit) { return square(unit) + triangle(2 * unit); };
  const uint32_t shape = (uint32_t(t) + seed) % 4, operation = (uint32_t(t) + seed) % 3;
  out[0] = shape == 0   ? square(2)
           : shape == 1 ? triangle(2)
           : shape == 2 ? pair(2)
                        : pair(2) + pair(4);
  out[1] = shape == 1 ? 3 : 4;
  out[2] = operation == 0 ? t + 12 + 18 : operation == 1 ? (t + 12) * 18 : std::gcd(t + 12, 18);
  out[3] = fibonacci(t % 11);
  out[4] = 2 * (t % 3) + 3;  // of ackermann(2, n)
  out[5] = 0;
  for (int32_t i = 0; i <= t % 7; ++i) out[5] += i * i + t;
}

void probe(const char* file, uint32_t seed) {
  const Module module = Module::from_build(file);
  Buffer out(kThreads * kWords * sizeof(int32_t));
  CUdeviceptr address = out.address();
  void* arguments[] = {&address, &seed};
  module.launch("call_probe", 1, kThreads, 0, arguments);
  const std::vector<int32_t> got = out.download<int32_t>();
  size_t wrong = 0;
  for (uint32_t t = 0; t < kThreads; ++t) {
    int32_t wanted[kWords];
    expect(int32_t(t), seed, wanted);
    for (uint32_t w = 0; w < kWords; ++w) wrong += got[t * kWords + w] != wanted[w];
  }
  CHECK(wrong == 0);
  CHECK(out.guards_intact());
}

}  // namespace

TEST_CASE("virtual functions and function pointers and recursion and alloca of CUDA C++",
          "[call]") {
  const h200::Device device;
  H200_CALL(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, kStack);
  for (uint32_t seed = 0; seed < 12; ++seed) {
    INFO(seed);
    probe("emulator/test/call_probe.ptx", seed);
    probe("emulator/test/call_probe.debug.ptx", seed);
  }
}
