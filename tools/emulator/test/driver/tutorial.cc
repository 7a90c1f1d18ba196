// SPDX-License-Identifier: MIT
// The calls that tutorials make first, and those that are not there.
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>

#include "tools/emulator/test/support/driver_session.h"

namespace {

// add: p[tid] += 1; push: p[0] = p[0] * 10 + digit.
const char* const kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 p)
{
  .reg .u64 a, i; .reg .u32 x, t;
  ld.param.u64 a, [p];
  mov.u32 t, %tid.x;
  mul.wide.u32 i, t, 4;
  add.u64 a, a, i;
  ld.global.u32 x, [a];
  add.u32 x, x, 1;
  st.global.u32 [a], x;
  ret;
}
.visible .entry push(.param .u64 p, .param .u32 digit)
{
  .reg .u64 a; .reg .u32 x, d;
  ld.param.u64 a, [p];
  ld.param.u32 d, [digit];
  ld.global.u32 x, [a];
  mad.lo.u32 x, x, 10, d;
  st.global.u32 [a], x;
  ret;
}
)";

// Every block stores, waits for the grid as cooperative groups do, and reads its neighbour's word.
const char* const grid_sync = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .u64 a, n, w, h; .reg .u32 lo, hi, id, count, more, old, now; .reg .pred q;
  ld.param.u64 a, [p];
  mov.u32 hi, %envreg1;
  mov.u32 lo, %envreg2;
  mov.b64 w, {lo, hi};
  mov.u32 id, %ctaid.x;
  mov.u32 count, %nctaid.x;
  mul.wide.u32 n, id, 4;
  add.u64 n, a, n;
  add.u32 now, id, 100;
  st.global.u32 [n], now;
  mov.u32 more, 1;
  setp.eq.u32 q, id, 0;
  @q sub.u32 more, 0x80000001, count;
  fence.acq_rel.gpu;
  atom.add.relaxed.gpu.u32 old, [w+4], more;
wait:
  ld.relaxed.gpu.u32 now, [w+4];
  xor.b32 now, now, old;
  setp.ge.s32 q, now, 0;
  @q bra wait;
  fence.acq_rel.gpu;
  add.u32 id, id, 1;
  rem.u32 id, id, count;
  mul.wide.u32 n, id, 4;
  add.u64 n, a, n;
  ld.global.u32 now, [n];
  mul.wide.u32 n, count, 4;
  add.u64 a, a, n;
  mov.u32 id, %ctaid.x;
  mul.wide.u32 n, id, 4;
  add.u64 a, a, n;
  st.global.u32 [a], now;
  ret;
}
)";

}  // namespace

TEST_CASE("A module is loaded from a file") {
  in_child([](Session& s) {
    char path[] = "/tmp/emulator_module_XXXXXX";
    const int file = mkstemp(path);
    IS(s, write(file, kernels, strlen(kernels)) > 0, 1);
    close(file);
    CUmodule module = nullptr;
    s.start();
    OK(s, s.cuModuleLoad(&module, path));
    s.function(module, "add");
    unlink(path);
    IS(s, s.cuModuleLoad(&module, path), CUDA_ERROR_FILE_NOT_FOUND);
    IS(s, s.cuModuleLoad(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("cuMemcpy finds out on which side its addresses lie") {
  in_child([](Session& s) {
    s.start();
    const int there[4] = {1, 2, 3, 4};
    int back[4] = {};
    CUdeviceptr a = 0, b = 0;
    OK(s, s.cuMemAlloc(&a, sizeof there));
    OK(s, s.cuMemAlloc(&b, sizeof there));
    OK(s, s.cuMemcpy(a, CUdeviceptr(there), sizeof there));
    OK(s, s.cuMemcpyAsync(b, a, sizeof there, nullptr));
    OK(s, s.cuMemcpy(CUdeviceptr(back), b, sizeof back));
    IS(s, memcmp(there, back, sizeof back), 0);
    IS(s, s.cuMemcpy(CUdeviceptr(back), b + 8, sizeof back), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuMemcpy(0, b, sizeof back), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("A rectangle is copied between pitches") {
  in_child([](Session& s) {
    s.start();
    CUdeviceptr device = 0;
    size_t pitch = 0;
    OK(s, s.cuMemAllocPitch(&device, &pitch, 5, 3, 4));
    IS(s, pitch, 512);
    IS(s, s.cuMemAllocPitch(&device, &pitch, 5, 3, 3), CUDA_ERROR_INVALID_VALUE);
    const char* text = "abcdefghijkl";
    CUDA_MEMCPY2D c = {};
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = text;
    c.srcPitch = 4;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = device;
    c.dstPitch = pitch;
    c.dstXInBytes = 1;
    c.WidthInBytes = 4;
    c.Height = 3;
    OK(s, s.cuMemcpy2D(&c));
    char back[16] = {};
    CUDA_MEMCPY2D d = {};
    d.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    d.srcDevice = device;
    d.srcPitch = pitch;
    d.srcY = 1;
    d.srcXInBytes = 2;
    d.dstMemoryType = CU_MEMORYTYPE_HOST;
    d.dstHost = back;
    d.dstPitch = 3;
    d.WidthInBytes = 3;
    d.Height = 2;
    OK(s, s.cuMemcpy2D(&d));
    s.says("the part", back, "fghjkl");
    d.dstPitch = 2;
    IS(s, s.cuMemcpy2D(&d), CUDA_ERROR_INVALID_VALUE);
    d.dstPitch = 3;
    d.Height = 3;  // the third row is not there
    IS(s, s.cuMemcpy2D(&d), CUDA_ERROR_INVALID_VALUE);
    d.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    IS(s, s.cuMemcpy2D(&d), CUDA_ERROR_NOT_SUPPORTED);
    IS(s, s.cuMemcpy2D(nullptr), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("The host and a kernel share managed memory") {
  in_child([](Session& s) {
    CUfunction add = s.function(s.load(kernels), "add");
    CUdeviceptr managed = 0;
    OK(s, s.cuMemAllocManaged(&managed, 12, CU_MEM_ATTACH_GLOBAL));
    auto* const host = reinterpret_cast<unsigned*>(managed);
    host[0] = 41;
    OK(s, s.launch(add, managed));
    OK(s, s.cuCtxSynchronize());
    IS(s, host[0], 42);
    IS(s, host[1], 0);
    unsigned is_managed = 0;
    OK(s, s.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed + 4));
    IS(s, is_managed, 1);
    IS(s, s.cuMemAllocManaged(&managed, 12, 7), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.launch(add, CUdeviceptr(host + 3)));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
}

TEST_CASE("All blocks of a cooperative grid run at once or the launch is refused") {
  in_child({{"EMU_DEVICE", "H200"}, {"EMU_SMS", "2"}}, [](Session& s) {
    CUfunction k = s.function(s.load(grid_sync), "k");
    CUdeviceptr words = 0;
    OK(s, s.cuMemAlloc(&words, 64 * 8));
    void* parameters[] = {&words};
    const auto launch = [&](unsigned blocks) {
      return s.cuLaunchCooperativeKernel(k, blocks, 1, 1, 1, 1, 1, 0, nullptr, parameters);
    };
    constexpr unsigned blocks = 8;  // more than SMs, fewer than there is room for
    OK(s, launch(blocks));
    std::vector<unsigned> seen(2 * blocks);
    OK(s, s.cuMemcpyDtoH(seen.data(), words, 8 * blocks));
    for (unsigned i = 0; i < blocks; ++i) IS(s, seen[blocks + i], 100 + (i + 1) % blocks);
    IS(s, launch(65), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  });
}

TEST_CASE("A graph of kernel nodes runs them in the order of its edges") {
  in_child([](Session& s) {
    CUfunction push = s.function(s.load(kernels), "push");
    CUdeviceptr word = 0;
    OK(s, s.cuMemAlloc(&word, 4));
    OK(s, s.cuMemsetD32(word, 0, 1));
    CUgraph graph = nullptr;
    OK(s, s.cuGraphCreate(&graph, 0));
    CUgraphNode nodes[3] = {};
    for (unsigned i = 0; i < 3; ++i) {
      unsigned digit = i + 1;
      void* parameters[] = {&word, &digit};
      CUDA_KERNEL_NODE_PARAMS p = {};
      p.func = push;
      p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
      p.kernelParams = parameters;
      OK(s, s.cuGraphAddKernelNode(&nodes[i], graph, i ? &nodes[i - 1] : nullptr, i ? 1 : 0, &p));
      CUgraphNode none = nullptr, twice[] = {nodes[0], nodes[0]};
      IS(s, s.cuGraphAddKernelNode(&none, graph, twice, 2, &p), CUDA_ERROR_INVALID_VALUE);
      p.blockDimX = 0;
      IS(s, s.cuGraphAddKernelNode(&none, graph, nullptr, 0, &p), CUDA_ERROR_INVALID_VALUE);
    }
    size_t count = 0;
    OK(s, s.cuGraphGetNodes(graph, nullptr, &count));
    IS(s, count, 3);
    CUgraphExec instance = nullptr;
    OK(s, s.cuGraphInstantiateWithFlags(&instance, graph, 0));
    OK(s, s.cuGraphLaunch(instance, nullptr));
    OK(s, s.cuGraphLaunch(instance, nullptr));
    unsigned value = 0;
    OK(s, s.cuMemcpyDtoH(&value, word, 4));
    IS(s, value, 123123);
  });
}

TEST_CASE("A host function runs after the work of its stream and may call the driver") {
  in_child([](Session& s) {
    CUfunction add = s.function(s.load(kernels), "add");
    struct Seen {
      Session* session;
      CUdeviceptr word;
      unsigned value;
    } seen = {&s, 0, 0};
    OK(s, s.cuMemAlloc(&seen.word, 4));
    OK(s, s.cuMemsetD32(seen.word, 6, 1));
    OK(s, s.launch(add, seen.word));
    const auto look = [](void* data) {
      auto& to = *static_cast<Seen*>(data);
      to.session->cuMemcpyDtoH(&to.value, to.word, 4);
    };
    OK(s, s.cuLaunchHostFunc(nullptr, look, &seen));
    IS(s, seen.value, 7);
    const auto note = [](CUstream, CUresult status, void* data) {
      static_cast<Seen*>(data)->value = status == CUDA_SUCCESS ? 99 : 0;
    };
    OK(s, s.cuStreamAddCallback(nullptr, note, &seen, 0));
    IS(s, seen.value, 99);
    IS(s, s.cuStreamAddCallback(nullptr, note, &seen, 1), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuStreamAddCallback(nullptr, nullptr, &seen, 0), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("A call that is not emulated is found and says its name and answers NOT_SUPPORTED") {
  const std::string told = in_child([](Session& s) {
    s.start();
    void* p = nullptr;
    CUdriverProcAddressQueryResult found{};
    OK(s, s.lookup("cuTexRefCreate", &p, 12080, 0, &found));
    IS(s, found, CU_GET_PROC_ADDRESS_SUCCESS);
    const auto create = reinterpret_cast<CUresult (*)(CUtexref*)>(p);
    IS(s, create(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    IS(s, create(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    OK(s, s.lookup("cuGraphAddNode", &p, 12010, 0, &found));
    IS(s, found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  });
  CHECK(told ==
        "emulator: test_emulator calls cuTexRefCreate, which is not emulated: it answers "
        "CUDA_ERROR_NOT_SUPPORTED\n");
}

TEST_CASE("cuGetExportTable says what a program of the CUDA runtime can do today") {
  const std::string told = in_child([](Session& s) {
    const auto call = reinterpret_cast<CUresult (*)()>(s.symbol("cuGetExportTable"));
    IS(s, call(), CUDA_ERROR_NOT_SUPPORTED);
  });
  CHECK(told.find("NVIDIA's CUDA runtime cannot start without it") != std::string::npos);
  CHECK(told.find("nvcc -ptx") != std::string::npos);
}

TEST_CASE("cuEventElapsedTime says once that its time is the emulation's") {
  const std::string told = in_child([](Session& s) {
    s.start();
    CUevent a = nullptr;
    float ms = -1;
    OK(s, s.cuEventCreate(&a, 0));
    OK(s, s.cuEventRecord(a, nullptr));
    for (int i = 0; i < 2; ++i) OK(s, s.cuEventElapsedTime(&ms, a, a));
  });
  CHECK(told ==
        "emulator: cuEventElapsedTime answers how long the emulation took, which says nothing of a "
        "GPU\n");
}

TEST_CASE("Every call that cuda.h declares is exported") {
  std::ifstream header(EMU_TEST_CUDA_H);
  std::stringstream text;
  text << header.rdbuf();
  const std::string all = text.str();
  std::vector<std::string> names;
  const std::regex declared(R"(CUresult CUDAAPI (cu[A-Z]\w+)\()");
  for (std::sregex_iterator it(all.begin(), all.end(), declared), end; it != end; ++it)
    names.push_back((*it)[1]);
  REQUIRE(names.size() > 400);
  in_child([&](Session& s) {
    for (const std::string& name : names) s.is(name.c_str(), s.symbol(name.c_str()) != nullptr, 1);
  });
}
