// SPDX-License-Identifier: MIT
// What a launch is refused for, just inside and just outside each limit, and function attributes.
// Statuses as measured on an H200, driver 580.
#include <set>

#include "tools/emulator/test/support/driver_session.h"

namespace {

const char* const kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry plain(.param .u64 p) { ret; }
.visible .entry exact(.param .u64 p) .reqntid 64 { ret; }
.visible .entry bounded(.param .u64 p) .maxntid 64 { ret; }
.visible .entry pair(.param .u64 p) .reqnctapercluster 2 { ret; }
.visible .entry some_cluster(.param .u64 p) .explicitcluster { ret; }
.shared .align 16 .b8 buffer[40000];
.visible .entry with_shared(.param .u64 p) {
  .reg .u32 a;
  mov.u32 a, buffer;
  st.shared.u32 [a], 1;
  ret;
}
)";

struct Shape {
  unsigned gx = 1, gy = 1, gz = 1, bx = 1, by = 1, bz = 1, shared = 0;
};

CUresult launch(Session& s, CUfunction f, Shape d) {
  uint64_t parameter = 0;
  void* parameters[] = {&parameter};
  return s.cuLaunchKernel(f, d.gx, d.gy, d.gz, d.bx, d.by, d.bz, d.shared, nullptr, parameters,
                          nullptr);
}

CUresult launch_with(Session& s, CUfunction f, unsigned grid, CUlaunchAttribute attribute) {
  uint64_t parameter = 0;
  void* parameters[] = {&parameter};
  CUlaunchConfig config = {};
  config.gridDimX = grid;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return s.cuLaunchKernelEx(&config, f, parameters, nullptr);
}

CUlaunchAttribute cluster(unsigned x) {
  CUlaunchAttribute a = {};
  a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  a.value.clusterDim.x = x;
  a.value.clusterDim.y = a.value.clusterDim.z = 1;
  return a;
}

CUlaunchAttribute attribute(int id) {
  CUlaunchAttribute a = {};
  a.id = CUlaunchAttributeID(id);
  return a;
}

}  // namespace

TEST_CASE("Grid and block dimensions have their limits") {
  in_child([](Session& s) {
    CUfunction f = s.function(s.load(kernels), "plain");
    OK(s, launch(s, f, {}));
    IS(s, launch(s, nullptr, {}), CUDA_ERROR_INVALID_HANDLE);
    IS(s, launch(s, f, {.gx = 0}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.gx = 0x80000000u}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.gy = 65536}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.gz = 65536}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.bx = 0}), CUDA_ERROR_INVALID_VALUE);
    OK(s, launch(s, f, {.bx = 1024}));
    IS(s, launch(s, f, {.bx = 1025}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.by = 1025}), CUDA_ERROR_INVALID_VALUE);
    OK(s, launch(s, f, {.bz = 64}));
    IS(s, launch(s, f, {.bz = 65}), CUDA_ERROR_INVALID_VALUE);
    OK(s, launch(s, f, {.bx = 32, .by = 32}));
    IS(s, launch(s, f, {.bx = 32, .by = 33}), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuCtxSynchronize());
  });
}

TEST_CASE(".reqntid is exact and .maxntid bounds the number of threads") {
  in_child([](Session& s) {
    CUmodule module = s.load(kernels);
    CUfunction exact = s.function(module, "exact"), bounded = s.function(module, "bounded");
    OK(s, launch(s, exact, {.bx = 64}));
    IS(s, launch(s, exact, {.bx = 32}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, exact, {.bx = 128}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, exact, {.bx = 32, .by = 2}), CUDA_ERROR_INVALID_VALUE);
    OK(s, launch(s, bounded, {.bx = 64}));
    OK(s, launch(s, bounded, {.bx = 32, .by = 2}));
    IS(s, launch(s, bounded, {.bx = 65}), CUDA_ERROR_INVALID_VALUE);
    int threads = 0;
    OK(s, s.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
    IS(s, threads, 64);
  });
}

TEST_CASE("With .blocksareclusters the grid counts clusters and the block is .reqntid") {
  in_child([](Session& s) {
    const char* const text = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) .reqntid 64 .reqnctapercluster 2, 2 .blocksareclusters {
  .reg .b32 n, m, t;
  .reg .b64 a;
  ld.param.u64 a, [p];
  mov.u32 n, %nctaid.x; mov.u32 m, %nctaid.y; mov.u32 t, %ntid.x;
  st.global.v4.u32 [a], {n, m, t, t};
  ret;
})";
    CUfunction f = s.function(s.load(text), "k");
    CUdeviceptr out = 0;
    OK(s, s.cuMemAlloc(&out, 16));
    void* parameters[] = {&out};
    OK(s, s.cuLaunchKernel(f, 3, 2, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    uint32_t got[4] = {};
    OK(s, s.cuMemcpyDtoH(got, out, 16));
    CHECK(got[0] == 6);
    CHECK(got[1] == 4);
    CHECK(got[2] == 64);
    OK(s, s.cuLaunchKernel(f, 3, 2, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    IS(s, launch(s, f, {.bx = 32}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.gx = 0x40000000u, .bx = 64}), CUDA_ERROR_INVALID_VALUE);
    IS(s, launch(s, f, {.gy = 40000, .bx = 64}), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("Shared memory above 48 KB needs the function's attribute") {
  in_child([](Session& s) {
    CUmodule module = s.load(kernels);
    CUfunction f = s.function(module, "plain"), with = s.function(module, "with_shared");
    constexpr auto most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    OK(s, launch(s, f, {.shared = 49152}));
    IS(s, launch(s, f, {.shared = 49153}), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuFuncSetAttribute(f, most, 100000));
    OK(s, launch(s, f, {.shared = 100000}));
    IS(s, launch(s, f, {.shared = 100001}), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuFuncSetAttribute(f, most, 1000));
    IS(s, launch(s, f, {.shared = 1001}), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuFuncSetAttribute(f, most, 232448));
    IS(s, s.cuFuncSetAttribute(f, most, 232449), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuFuncSetAttribute(f, most, -1), CUDA_ERROR_INVALID_VALUE);
    OK(s, launch(s, with, {.shared = 9152}));
    IS(s, launch(s, with, {.shared = 9153}), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuFuncSetAttribute(with, most, 192449), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuFuncSetAttribute(with, most, 192448));
    OK(s, launch(s, with, {.shared = 192448}));
  });
}

TEST_CASE("A cluster divides the grid and is at most 8 or where allowed 16") {
  in_child([](Session& s) {
    CUmodule module = s.load(kernels);
    CUfunction f = s.function(module, "plain"), pair = s.function(module, "pair");
    constexpr auto bad = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    OK(s, launch_with(s, f, 4, cluster(2)));
    IS(s, launch_with(s, f, 3, cluster(2)), bad);
    IS(s, launch_with(s, f, 4, cluster(0)), bad);
    OK(s, launch_with(s, f, 8, cluster(8)));
    IS(s, launch_with(s, f, 9, cluster(9)), bad);
    IS(s, launch_with(s, f, 16, cluster(16)), bad);
    OK(s, s.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(s, launch_with(s, f, 16, cluster(16)));
    IS(s, launch_with(s, f, 32, cluster(32)), bad);
    OK(s, launch(s, pair, {.gx = 2}));
    IS(s, launch(s, pair, {.gx = 3}), bad);
    OK(s, launch_with(s, pair, 4, cluster(2)));
    IS(s, launch_with(s, pair, 4, cluster(4)), bad);
    IS(s, launch(s, s.function(module, "some_cluster"), {.gx = 2}), bad);
  });
}

TEST_CASE("A device before Hopper has no clusters") {
  in_child({{"EMU_DEVICE", "A100"}}, [](Session& s) {
    const char* text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry plain(.param .u64 p) { "
        "ret; }";
    CUfunction f = s.function(s.load(text), "plain");
    OK(s, launch(s, f, {}));
    IS(s, launch_with(s, f, 2, cluster(2)), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  });
}

TEST_CASE("Launch attributes that are not emulated are refused") {
  in_child([](Session& s) {
    CUfunction f = s.function(s.load(kernels), "plain");
    CUlaunchAttribute overlap = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
    overlap.value.programmaticStreamSerializationAllowed = 1;
    OK(s, launch_with(s, f, 1, overlap));
    OK(s, launch_with(s, f, 1, attribute(CU_LAUNCH_ATTRIBUTE_IGNORE)));
    IS(s, launch_with(s, f, 1, attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY)), CUDA_ERROR_NOT_SUPPORTED);
    IS(s, launch_with(s, f, 1, attribute(99)), CUDA_ERROR_INVALID_VALUE);
    CUlaunchAttribute preferred = attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION);
    preferred.value.preferredClusterDim.x = 4;
    preferred.value.preferredClusterDim.y = preferred.value.preferredClusterDim.z = 1;
    OK(s, launch_with(s, f, 8, preferred));
    preferred.value.preferredClusterDim.x = 16;
    IS(s, launch_with(s, f, 16, preferred), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    preferred.value.preferredClusterDim.x = 0;
    IS(s, launch_with(s, f, 8, preferred), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    IS(s, s.cuLaunchKernelEx(nullptr, f, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  });
}

namespace {

// Each block says of which size its cluster is, its rank there, and where its cluster begins, which
// the first block tells the others through their shared memory.
const char* const mixed = R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry sizes(.param .u64 p) {
  .shared .align 4 .b32 first;
  .reg .b32 size, rank, block, there; .reg .b64 to; .reg .pred more;
  ld.param.u64 to, [p]; mov.u32 block, %ctaid.x; mul.wide.u32 to, block, 16;
  .reg .b64 base; ld.param.u64 base, [p]; add.u64 to, to, base;
  mov.u32 size, %cluster_nctarank; mov.u32 rank, %cluster_ctarank;
  barrier.cluster.arrive; barrier.cluster.wait;
  setp.ne.u32 more, rank, 0; @more bra TOLD;
  .reg .b32 other; mov.u32 other, 0;
LOOP:
  mov.u32 there, first; mapa.shared::cluster.u32 there, there, other;
  st.shared::cluster.u32 [there], block;
  add.u32 other, other, 1; setp.lt.u32 more, other, size; @more bra LOOP;
TOLD:
  barrier.cluster.arrive; barrier.cluster.wait;
  .reg .b32 got; ld.shared.u32 got, [first];
  st.global.v4.u32 [to], {size, rank, got, block};
  ret;
})";

// Which sizes the clusters of `grid` blocks had, preferably 4, else 2: one digit for each.
std::string sizes(Session& s, CUfunction f, unsigned grid) {
  CUdeviceptr p = 0;
  std::vector<uint32_t> out(grid * 4);
  OK(s, s.cuMemAlloc(&p, grid * 16));
  CUlaunchAttribute both[2] = {cluster(2),
                               attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)};
  both[1].value.preferredClusterDim = {4, 1, 1};
  CUlaunchConfig config = {};
  config.gridDimX = grid;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = both;
  config.numAttrs = 2;
  void* parameters[] = {&p};
  OK(s, s.cuLaunchKernelEx(&config, f, parameters, nullptr));
  OK(s, s.cuMemcpyDtoH(out.data(), p, grid * 16));
  std::string all;
  for (unsigned b = 0; b < grid;) {
    const unsigned size = out[b * 4], begin = b;
    IS(s, size == 2 || size == 4, 1);
    if (size != 2 && size != 4) return all;
    all += char('0' + size);
    for (unsigned rank = 0; rank < size; ++rank, ++b) {
      IS(s, out[b * 4], size);
      IS(s, out[b * 4 + 1], rank);
      IS(s, out[b * 4 + 2], begin);
      IS(s, out[b * 4 + 3], b);
    }
    if (size == 4) IS(s, begin % 4, 0);
  }
  return all;
}

}  // namespace

TEST_CASE("The seed decides which clusters have the preferred size") {
  std::set<std::string> seen;
  for (const char* seed : {"1", "2", "3"})
    seen.insert(in_child({{"EMU_SEED", seed}}, [](Session& s) {
      const CUfunction f = s.function(s.load(mixed), "sizes");
      const std::string all = sizes(s, f, 66);
      IS(s, all.find('2') < all.size() - 1, 1);
      IS(s, all.find('4') < all.size(), 1);
      IS(s, all.back(), '2');  // the grid's edge
      IS(s, all == sizes(s, f, 66), 1);
      fprintf(stderr, "%s\n", all.c_str());
    }));
  CHECK(seen.size() == 3);
}

// 1: the second kernel reads what the first one writes, and the first may still run.
TEST_CASE(
    "A programmatic launch runs beside the grid ahead in its stream unless something waited") {
  const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u32 %r; .reg .u64 %p;
  ld.param.u64 %p, [p]; griddepcontrol.launch_dependents;
  atom.global.add.u32 %r, [%p], 1; st.global.u32 [%p+4], %r; ret;
}
)";
  in_child({{"EMU_HAZARDS", "report"}}, [&](Session& s) {
    CUfunction f = s.function(s.load(text.c_str()), "k");
    auto counters = s.extension<decltype(&nvfp4emu_counters)>("nvfp4emu_counters");
    auto of_rule = s.extension<decltype(&nvfp4emu_findings_of)>("nvfp4emu_findings_of");
    CUdeviceptr p = 0;
    CUstream other = nullptr;
    OK(s, s.cuMemAlloc(&p, 8));
    OK(s, s.cuMemsetD8(p, 0, 8));
    OK(s, s.cuStreamCreate(&other, 0));
    void* params[] = {&p};
    auto run = [&](bool programmatic, CUstream stream = nullptr) {
      CUlaunchAttribute a = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
      a.value.programmaticStreamSerializationAllowed = programmatic;
      CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, stream, &a, 1};
      OK(s, s.cuLaunchKernelEx(&config, f, params, nullptr));
      uint64_t found = 0, of_this = 0;
      IS(s, counters("hazards", &found), 0);
      IS(s, of_rule("earlier_grid", &of_this), 0);
      IS(s, of_this, found);
      return found;
    };
    IS(s, run(true), 0);
    IS(s, run(true), 1);
    IS(s, run(false), 0);
    IS(s, run(true, other), 0);
    IS(s, run(true), 1);
    OK(s, s.cuStreamSynchronize(nullptr));
    IS(s, run(true), 0);
    OK(s, s.cuMemsetD8Async(p, 0, 8, nullptr));
    IS(s, run(true), 0);
  });
}

// Kernel `early` launches its dependents before griddepcontrol.wait. Kernel `late` launches them
// after it, when the grid ahead has ended.
TEST_CASE("A grid that launches its dependents before it waits leaves them beside the one ahead") {
  const std::string head = ".version 8.0\n.target sm_90\n.address_size 64\n";
  const auto kernel = [](const char* name, const char* body) {
    return std::string(".visible .entry ") + name +
           "(.param .u64 p) { .reg .u32 %r; .reg .u64 %p; ld.param.u64 %p, [p];\n" + body +
           "ret; }\n";
  };
  const std::string launch_dependents = "griddepcontrol.launch_dependents;\n",
                    wait = "griddepcontrol.wait;\n", other = "st.global.u32 [%p+64], 1;\n";
  const std::string text =
      head + kernel("stores", (launch_dependents + "st.global.u32 [%p], 1;\n").c_str()) +
      kernel("early", (launch_dependents + wait + other).c_str()) +
      kernel("late", (wait + launch_dependents + other).c_str()) +
      kernel("loads", (launch_dependents + "ld.global.u32 %r, [%p];\n").c_str());
  in_child({{"EMU_HAZARDS", "report"}}, [&](Session& s) {
    CUmodule module = s.load(text.c_str());
    auto counters = s.extension<decltype(&nvfp4emu_counters)>("nvfp4emu_counters");
    CUdeviceptr p = 0;
    OK(s, s.cuMemAlloc(&p, 128));
    OK(s, s.cuMemsetD8(p, 0, 128));
    void* params[] = {&p};
    auto found = [&](std::vector<const char*> names) {
      uint64_t hazards = 0;
      OK(s, s.cuCtxSynchronize());
      for (const char* name : names) {
        CUlaunchAttribute a = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
        a.value.programmaticStreamSerializationAllowed = 1;
        CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, nullptr, &a, 1};
        OK(s, s.cuLaunchKernelEx(&config, s.function(module, name), params, nullptr));
        IS(s, counters("hazards", &hazards), 0);
      }
      return hazards;
    };
    IS(s, found({"stores", "loads"}), 1);
    IS(s, found({"stores", "late", "loads"}), 0);
    IS(s, found({"stores", "early", "loads"}), 1);
    IS(s, found({"stores", "early", "early", "loads"}), 1);
    IS(s, found({"stores", "early", "late", "loads"}), 0);
    IS(s, found({"stores", "early", "late", "early", "loads"}), 0);
  });
}

TEST_CASE("Parameters come either as pointers or as one buffer") {
  in_child([](Session& s) {
    CUfunction f = s.function(s.load(kernels), "plain");
    uint64_t parameter[2] = {};
    void* pointers[] = {parameter};
    void* missing[] = {nullptr};
    size_t bytes = 8;
    void* buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameter, CU_LAUNCH_PARAM_BUFFER_SIZE,
                      &bytes, CU_LAUNCH_PARAM_END};
    auto with = [&](void** params, void** extra) {
      return s.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, extra);
    };
    OK(s, with(pointers, nullptr));
    IS(s, with(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, with(missing, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(s, with(nullptr, buffer));
    IS(s, with(pointers, buffer), CUDA_ERROR_INVALID_VALUE);
    bytes = 4;
    OK(s, with(nullptr, buffer));
    bytes = 16;
    IS(s, with(nullptr, buffer), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  });
}

TEST_CASE("Dynamic shared memory fits beside all that a kernel declares") {
  in_child([](Session& s) {
    s.start();
    constexpr auto most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    constexpr auto of_device = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    constexpr int declared = 4 + 1024;
    const char* const text =
        ".version 8.6\n.target sm_100a\n.address_size 64\n.shared .align 4 .b32 own;\n"
        ".entry k() { .shared .align 4 .b8 tile[1024]; .reg .b32 r<2>; mov.u32 r0, tile;\n"
        "ld.shared.u32 r1, [own]; st.shared.u32 [r0], r1; ret; }\n";
    for (const bool is_read : {false, true}) {
      CUlibrary library = nullptr;
      CUkernel kernel = nullptr;
      int left = 0, value = 0;
      OK(s, s.cuDeviceGetAttribute(&left, of_device, 0));
      left -= declared;
      OK(s, s.cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
      OK(s, s.cuLibraryGetKernel(&kernel, library, "k"));
      if (is_read) OK(s, s.cuKernelGetAttribute(&value, most, kernel, 0));
      IS(s, s.cuKernelSetAttribute(most, left + 1, kernel, 0), CUDA_ERROR_INVALID_VALUE);
      IS(s, s.cuKernelSetAttribute(most, -1, kernel, 0), CUDA_ERROR_INVALID_VALUE);
      OK(s, s.cuKernelSetAttribute(most, 1000, kernel, 0));
      OK(s, s.cuKernelSetAttribute(most, left, kernel, 0));
      OK(s, s.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, 0));
      IS(s, value, declared);
      OK(s, s.cuLibraryUnload(library));
    }
  });
}

TEST_CASE("A function has as many registers as its block may have") {
  in_child([](Session& s) {
    const CUmodule module = s.load(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry any() { ret; }\n"
        ".visible .entry few() .reqntid 128, 1, 1 { ret; }\n"
        ".visible .entry said() .maxntid 256 .maxnreg 40 { ret; }\n");
    const auto registers = [&](const char* name) {
      int value = 0;
      const CUfunction f = s.function(module, name);
      OK(s, s.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
      return value;
    };
    IS(s, registers("any"), 64);
    IS(s, registers("few"), 255);
    IS(s, registers("said"), 40);
  });
}

TEST_CASE("A function's own attribute wins over its kernel's") {
  in_child([](Session& s) {
    s.start();
    constexpr auto most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction f = nullptr;
    int value = 0;
    OK(s, s.cuLibraryLoadData(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(s, s.cuLibraryGetKernel(&kernel, library, "plain"));
    OK(s, s.cuKernelGetFunction(&f, kernel));
    OK(s, s.cuFuncGetAttribute(&value, most, f));
    IS(s, value, 49152);
    OK(s, s.cuKernelSetAttribute(most, 100000, kernel, 0));
    OK(s, s.cuFuncGetAttribute(&value, most, f));
    IS(s, value, 100000);
    OK(s, s.cuFuncSetAttribute(f, most, 90000));
    OK(s, s.cuKernelGetAttribute(&value, most, kernel, 0));
    IS(s, value, 100000);
    IS(s, launch(s, f, {.shared = 90001}), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuKernelSetAttribute(most, 100000, kernel, 3), CUDA_ERROR_INVALID_DEVICE);
    IS(s, s.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS, 3), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuFuncGetAttribute(&value, CUfunction_attribute(99), f), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuFuncGetAttribute(&value, most, nullptr), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_CASE("A CUkernel runs in its stream's context but a CUfunction only in its own") {
  in_child([](Session& s) {
    s.start();
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction f = nullptr;
    OK(s, s.cuLibraryLoadData(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(s, s.cuLibraryGetKernel(&kernel, library, "plain"));
    OK(s, s.cuKernelGetFunction(&f, kernel));
    CUcontext other = nullptr;
    CUstream stream = nullptr;
    OK(s, s.cuCtxCreate(&other, nullptr, 0, 0));
    OK(s, s.cuStreamCreate(&stream, 0));
    OK(s, s.cuCtxPopCurrent(&other));
    const auto on_the_stream = [&](CUfunction which) {
      uint64_t value = 0;
      void* parameters[] = {&value};
      return s.cuLaunchKernel(which, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
    };
    OK(s, on_the_stream(reinterpret_cast<CUfunction>(kernel)));
    IS(s, on_the_stream(f), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_CASE("Occupancy follows from threads and shared memory") {
  in_child([](Session& s) {
    CUfunction f = s.function(s.load(kernels), "plain");
    int blocks = -1;
    auto blocks_of = [&](int threads, size_t shared) {
      s.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, shared);
      return blocks;
    };
    IS(s, blocks_of(256, 0), 8);
    IS(s, blocks_of(256, 49153), 0);
    OK(s, s.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
    IS(s, blocks_of(256, 100000), 2);
    IS(s, blocks_of(256, 232448), 1);
    IS(s, blocks_of(256, 300000), 0);
    IS(s, blocks_of(32, 0), 32);
    IS(s, s.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0),
       CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, f, 256, 100000, 1));
    IS(s, blocks, 2);
    IS(s, s.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, f, 256, 0, 8),
       CUDA_ERROR_INVALID_VALUE);

    int grid = 0, block = 0;
    OK(s, s.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 0));
    IS(s, block, 1024);
    IS(s, grid, 2 * 148);
    OK(s, s.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, nullptr, 0, 96));
    IS(s, block, 64);  // 32 blocks of 64; of 96 only 21 fit
    const CUoccupancyB2DSize by_thread = [](int threads) { return size_t(threads) * 512; };
    OK(s, s.cuOccupancyMaxPotentialBlockSize(&grid, &block, f, by_thread, 0, 0));
    IS(s, block, 448);  // 224 KB, and 1 KB reserved; with smaller blocks fewer threads fit
    IS(s, grid, 148);
    IS(s, s.cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, nullptr, 0, 0, 8),
       CUDA_ERROR_INVALID_VALUE);
    size_t bytes = 0;
    OK(s, s.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 256));
    IS(s, bytes, size_t(114 * 1024 - 1024));
    IS(s, s.cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 9, 256), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("Clusters that run at once follow from their CTAs and what an SM holds") {
  in_child([](Session& s) {
    const CUmodule module = s.load(kernels);
    CUlaunchAttribute four{};
    four.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    four.value.clusterDim = {4, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 1024, config.blockDimY = config.blockDimZ = 1;
    int clusters = 0;
    const auto of = [&](const char* kernel) {
      return s.cuOccupancyMaxActiveClusters(&clusters, s.function(module, kernel), &config);
    };
    OK(s, of("pair"));
    IS(s, clusters, 148);  // two CTAs on an SM, and two in a cluster
    config.sharedMemBytes = 49153;
    OK(s, of("pair"));
    IS(s, clusters, 0);
    config.sharedMemBytes = 0, config.attrs = &four, config.numAttrs = 1;
    OK(s, of("plain"));
    IS(s, clusters, 74);
    config.blockDimX = 0;
    IS(s, of("plain"), CUDA_ERROR_INVALID_VALUE);
  });
}
