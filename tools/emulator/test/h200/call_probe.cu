// SPDX-License-Identifier: MIT
// What nvcc makes of virtual functions, function pointers, recursion and alloca, each lane with a
// call of its own: tools/emulator/test/h200/call_probe.cc. Built for plain sm_90, so that the same
// PTX runs on a Hopper GPU and in the emulator, and without optimisation, too.
#include <alloca.h>

#include <cstdint>

namespace {

struct Shape {
  __device__ virtual int32_t area(int32_t unit) const = 0;
  __device__ virtual int32_t sides() const { return 4; }
};
struct Square : Shape {
  int32_t side;
  __device__ explicit Square(int32_t s) : side(s) {}
  __device__ int32_t area(int32_t unit) const override { return side * side * unit; }
};
struct Triangle : Shape {
  int32_t base, height;
  __device__ Triangle(int32_t b, int32_t h) : base(b), height(h) {}
  __device__ int32_t area(int32_t unit) const override { return base * height * unit / 2; }
  __device__ int32_t sides() const override { return 3; }
};
// Calls itself through the table where its parts are pairs.
struct Pair : Shape {
  const Shape *one, *other;
  __device__ Pair(const Shape* a, const Shape* b) : one(a), other(b) {}
  __device__ int32_t area(int32_t unit) const override {
    return one->area(unit) + other->area(2 * unit);
  }
};

__device__ int32_t add(int32_t a, int32_t b) { return a + b; }
__device__ int32_t multiply(int32_t a, int32_t b) { return a * b; }
__device__ int32_t divisor(int32_t a, int32_t b) { return b ? divisor(b, a % b) : a; }
using Operation = int32_t (*)(int32_t, int32_t);
__device__ Operation operations[3] = {add, multiply, divisor};

__device__ __noinline__ int32_t fibonacci(int32_t n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
__device__ __noinline__ int32_t ackermann(int32_t m, int32_t n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

}  // namespace

// Six words a thread.
extern "C" __global__ void call_probe(int32_t* out, uint32_t seed) {
  const int32_t t = int32_t(threadIdx.x);
  Square square(t);
  Triangle triangle(t, t + 3);
  Pair pair(&square, &triangle), pairs(&pair, &pair);
  const Shape* const all[] = {&square, &triangle, &pair, &pairs};
  const Shape* const shape = all[(uint32_t(t) + seed) % 4];
  out[6 * t] = shape->area(2);
  out[6 * t + 1] = shape->sides();
  out[6 * t + 2] = operations[(uint32_t(t) + seed) % 3](t + 12, 18);
  out[6 * t + 3] = fibonacci(t % 11);
  out[6 * t + 4] = ackermann(2, t % 3);
  auto* const words = static_cast<int32_t*>(alloca(4 * size_t(t % 7 + 1)));
  for (int32_t i = 0; i <= t % 7; ++i) words[i] = i * i + t;
  int32_t sum = 0;
  for (int32_t i = 0; i <= t % 7; ++i) sum += words[t % 7 - i];
  out[6 * t + 5] = sum;
}
