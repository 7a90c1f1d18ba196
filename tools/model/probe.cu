// SPDX-License-Identifier: MIT
// build/model_probe: what the timing model's parameters of a Hopper GPU come from (`make
// model-probe` on the machine; CSV to stdout). It links the CUDA runtime and nothing of the
// library.
//
//   fill      bulk copies to shared memory by one thread a CTA, one CTA an SM: rate by bytes in
//             flight, by the number of CTAs that read the same bytes, and by the number of CTAs
//   latency   of one copy alone, from DRAM and from the L2
//   push      st.async of 16 bytes from 128 threads to the other CTA of a pair, until all is there
//   start     when the CTAs of a grid begin, since the first of them
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                       \
  do {                                                                    \
    const cudaError_t error = (call);                                     \
    if (error != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error)); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

namespace {

constexpr int kMaxStages = 64;
constexpr size_t kBufferBytes = size_t{1} << 30;
constexpr size_t kSharedBytes = 200 * 1024;

struct Note {
  uint64_t begin_ns, end_ns, begin_clock, end_clock;
};

__device__ uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ void init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ void expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

__device__ void wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nAGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

__device__ void copy(uint32_t to, const uint8_t* from, uint32_t bytes, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(bar)
      : "memory");
}

struct Fill {
  const uint8_t* from;
  uint32_t box, stages, copies, sharers;
};

// Groups of `sharers` CTAs with neighbouring numbers read the same bytes.
__global__ void fill(Fill f, Note* notes) {
  extern __shared__ __align__(1024) uint8_t ring[];
  __shared__ uint64_t bars[kMaxStages];
  if (threadIdx.x != 0) return;
  for (uint32_t s = 0; s < f.stages; ++s) init(shared_address(&bars[s]), 1);
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const uint8_t* from = f.from + size_t{blockIdx.x / f.sharers} * f.copies * f.box;
  Note note{nanoseconds(), 0, uint64_t(clock64()), 0};
  const auto ask = [&](uint32_t i) {
    const uint32_t s = i % f.stages, bar = shared_address(&bars[s]);
    expect(bar, f.box);
    copy(shared_address(ring) + s * f.box, from + size_t{i} * f.box, f.box, bar);
  };
  for (uint32_t i = 0; i < f.stages && i < f.copies; ++i) ask(i);
  for (uint32_t i = 0; i < f.copies; ++i) {
    wait(shared_address(&bars[i % f.stages]), i / f.stages % 2);
    if (i + f.stages < f.copies) ask(i + f.stages);
  }
  note.end_clock = uint64_t(clock64());
  note.end_ns = nanoseconds();
  notes[blockIdx.x] = note;
}

// Each CTA of a pair sends `bytes` to the other, from registers.
__global__ void __cluster_dims__(2) push(uint32_t bytes, Note* notes) {
  extern __shared__ __align__(1024) uint8_t ring[];
  __shared__ uint64_t bar;
  uint32_t rank, to, to_bar;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) init(shared_address(&bar), 1);
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(ring)), "r"(rank ^ 1));
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(to_bar)
      : "r"(shared_address(&bar)), "r"(rank ^ 1));
  if (threadIdx.x == 0) expect(shared_address(&bar), bytes);
  const Note note{nanoseconds(), 0, uint64_t(clock64()), 0};
  for (uint32_t at = threadIdx.x * 16; at < bytes; at += blockDim.x * 16)
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, "
        "[%2];" ::"r"(to + at),
        "r"(at), "r"(to_bar)
        : "memory");
  wait(shared_address(&bar), 0);
  const uint64_t sent = uint64_t(clock64());
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
  if (threadIdx.x == 0) notes[blockIdx.x] = {note.begin_ns, nanoseconds(), note.begin_clock, sent};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

class Probe {
 public:
  Probe() {
    CHECK(cudaGetDeviceProperties(&device_, 0));
    CHECK(cudaMalloc(&buffer_, kBufferBytes));
    CHECK(cudaMemset(buffer_, 1, kBufferBytes));
    CHECK(cudaMallocManaged(&notes_, 1024 * sizeof(Note)));
    CHECK(cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    CHECK(cudaFuncSetAttribute(push, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  }

  void head() const {
    std::printf("# build/model_probe, %s, %d SMs\n", device_.name, device_.multiProcessorCount);
    std::printf("what,ctas,sharers,box_bytes,in_flight_bytes,delivered_bytes,ns,clocks\n");
  }

  // Whole grid from the first begin to the last end, and a CTA's clocks: medians of five runs.
  void time_fill(uint32_t ctas, uint32_t sharers, uint32_t box, uint32_t stages, bool warm) {
    const size_t groups = (ctas + sharers - 1) / sharers;
    const size_t budget = warm ? size_t{32} << 20 : kBufferBytes * 9 / 10;
    const uint32_t copies = uint32_t(std::min<size_t>(budget / groups / box, (4u << 20) / box));
    std::vector<double> ns, clocks;
    for (int run = 0; run < 6; ++run) {
      if (!warm) CHECK(cudaMemset(buffer_ + kBufferBytes * 9 / 10, run, kBufferBytes / 10));
      fill<<<ctas, 32, kSharedBytes>>>({buffer_, box, stages, copies, sharers}, notes_);
      CHECK(cudaDeviceSynchronize());
      if (run > 0) add(ctas, &ns, &clocks);
    }
    print(warm ? "fill_warm" : "fill", ctas, sharers, box, box * stages,
          double(copies) * box * ctas, ns, clocks);
  }

  void time_latency(uint32_t box, bool warm) {
    std::vector<double> ns, clocks;
    for (uint32_t run = 0; run < 40; ++run) {
      const size_t at = warm ? 0 : (run + 1) * (size_t{20} << 20);
      fill<<<1, 32, kSharedBytes>>>({buffer_ + at, box, 1, 1, 1}, notes_);
      CHECK(cudaDeviceSynchronize());
      if (run > 2) add(1, &ns, &clocks);
    }
    print(warm ? "latency_l2" : "latency_dram", 1, 1, box, box, box, ns, clocks);
  }

  void time_push(uint32_t ctas, uint32_t bytes) {
    std::vector<double> ns, clocks;
    for (int run = 0; run < 12; ++run) {
      push<<<ctas, 128, kSharedBytes>>>(bytes, notes_);
      CHECK(cudaDeviceSynchronize());
      if (run > 1) add(ctas, &ns, &clocks);
    }
    print("push", ctas, 2, 16, bytes, double(bytes) * ctas, ns, clocks);
  }

  void time_start(uint32_t ctas) {
    std::vector<double> middle, last;
    for (int run = 0; run < 20; ++run) {
      fill<<<ctas, 256, kSharedBytes>>>({buffer_, 16384, 2, 2, 1}, notes_);
      CHECK(cudaDeviceSynchronize());
      std::vector<double> begin;
      for (uint32_t i = 0; i < ctas; ++i) begin.push_back(double(notes_[i].begin_ns));
      const double first = *std::min_element(begin.begin(), begin.end());
      middle.push_back(median(begin) - first);
      last.push_back(*std::max_element(begin.begin(), begin.end()) - first);
    }
    print("start_median", ctas, 1, 0, 0, 0, middle, {0});
    print("start_last", ctas, 1, 0, 0, 0, last, {0});
  }

 private:
  void add(uint32_t ctas, std::vector<double>* ns, std::vector<double>* clocks) const {
    uint64_t begin = UINT64_MAX, end = 0;
    std::vector<double> of_ctas;
    for (uint32_t i = 0; i < ctas; ++i) {
      begin = std::min(begin, notes_[i].begin_ns);
      end = std::max(end, notes_[i].end_ns);
      of_ctas.push_back(double(notes_[i].end_clock - notes_[i].begin_clock));
    }
    ns->push_back(double(end - begin));
    clocks->push_back(median(of_ctas));
  }

  static void print(const char* what, uint32_t ctas, uint32_t sharers, uint32_t box,
                    uint32_t in_flight, double delivered, const std::vector<double>& ns,
                    const std::vector<double>& clocks) {
    std::printf("%s,%u,%u,%u,%u,%.0f,%.0f,%.0f\n", what, ctas, sharers, box, in_flight, delivered,
                median(ns), median(clocks));
    std::fflush(stdout);
  }

  cudaDeviceProp device_{};
  uint8_t* buffer_ = nullptr;
  Note* notes_ = nullptr;
};

}  // namespace

int main() {
  Probe probe;
  probe.head();
  for (const uint32_t box : {1024u, 4096u, 16384u, 32768u})
    for (const bool warm : {false, true}) probe.time_latency(box, warm);
  for (const uint32_t ctas : {132u, 112u, 64u, 32u, 8u})
    for (const uint32_t stages : {1u, 2u, 4u, 8u, 16u, 24u})
      probe.time_fill(ctas, 1, 8192, stages, false);
  for (const uint32_t stages : {1u, 4u, 16u}) probe.time_fill(132, 1, 2048, stages, false);
  for (const uint32_t sharers : {2u, 4u, 8u, 16u, 33u, 66u, 132u})
    for (const uint32_t stages : {4u, 16u}) probe.time_fill(132, sharers, 8192, stages, false);
  for (const uint32_t ctas : {132u, 64u, 8u, 1u}) {
    probe.time_fill(ctas, 1, 8192, 16, true);
    probe.time_fill(ctas, ctas, 8192, 16, true);
  }
  for (const uint32_t ctas : {2u, 64u, 132u})
    for (const uint32_t bytes : {2048u, 8192u, 32768u, 131072u}) probe.time_push(ctas, bytes);
  for (const uint32_t ctas : {8u, 56u, 112u, 132u}) probe.time_start(ctas);
  return 0;
}
