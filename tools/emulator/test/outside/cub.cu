// SPDX-License-Identifier: MIT
// Six of CUB's device algorithms on random data with a last tile that is not full, against the
// host's own. CASE_OF_CUB says which.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include <cub/cub.cuh>

namespace {

constexpr int reduce = 0, scan = 1, radix_sort = 2, select = 3, histogram = 4, run_length = 5;
constexpr int n = 10007, bins = 16;

struct Array {
  explicit Array(size_t words) : words_(words) { cudaMalloc(&data, words * sizeof(int)); }
  ~Array() { cudaFree(data); }
  void put(const std::vector<int>& from) {
    cudaMemcpy(data, from.data(), from.size() * sizeof(int), cudaMemcpyHostToDevice);
  }
  std::vector<int> get(size_t count) const {
    std::vector<int> all(count);
    cudaMemcpy(all.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost);
    return all;
  }
  int* data = nullptr;
  size_t words_;
};

// CUB's two calls: how much it needs, and the work.
template <class F>
void with_storage(F f) {
  size_t bytes = 0;
  f(nullptr, bytes);
  void* storage = nullptr;
  cudaMalloc(&storage, bytes);
  const cudaError_t error = f(storage, bytes);
  if (error != cudaSuccess) printf("error %d: %s\n", int(error), cudaGetErrorString(error));
  cudaFree(storage);
}

bool equal(const std::vector<int>& seen, const std::vector<int>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i)
    if (seen[i] != wanted[i]) {
      printf("%zu is %d, should be %d\n", i, seen[i], wanted[i]);
      return false;
    }
  return true;
}

struct Odd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};

template <int Algorithm>
bool run(const std::vector<int>& data) {
  Array in(n), out(n), other(n), count(1);
  in.put(data);
  std::vector<int> wanted(data);
  if constexpr (Algorithm == reduce) {
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceReduce::Sum(s, bytes, in.data, out.data, n);
    });
    wanted = {std::accumulate(data.begin(), data.end(), 0)};
  } else if constexpr (Algorithm == scan) {
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceScan::InclusiveSum(s, bytes, in.data, out.data, n);
    });
    std::partial_sum(data.begin(), data.end(), wanted.begin());
  } else if constexpr (Algorithm == radix_sort) {
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceRadixSort::SortKeys(s, bytes, in.data, out.data, n);
    });
    std::sort(wanted.begin(), wanted.end());
  } else if constexpr (Algorithm == select) {
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceSelect::If(s, bytes, in.data, out.data, count.data, n, Odd{});
    });
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [](int x) { return !Odd{}(x); }),
                 wanted.end());
    if (count.get(1)[0] != int(wanted.size())) return false;
  } else if constexpr (Algorithm == histogram) {
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceHistogram::HistogramEven(s, bytes, in.data, out.data, bins + 1, 0, 1024, n);
    });
    wanted.assign(bins, 0);
    for (const int x : data) ++wanted[size_t(x) / (1024 / bins)];
  } else {
    std::vector<int> runs(data);
    for (size_t i = 0; i < runs.size(); ++i) runs[i] = data[i / 7] & 3;
    in.put(runs);
    with_storage([&](void* s, size_t& bytes) {
      return cub::DeviceRunLengthEncode::Encode(s, bytes, in.data, out.data, other.data, count.data,
                                                n);
    });
    wanted.clear();
    std::vector<int> lengths;
    for (const int x : runs) {
      if (wanted.empty() || wanted.back() != x) wanted.push_back(x), lengths.push_back(0);
      ++lengths.back();
    }
    if (count.get(1)[0] != int(wanted.size()) || !equal(other.get(lengths.size()), lengths))
      return false;
  }
  return equal(out.get(wanted.size()), wanted);
}

}  // namespace

int main() {
  std::mt19937 random(1);
  std::vector<int> data(n);
  for (int& x : data) x = int(random() % 1024);
  const bool fine = run<CASE_OF_CUB>(data);
  const cudaError_t error = cudaDeviceSynchronize();
  printf("%s\n", fine && error == cudaSuccess ? "equal" : "not equal");
  return fine && error == cudaSuccess ? 0 : 1;
}
