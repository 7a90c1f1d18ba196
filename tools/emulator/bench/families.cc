// SPDX-License-Identifier: MIT
// build/emulator_bench: how fast the emulator is, by instruction family.
//
// A family: one block of four warps runs a loop whose body is the instruction 32 times; the time of
// the same loop around nothing is taken off. A block runs on one host thread, so its time is the
// processor's, which other programs disturb less than the clock on the wall. All checks are on.
// Median of five, CSV to stdout. After them one launch of many blocks that all add to one word.
// The program is linked with the emulator, which lies beside it.
#include <cuda.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Family {
  const char* name;
  const char* body;  // one instruction
};

// %f, %h and %r hold values. Others hold addresses of the thread's own words. In shared memory
// these are %s (4 bytes after that of the thread before), %two (8 bytes), %four (16), %column (128,
// of 32 threads) and %atomic; in global memory %out, %far (16) and %counter. All threads read at
// `words` and at %begin. %first: lane 0.
const Family kFamilies[] = {
    {"integer add", "add.u32 %r0, %r1, %r2;"},
    {"integer multiply-add", "mad.lo.u32 %r0, %r1, %r2, %r0;"},
    {"bit field", "bfe.u32 %r0, %r1, 3, 7;"},
    {"fp32 fma", "fma.rn.f32 %f0, %f1, %f2, %f0;"},
    {"fp32 to fp16", "cvt.rn.f16.f32 %h0, %f1;"},
    {"compare and select", "setp.lt.u32 %p0, %r1, %r2;"},
    {"fp32 square root", "sqrt.rn.f32 %f0, %f2;"},
    {"f16x2 fma", "fma.rn.f16x2 %r0, %r1, %r2, %r1;"},
    {"shared load", "ld.shared.u32 %r0, [%s];"},
    {"shared load broadcast", "ld.shared.u32 %r0, [words];"},
    {"shared load two words", "ld.shared.v2.u32 {%r0, %r3}, [%two];"},
    {"shared load stride 2", "ld.shared.u32 %r0, [%two];"},
    {"shared load column", "ld.shared.u32 %r0, [%column];"},
    {"shared load v4", "ld.shared.v4.u32 {%r0, %r3, %r4, %r5}, [%four];"},
    {"shared load one lane", "@%first ld.shared.u32 %r0, [%s];"},
    {"shared store", "st.shared.u32 [%s], %r1;"},
    {"shared store stride 2", "st.shared.u32 [%two], %r1;"},
    {"shared store column", "st.shared.u32 [%column], %r1;"},
    {"shared store v4", "st.shared.v4.u32 [%four], {%r1, %r1, %r1, %r1};"},
    {"shared store one lane", "@%first st.shared.u32 [%s], %r1;"},
    {"shared atomic", "atom.shared.add.u32 %r0, [%atomic], 1;"},
    {"global load", "ld.global.u32 %r0, [%out];"},
    {"global load broadcast", "ld.global.u32 %r0, [%begin];"},
    {"global load v4", "ld.global.v4.u32 {%r0, %r3, %r4, %r5}, [%far];"},
    {"global store", "st.global.u32 [%out], %r1;"},
    {"global atomic", "atom.global.add.u32 %r0, [%counter], 1;"},
    {"warp shuffle", "shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;"},
    {"block barrier", "bar.sync 0;"},
    {"mbarrier try_wait", "mbarrier.try_wait.parity.shared::cta.b64 %p0, [barrier], 1;"},
};
constexpr int kUnrolled = 32, kWarps = 4;
constexpr size_t kBufferBytes = 4096;

double processor_time() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string kernel(const char* body, int rounds) {
  std::string text = R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
.shared .align 128 .b8 words[2048], columns[16384], updated[512]; .shared .align 8 .b8 barrier[8];
.reg .pred %p0, %again, %first; .reg .b16 %h0; .reg .f32 %f<3>; .reg .b64 %out, %at, %begin;
.reg .b32 %r<6>, %s, %i, %t, %two, %four, %column, %atomic; .reg .b64 %far, %counter;
ld.param.u64 %begin, [p]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4;
add.u64 %counter, %begin, %at; add.u64 %counter, %counter, 512; add.u64 %out, %counter, 512;
mul.wide.u32 %at, %t, 16; add.u64 %far, %begin, %at; add.u64 %far, %far, 2048;
mov.u32 %s, words; shl.b32 %r0, %t, 2; add.u32 %s, %s, %r0;
mov.u32 %two, words; shl.b32 %r0, %t, 3; add.u32 %two, %two, %r0;
mov.u32 %four, words; shl.b32 %r0, %t, 4; add.u32 %four, %four, %r0;
mov.u32 %atomic, updated; shl.b32 %r0, %t, 2; add.u32 %atomic, %atomic, %r0;
st.shared.u32 [%atomic], 0;
and.b32 %r0, %t, 31; setp.eq.u32 %first, %r0, 0;
mov.u32 %column, columns; shl.b32 %r0, %t, 7; add.u32 %column, %column, %r0;
st.shared.u32 [%column], %t; st.shared.v4.u32 [%four], {%t, %t, %t, %t};
mov.u32 %r0, 1; mov.u32 %r1, 77; mov.u32 %r2, 5; mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f3F800000;
mov.f32 %f2, 0f40490FDB; setp.ne.u32 %p0, %t, 0; @%p0 bra READY;
mbarrier.init.shared::cta.b64 [barrier], 1;
READY: bar.sync 0; mov.u32 %i, 0;
LOOP:
)";
  for (int i = 0; *body && i < kUnrolled; ++i) text += std::string(body) + "\n";
  return text + "add.u32 %i, %i, 1; setp.lt.u32 %again, %i, " + std::to_string(rounds) +
         "; @%again bra LOOP; ret; }\n";
}

const char* const kCounter = R"(.version 8.7
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .b64 %out;
ld.param.u64 %out, [p]; red.relaxed.gpu.global.add.u32 [%out], 1; ret; }
)";

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "emulator_bench: %s answered %d\n", call, int(result));
  std::exit(1);
}
#define CHECKED(call, ...) check(call(__VA_ARGS__), #call)

double seconds_of(const std::string& ptx, unsigned blocks = 1, unsigned threads = kWarps * 32,
                  int times = 5) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr buffer = 0;
  CHECKED(cuModuleLoadData, &module, ptx.c_str());
  CHECKED(cuModuleGetFunction, &function, module, "k");
  CHECKED(cuMemAlloc, &buffer, kBufferBytes);
  CHECKED(cuMemsetD8, buffer, 0, kBufferBytes);
  void* parameters[] = {&buffer};
  std::vector<double> runs;
  for (int i = 0; i < times; ++i) {
    const double start = processor_time();
    CHECKED(cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr);
    CHECKED(cuCtxSynchronize);
    runs.push_back(processor_time() - start);
  }
  CHECKED(cuMemFree, buffer);
  CHECKED(cuModuleUnload, module);
  return median(runs);
}

}  // namespace

int main() {
  constexpr int kRounds = 500;
  CUcontext context = nullptr;
  CHECKED(cuInit, 0);
  CHECKED(cuDevicePrimaryCtxRetain, &context, 0);
  CHECKED(cuCtxSetCurrent, context);
  const double loop = seconds_of(kernel("", kRounds));
  std::printf("family,warp_instructions_per_second,thread_instructions_per_second\n");
  for (const Family& f : kFamilies) {
    const double seconds = seconds_of(kernel(f.body, kRounds)) - loop;
    const double rate = double(kRounds) * kUnrolled * kWarps / seconds;
    std::printf("%s,%.3g,%.3g\n", f.name, rate, 32 * rate);
    std::fflush(stdout);
  }
  constexpr unsigned kBlocks = 100'000;
  std::printf("launch,blocks,processor_seconds\n");
  std::printf("one relaxed atomic each on one word,%u,%.2f\n", kBlocks,
              seconds_of(kCounter, kBlocks, 1, 1));
}
