// SPDX-License-Identifier: MIT
// CUB's block algorithms on a full and on a partial tile, against the host: load and store through
// shared memory, radix sort, merge sort, scan, reduction; and a scan by warps.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <cub/cub.cuh>

namespace {

constexpr int threads = 128, each = 4, tile = threads * each;

using Load = cub::BlockLoad<int, threads, each, cub::BLOCK_LOAD_TRANSPOSE>;
using Store = cub::BlockStore<int, threads, each, cub::BLOCK_STORE_TRANSPOSE>;
using Radix = cub::BlockRadixSort<int, threads, each>;
using Merge = cub::BlockMergeSort<int, threads, each>;
using Scan = cub::BlockScan<int, threads>;
using Reduce = cub::BlockReduce<int, threads>;
using WarpScan = cub::WarpScan<int>;

union Storage {
  Load::TempStorage load;
  Store::TempStorage store;
  Radix::TempStorage radix;
  Merge::TempStorage merge;
  Scan::TempStorage scan;
  Reduce::TempStorage reduce;
  WarpScan::TempStorage warps[threads / 32];
};

enum Algorithm { radix, merge, scan, reduce, warp_scan, algorithms };

struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

template <int Which>
__global__ void run(const int* in, int* out, int count) {
  __shared__ Storage storage;
  int items[each];
  const bool sorts = Which == radix || Which == merge;
  Load(storage.load).Load(in, items, count, sorts ? 0x7FFFFFFF : 0);
  __syncthreads();
  if constexpr (Which == radix) Radix(storage.radix).Sort(items);
  if constexpr (Which == merge) Merge(storage.merge).Sort(items, Less{});
  if constexpr (Which == scan) Scan(storage.scan).InclusiveSum(items, items);
  if constexpr (Which == reduce) {
    const int sum = Reduce(storage.reduce).Sum(items);
    for (int& item : items) item = threadIdx.x ? 0 : sum;
  }
  if constexpr (Which == warp_scan)
    WarpScan(storage.warps[threadIdx.x / 32]).InclusiveSum(items[0], items[0]);
  __syncthreads();
  Store(storage.store).Store(out, items, count);
}

std::vector<int> wanted(Algorithm which, std::vector<int> v) {
  if (which == radix || which == merge) std::sort(v.begin(), v.end());
  if (which == scan) std::partial_sum(v.begin(), v.end(), v.begin());
  if (which == reduce) {
    const int sum = std::accumulate(v.begin(), v.end(), 0);
    for (size_t i = 0; i < v.size(); ++i) v[i] = i < each ? sum : 0;
  }
  if (which == warp_scan)  // of the first item of each thread
    for (size_t i = each; i < v.size(); i += each)
      if (i / each % 32) v[i] += v[i - each];
  return v;
}

template <int Which>
bool right(const std::vector<int>& data) {
  const size_t bytes = data.size() * sizeof(int);
  int *in = nullptr, *out = nullptr;
  cudaMalloc(&in, bytes);
  cudaMalloc(&out, bytes);
  cudaMemcpy(in, data.data(), bytes, cudaMemcpyHostToDevice);
  run<Which><<<1, threads>>>(in, out, int(data.size()));
  std::vector<int> seen(data.size());
  const cudaError_t error = cudaMemcpy(seen.data(), out, bytes, cudaMemcpyDeviceToHost);
  const bool same = error == cudaSuccess && seen == wanted(Algorithm(Which), data);
  if (!same) printf("algorithm %d of %zu items: error %d\n", Which, data.size(), int(error));
  cudaFree(in);
  cudaFree(out);
  return same;
}

template <int... Which>
bool all_right(const std::vector<int>& data, std::integer_sequence<int, Which...>) {
  return (right<Which>(data) & ...);
}

}  // namespace

int main() {
  std::mt19937 random(1);
  bool good = true;
  for (const int count : {tile, tile - 3, 5}) {
    std::vector<int> data(count);
    for (int& x : data) x = int(random() % 1000) - 500;
    good &= all_right(data, std::make_integer_sequence<int, algorithms>());
  }
  puts(good ? "right" : "wrong");
  return good ? 0 : 1;
}
