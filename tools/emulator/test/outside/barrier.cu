// SPDX-License-Identifier: MIT
// What libcu++ makes of asynchronous barriers, against the host: a thread arrives, does other work
// and waits; some warps fill buffers that others empty; copies arrive at a barrier themselves; a
// thread leaves.
#include <cstdio>
#include <utility>
#include <vector>

#include <cuda/barrier>

namespace {

using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int threads = 128, rounds = 6, blocks = 3, n = blocks * rounds * threads;

__device__ Barrier& made(Barrier* at, int arrivals) {
  if (threadIdx.x == 0) init(at, arrivals);
  return *at;
}

// A round's words, the other way round. The square is what is done between arriving and waiting.
__global__ void turn(const int* in, int* out) {
  __shared__ cuda::std::aligned_storage_t<sizeof(Barrier), alignof(Barrier)> place;
  __shared__ int words[2][threads];
  Barrier& barrier = made(reinterpret_cast<Barrier*>(&place), threads);
  __syncthreads();
  const int t = threadIdx.x;
  for (int r = 0; r < rounds; ++r) {
    const int at = (blockIdx.x * rounds + r) * threads;
    words[r % 2][t] = in[at + t];
    Barrier::arrival_token token = barrier.arrive();
    const int square = t * t;
    barrier.wait(std::move(token));
    out[at + t] = words[r % 2][threads - 1 - t] + square;
  }
}

// The lower half of the threads fills two buffers in turn, the upper half empties them.
__global__ void hand_over(const int* in, int* out) {
  constexpr int half = threads / 2;
  __shared__ cuda::std::aligned_storage_t<sizeof(Barrier), alignof(Barrier)> places[4];
  __shared__ int words[2][half];
  Barrier* const empty = reinterpret_cast<Barrier*>(places);
  Barrier* const full = empty + 2;
  for (int i = 0; i < 4; ++i) made(empty + i, threads);
  __syncthreads();
  const int t = threadIdx.x % half;
  const bool fills = threadIdx.x < half;
  if (!fills)
    for (int i = 0; i < 2; ++i) (void)empty[i].arrive();
  for (int r = 0; r < 2 * rounds; ++r) {
    const int at = (blockIdx.x * 2 * rounds + r) * half;
    if (fills) {
      empty[r % 2].arrive_and_wait();
      words[r % 2][t] = in[at + t];
      (void)full[r % 2].arrive();
    } else {
      full[r % 2].arrive_and_wait();
      out[at + t] = 3 * words[r % 2][half - 1 - t];
      (void)empty[r % 2].arrive();
    }
  }
}

// Each thread's copy arrives at the barrier. After the first round the last warp leaves.
__global__ void copied(const int* in, int* out) {
  __shared__ cuda::std::aligned_storage_t<sizeof(Barrier), alignof(Barrier)> place;
  __shared__ int words[threads];
  Barrier& barrier = made(reinterpret_cast<Barrier*>(&place), threads);
  __syncthreads();
  const int t = threadIdx.x, left = threads - 32;
  for (int r = 0; r < rounds; ++r) {
    const int at = (blockIdx.x * rounds + r) * threads, present = r ? left : threads;
    cuda::memcpy_async(&words[t], &in[at + t], cuda::aligned_size_t<4>(4), barrier);
    barrier.arrive_and_wait();
    out[at + t] = words[present - 1 - t] - r;
    if (r == 0 && t >= left) return barrier.arrive_and_drop();
    barrier.arrive_and_wait();
  }
}

// What the three make of word `i`.
int turned(const std::vector<int>& in, int i) {
  const int t = i % threads;
  return in[i - t + threads - 1 - t] + t * t;
}
int handed_over(const std::vector<int>& in, int i) {
  const int half = threads / 2, t = i % half;
  return 3 * in[i - t + half - 1 - t];
}
int copied_from(const std::vector<int>& in, int i) {
  const int t = i % threads, r = i / threads % rounds, present = r ? threads - 32 : threads;
  return t < present ? in[i - t + present - 1 - t] - r : -1;
}

bool equal(const char* name, void (*kernel)(const int*, int*),
           int (*wanted)(const std::vector<int>&, int)) {
  std::vector<int> in(n), out(n, -1);
  for (int i = 0; i < n; ++i) in[i] = 1000 + 7 * i;
  int *from = nullptr, *to = nullptr;
  cudaMalloc(&from, n * sizeof(int));
  cudaMalloc(&to, n * sizeof(int));
  cudaMemcpy(from, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(to, out.data(), n * sizeof(int), cudaMemcpyHostToDevice);
  kernel<<<blocks, threads>>>(from, to);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaMemcpy(out.data(), to, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(from);
  cudaFree(to);
  for (int i = 0; i < n && error == cudaSuccess; ++i)
    if (out[i] != wanted(in, i)) {
      printf("%s: word %d is %d, should be %d\n", name, i, out[i], wanted(in, i));
      return false;
    }
  if (error != cudaSuccess) printf("%s: error %d\n", name, int(error));
  return error == cudaSuccess;
}

}  // namespace

int main() {
  const bool fine = equal("turn", turn, turned) & equal("hand_over", hand_over, handed_over) &
                    equal("copied", copied, copied_from);
  printf("%s\n", fine ? "equal" : "not equal");
  return fine ? 0 : 1;
}
