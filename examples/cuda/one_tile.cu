// SPDX-License-Identifier: MIT
// one_tile.cu: one tile of an NVFP4 GEMM on Blackwell (10.x) with tcgen05, whole in one file: the
// kernel, the tensor maps, the launch, and a plain loop on the host that checks every element.
//
//     nvcc -arch=compute_100f -ptx one_tile.cu && nvcc -x c++ one_tile.cu -o one_tile -lcuda
//     ./one_tile            (without such a GPU: LD_LIBRARY_PATH=build/emulator ./one_tile)
//
// It needs CUDA 12.9 or later and nothing of this project. The first command compiles the kernel to
// one_tile.ptx, the second the program that launches it: the emulator runs PTX, not machine code.
//
// D[m][n] = sum over k of A[m][k] SFA[m][k/16] B[n][k] SFB[n][k/16], with 128 tokens m, 128 weights
// n and K = 2048. What a real kernel adds (tails, many tiles, pairs of CTAs, an epilogue that
// stores whole lines) is in kernel/sm100, whose README has drawings.
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr uint32_t kRows = 128, kK = 2048;  // of A and of B; an MMA of one CTA has 128 rows of A
// A k-block has 128 bytes of codes in each row, the span of the swizzle; a step is K of one MMA.
constexpr uint32_t kBlockK = 256, kStepK = 64;
constexpr uint32_t kBlocks = kK / kBlockK, kSteps = kBlockK / kStepK;
constexpr uint32_t kStages = 4;  // slots of the ring: copies may be 4 k-blocks ahead of MMAs
constexpr uint32_t kCodeBytes = kRows * kBlockK / 2;  // of one operand in a stage
// Scales come in tiles of 128 rows and 64 of K, with 4 scales of each row (scale_at).
constexpr uint32_t kTileBytes = 512, kScaleBytes = kSteps * kTileBytes;

// The swizzle permutes addresses within 1024 bytes, so each operand begins at a multiple of that.
struct Shared {
  uint8_t a[kStages][kCodeBytes], b[kStages][kCodeBytes];
  uint8_t sfa[kStages][kScaleBytes], sfb[kStages][kScaleBytes];
  uint64_t full[kStages], empty[kStages], accumulator_full;  // mbarriers
  uint32_t tmem;  // the address that tcgen05.alloc writes
};

// Tensor memory has 128 lanes and 512 columns of 32 bits. D[m][n] is in lane m, column n. Behind
// this accumulator each step of each stage has 4 columns for SFA and 4 for SFB: stages do not share
// them, since no document promises that a copy waits for an earlier MMA that still reads them.
constexpr uint32_t kScalesAt = kRows, kStepColumns = 8;
constexpr uint32_t kColumns = kScalesAt + kStages * kSteps * kStepColumns;
static_assert(kColumns == 256, "tcgen05.alloc takes a power of two");

#ifdef __CUDACC__
// ---- Descriptors: ptxas checks no bit of them, the emulator checks each -------------------------

// A matrix in shared memory:
//   13:0   address / 16
//   29:16  distance of 16-byte columns / 16: 0, since no layout here has several without a swizzle
//   45:32  distance of groups of 8 rows / 16
//   48:46  001: the version for tcgen05
//   51:49  0: a pattern of the swizzle begins at a multiple of 1024 bytes
//   63:61  swizzle: 0 none, 2 of 128 bytes
__device__ uint64_t descriptor(uint32_t address, uint64_t distance, uint64_t swizzle) {
  return address >> 4 | distance >> 4 << 32 | uint64_t{1} << 46 | swizzle << 61;
}
// Rows of 128 bytes, 8 of which have 1024. The tensor maps name the same swizzle.
__device__ uint64_t codes(uint32_t address) { return descriptor(address, 1024, 2); }
// A tile of scales counts as 32 rows of 16 bytes, 8 of which have 128.
__device__ uint64_t scales(uint32_t address) { return descriptor(address, 128, 0); }

// What an MMA of kind::mxf4nvf4 multiplies. The other bits are 0: scales are UE4M3 (23) and the
// first in their columns (4, 5, 29, 30), A and B are K-major (15, 16) and not negated (13, 14), the
// product is dense (2), and K is 64 (31).
constexpr uint32_t kInstruction = 1u << 7               // A: E2M1 (5 in kind::mxf8f6f4)
                                  | 1u << 10            // B: E2M1
                                  | kRows / 8 << 17     // N, the rows of B
                                  | kRows / 128 << 27;  // M, the rows of A

// ---- PTX ---------------------------------------------------------------------------------------

#define PTX(text, ...) asm volatile(text ::__VA_ARGS__ : "memory")
__device__ uint32_t at(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
// True in one thread of the warp. After a plain comparison ptxas would expect several.
__device__ bool elect_one() {
  uint32_t elected;
  asm volatile("{ .reg .pred p; elect.sync _|p, -1; selp.b32 %0, 1, 0, p; }" : "=r"(elected));
  return elected != 0;
}
__device__ void barrier_init(uint32_t bar, uint32_t arrivals) {
  PTX("mbarrier.init.shared.b64 [%0], %1;", "r"(bar), "r"(arrivals));
}
// One arrival; the phase then also waits for so many bytes of copies.
__device__ void barrier_expect(uint32_t bar, uint32_t bytes) {
  PTX("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;", "r"(bar), "r"(bytes));
}
// Returns when the phase of that parity is over. The first phase has parity 0.
__device__ void barrier_wait(uint32_t bar, uint32_t parity) {
  PTX("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }",
      "r"(bar), "r"(parity));
}
// A box of 128 rows by 128 bytes, from that byte of K on, swizzled as the map says.
__device__ void copy_codes(uint32_t to, const CUtensorMap& map, uint32_t byte, uint32_t bar) {
  PTX("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, 0}], [%3];",
      "r"(to), "l"(&map), "r"(byte), "r"(bar));
}
// The scale tiles of a k-block are contiguous and stay as they are, so they need no tensor map.
__device__ void copy_scales(uint32_t to, const uint8_t* from, uint32_t bar) {
  PTX("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];",
      "r"(to), "l"(__cvta_generic_to_global(from)), "n"(kScaleBytes), "r"(bar));
}
// A tile of scales to 4 columns. Each of the four lane bands gets its 32 rows, as the MMA needs it.
__device__ void tcgen05_cp(uint32_t columns, uint64_t from) {
  PTX("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;", "r"(columns), "l"(from));
}
// One step. It overwrites the accumulator unless `add` is 1. block16: 16 elements share a scale.
__device__ void tcgen05_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t sfa, uint32_t sfb,
                            uint32_t add) {
  PTX("{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
      "[%0], %1, %2, %3, [%4], [%5], p; }",
      "r"(d), "l"(a), "l"(b), "r"(kInstruction), "r"(sfa), "r"(sfb), "r"(add));
}
// One arrival, when all that this thread has issued by tcgen05 is complete.
__device__ void tcgen05_commit(uint32_t bar) {
  PTX("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];", "r"(bar));
}
// Four columns of this thread's lane. The registers have no value before the wait, hence one asm.
__device__ float4 tcgen05_ld(uint32_t columns) {
  float4 x;
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];\n"
      "tcgen05.wait::ld.sync.aligned;"
      : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
      : "r"(columns)
      : "memory");
  return x;
}
// A barrier orders tcgen05 of two threads only with one before the signal and one after the wait.
__device__ void fence_before() { PTX("tcgen05.fence::before_thread_sync;"); }
__device__ void fence_after() { PTX("tcgen05.fence::after_thread_sync;"); }

// ---- The kernel --------------------------------------------------------------------------------

// One thread of warp 0 fills the ring.
__device__ void load(Shared& s, const CUtensorMap& a, const CUtensorMap& b, const uint8_t* sfa,
                     const uint8_t* sfb) {
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const uint32_t i = block % kStages, round = block / kStages, full = at(&s.full[i]);
    // The MMAs of the round before have to read the stage first. Round 0 waits for nobody.
    if (round > 0) barrier_wait(at(&s.empty[i]), (round - 1) % 2);
    barrier_expect(full, 2 * (kCodeBytes + kScaleBytes));
    copy_codes(at(s.a[i]), a, block * kBlockK / 2, full);
    copy_codes(at(s.b[i]), b, block * kBlockK / 2, full);
    copy_scales(at(s.sfa[i]), sfa + block * kScaleBytes, full);
    copy_scales(at(s.sfb[i]), sfb + block * kScaleBytes, full);
  }
}

// One thread of warp 1 copies scales and multiplies: asynchronous both, but of one thread in order.
__device__ void multiply(Shared& s, uint32_t tmem) {
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const uint32_t i = block % kStages, round = block / kStages;
    barrier_wait(at(&s.full[i]), round % 2);
    fence_after();
    for (uint32_t step = 0; step < kSteps; ++step) {
      const uint32_t sfa = tmem + kScalesAt + (i * kSteps + step) * kStepColumns, sfb = sfa + 4;
      tcgen05_cp(sfa, scales(at(s.sfa[i]) + step * kTileBytes));
      tcgen05_cp(sfb, scales(at(s.sfb[i]) + step * kTileBytes));
      // A step is 32 of a row's 128 bytes. The hardware adds first and swizzles the sum.
      const uint32_t byte = step * kStepK / 2;
      tcgen05_mma(tmem, codes(at(s.a[i]) + byte), codes(at(s.b[i]) + byte), sfa, sfb,
                  block + step > 0);
    }
    // Only if somebody waits for it: no arrival may come after the end of the CTA.
    if (block + kStages < kBlocks) tcgen05_commit(at(&s.empty[i]));
  }
  tcgen05_commit(at(&s.accumulator_full));
}

extern "C" __global__ void __launch_bounds__(128)
    one_tile(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             const uint8_t* sfa, const uint8_t* sfb, float* d) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const uint32_t warp = threadIdx.x / 32;
  if (warp == 0 && elect_one()) {
    for (uint32_t i = 0; i < kStages; ++i) {
      barrier_init(at(&s.full[i]), 1);   // barrier_expect; four copies count their bytes
      barrier_init(at(&s.empty[i]), 1);  // tcgen05_commit
    }
    barrier_init(at(&s.accumulator_full), 1);  // the last tcgen05_commit
    // Shows them to copies and commits, which belong to another proxy than this thread's stores.
    PTX("fence.mbarrier_init.release.cluster;");
  }
  if (warp == 1) {  // a whole warp allocates, and then lets other CTAs of this SM allocate
    PTX("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;", "r"(at(&s.tmem)),
        "n"(kColumns));
    PTX("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    fence_before();
  }
  __syncthreads();  // every thread knows the barriers and the address
  fence_after();
  const uint32_t tmem = s.tmem;
  if (warp == 0 && elect_one()) load(s, a, b, sfa, sfb);
  if (warp == 1 && elect_one()) multiply(s, tmem);
  __syncwarp();  // a whole warp executes tcgen05.ld

  // __syncthreads would not wait for the tensor core: only a commit says that it is done.
  barrier_wait(at(&s.accumulator_full), 0);
  fence_after();
  // Warp w may read lanes 32 w to 32 w + 31, its lane band. So each thread has a row of D.
  const uint32_t m = threadIdx.x, lane_band = warp * 32 << 16;
  float4* row = reinterpret_cast<float4*>(d + m * kRows);
  for (uint32_t n = 0; n < kRows; n += 4) row[n / 4] = tcgen05_ld(tmem + lane_band + n);
  fence_before();
  __syncthreads();  // all warps have read
  fence_after();
  if (warp == 1) {  // the warp that allocated; no CTA may end with columns
    PTX("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;", "r"(tmem), "n"(kColumns));
  }
}
#endif  // __CUDACC__

// ---- The host ----------------------------------------------------------------------------------

#define CHECK(call) check(call, #call)
void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  printf("%s: %s\n", call, name);
  exit(1);
}

// Where the scale of row r for the 16 elements from k on lies: tile after tile along K. In a tile
// rows 32 apart are side by side, so that tcgen05.cp puts each in a lane band of its own.
uint32_t scale_at(uint32_t r, uint32_t k) {
  return k / kStepK * kTileBytes + r % 32 * 16 + r / 32 * 4 + k % kStepK / 16;
}

struct Operand {
  std::vector<float> values;  // what codes and scales stand for
  CUdeviceptr codes, scales;
  CUtensorMap map;
};

CUdeviceptr upload(const std::vector<uint8_t>& bytes) {
  CUdeviceptr p;
  CHECK(cuMemAlloc(&p, bytes.size()));
  CHECK(cuMemcpyHtoD(p, bytes.data(), bytes.size()));
  return p;
}

Operand random_operand() {
  const float e2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6}, of_scale[] = {1, 1.5f, 2, 3};
  Operand x{std::vector<float>(kRows * kK), 0, 0, {}};
  std::vector<uint8_t> codes(kRows * kK / 2), scales(kRows * kK / 16);
  for (uint32_t i = 0; i < kRows * kK; ++i) {
    const uint32_t r = i / kK, k = i % kK, code = rand() / 7 % 16;
    uint8_t& scale = scales[scale_at(r, k)];
    if (k % 16 == 0) scale = 0x38 + 4 * (rand() / 7 % 4);  // UE4M3: 0x38 is 1, 0x3C 1.5, ..
    codes[i / 2] |= code << i % 2 * 4;                     // the even element is in the low bits
    x.values[i] = (code < 8 ? 1 : -1) * e2m1[code % 8] * of_scale[(scale - 0x38) / 4];
  }
  x.codes = upload(codes), x.scales = upload(scales);
  // Bytes, not 4-bit elements: shared memory gets the same, and any driver with TMA takes them.
  const cuuint64_t sizes[] = {kK / 2, kRows}, row_bytes[] = {kK / 2};
  const cuuint32_t box[] = {kBlockK / 2, kRows}, every[] = {1, 1};
  CHECK(cuTensorMapEncodeTiled(&x.map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void*)x.codes, sizes,
                               row_bytes, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
                               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return x;
}

int main(int, char** argv) {
  CUdevice device;
  CUcontext context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CUfunction entry;
  CHECK(cuModuleLoad(&module, (std::string(argv[0]) + ".ptx").c_str()));
  CHECK(cuModuleGetFunction(&entry, module, "one_tile"));
  CHECK(cuFuncSetAttribute(entry, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sizeof(Shared)));
  Operand a = random_operand(), b = random_operand();
  std::vector<float> d(kRows * kRows);
  CUdeviceptr d_device = upload(std::vector<uint8_t>(d.size() * sizeof(float)));
  void* arguments[] = {&a.map, &b.map, &a.scales, &b.scales, &d_device};
  CHECK(cuLaunchKernel(entry, 1, 1, 1, 128, 1, 1, sizeof(Shared), nullptr, arguments, nullptr));
  CHECK(cuMemcpyDtoH(d.data(), d_device, d.size() * sizeof(float)));

  // fp32 holds all sums without rounding, in whatever order, so they are equal.
  uint32_t equal = 0;
  for (uint32_t i = 0; i < d.size(); ++i) {
    const float *row = &a.values[i / kRows * kK], *column = &b.values[i % kRows * kK];
    float sum = 0;
    for (uint32_t k = 0; k < kK; ++k) sum += row[k] * column[k];
    equal += d[i] == sum;
  }
  printf("%u of %zu elements are equal\n", equal, d.size());
  return equal == d.size() ? 0 : 1;
}
