// SPDX-License-Identifier: MIT
// nvfp4emu.h: planned failures, the record of calls, the ledger, counters, settings; and the
// exports.
#include "tools/emulator/test/support/driver_session.h"

namespace {

const char* const add = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .u64 pa, pb, pc, at;
  .reg .u32 i, j, count, block, size, x, y, z;
  .reg .pred outside;
  ld.param.u64 pa, [a];
  ld.param.u64 pb, [b];
  ld.param.u64 pc, [c];
  ld.param.u32 count, [n];
  mov.u32 block, %ctaid.x;
  mov.u32 size, %ntid.x;
  mov.u32 j, %tid.x;
  mad.lo.u32 i, block, size, j;
  setp.ge.u32 outside, i, count;
  @outside bra done;
  mul.wide.u32 at, i, 4;
  add.u64 pa, pa, at;
  add.u64 pb, pb, at;
  add.u64 pc, pc, at;
  ld.global.u32 x, [pa];
  ld.global.u32 y, [pb];
  add.u32 z, x, y;
  st.global.u32 [pc], z;
done:
  ret;
}
)";

}  // namespace

TEST_CASE("A vector addition runs from PTX text to its result") {
  in_child([](Session& s) {
    CUfunction f = s.function(s.load(add), "add");
    constexpr uint32_t n = 1000, threads = 128;
    std::vector<uint32_t> a(n), b(n), c(n + 8, 0);
    for (uint32_t i = 0; i < n; ++i) a[i] = 3 * i, b[i] = 0x10000 + i;
    CUdeviceptr pa = 0, pb = 0, pc = 0;
    for (CUdeviceptr* p : {&pa, &pb, &pc}) OK(s, s.cuMemAlloc(p, 4 * (n + 8)));
    OK(s, s.cuMemcpyHtoD(pa, a.data(), 4 * n));
    OK(s, s.cuMemcpyHtoD(pb, b.data(), 4 * n));
    uint32_t count = n;
    void* parameters[] = {&pa, &pb, &pc, &count};
    OK(s, s.cuLaunchKernel(f, (n + threads - 1) / threads, 1, 1, threads, 1, 1, 0, nullptr,
                           parameters, nullptr));
    OK(s, s.cuCtxSynchronize());
    OK(s, s.cuMemcpyDtoH(c.data(), pc, 4 * (n + 8)));
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < n; ++i) wrong += c[i] != 4 * i + 0x10000;
    for (uint32_t i = n; i < n + 8; ++i) wrong += c[i] != 0xFFFFFFFF;  // untouched beyond the end
    IS(s, wrong, 0);

    auto counters = s.extension<decltype(&nvfp4emu_counters)>("nvfp4emu_counters");
    uint64_t instructions = 0;
    IS(s, counters("instructions", &instructions), 0);
    IS(s, instructions >= 32 * 8, 1);  // 32 warps
    IS(s, counters("nope", &instructions), -1);
  });
}

// A lane loads what its neighbour has stored, without bar.warp.sync.
TEST_CASE("Findings are counted by the rule that they broke") {
  const std::string text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u32 %r<3>; .reg .u64 %p<4>;
  ld.param.u64 %p0, [p]; mov.u32 %r0, %laneid; xor.b32 %r1, %r0, 1;
  mad.wide.u32 %p1, %r0, 4, %p0; mad.wide.u32 %p2, %r1, 4, %p0;
  st.global.u32 [%p1], %r0; ld.global.u32 %r2, [%p2]; st.global.u32 [%p1+256], %r2; ret;
}
)";
  in_child([&](Session& s) {
    CUfunction f = s.function(s.load(text.c_str()), "k");
    auto counters = s.extension<decltype(&nvfp4emu_counters)>("nvfp4emu_counters");
    auto of_rule = s.extension<decltype(&nvfp4emu_findings_of)>("nvfp4emu_findings_of");
    CUdeviceptr p = 0;
    OK(s, s.cuMemAlloc(&p, 512));
    void* params[] = {&p};
    OK(s, s.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
    OK(s, s.cuCtxSynchronize());
    uint64_t formal = 0, lanes = 0, fences = 0;
    IS(s, counters("formal_hazards", &formal), 0);
    IS(s, of_rule("lanes", &lanes), 0);
    IS(s, of_rule("tensor_fence", &fences), 0);
    IS(s, formal > 0, 1);
    IS(s, lanes, formal);
    IS(s, fences, 0);
    IS(s, of_rule("misaligned_address", &fences), 0);
    IS(s, of_rule("nope", &fences), -1);
  });
}

TEST_CASE("A planned failure comes at its call and once") {
  in_child([](Session& s) {
    auto fail = s.extension<decltype(&nvfp4emu_fail)>("nvfp4emu_fail");
    auto pending = s.extension<decltype(&nvfp4emu_fail_pending)>("nvfp4emu_fail_pending");
    CUdeviceptr p = 0;
    s.start();
    IS(s, fail("cuNope", 1, CUDA_ERROR_OUT_OF_MEMORY), -1);
    IS(s, fail("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY), 0);
    IS(s, pending(), 1);
    OK(s, s.cuMemAlloc(&p, 64));
    OK(s, s.cuMemFree(p));
    p = 77;
    IS(s, s.cuMemAlloc(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    IS(s, p, 77);
    IS(s, pending(), 0);
    OK(s, s.cuMemAlloc(&p, 64));
    IS(s, fail("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY), 0);
    IS(s, fail("cuMemAlloc", 0, 0), 0);
    OK(s, s.cuMemAlloc(&p, 64));
  });
}

TEST_CASE("A planned asynchronous error sticks to the context") {
  in_child([](Session& s) {
    auto fail = s.extension<decltype(&nvfp4emu_fail)>("nvfp4emu_fail");
    CUdeviceptr p = 0;
    s.start();
    IS(s, fail("cuCtxSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS), 0);
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(s, s.cuMemAlloc(&p, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
}

TEST_CASE("Calls are recorded in order under their base names") {
  in_child([](Session& s) {
    auto calls = s.extension<decltype(&nvfp4emu_calls)>("nvfp4emu_calls");
    auto reset = s.extension<decltype(&nvfp4emu_reset_calls)>("nvfp4emu_reset_calls");
    CUdeviceptr p = 0;
    char text[256];
    s.start();
    reset();
    s.cuMemAlloc(&p, 64);
    s.cuMemFree(p);
    s.cuMemFree(p);
    const std::string wanted = "cuMemAlloc\ncuMemFree\ncuMemFree\n";
    IS(s, calls(nullptr, 0), wanted.size() + 1);
    IS(s, calls(text, sizeof text), wanted.size() + 1);
    IS(s, text == wanted, 1);
    IS(s, calls(text, 6), wanted.size() + 1);
    IS(s, std::string(text) == "cuMem", 1);
  });
}

TEST_CASE("The ledger counts what lives and is empty after the clean-up") {
  in_child([](Session& s) {
    auto ledger = s.extension<decltype(&nvfp4emu_ledger)>("nvfp4emu_ledger");
    nvfp4emu_counts now;
    CUmodule module = s.load(add);
    CUlibrary library = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUdeviceptr p = 0;
    void* host = nullptr;
    OK(s, s.cuLibraryLoadData(&library, add, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(s, s.cuStreamCreate(&stream, 0));
    OK(s, s.cuEventCreate(&event, 0));
    OK(s, s.cuMemAlloc(&p, 100));
    OK(s, s.cuMemHostAlloc(&host, 100, 0));
    ledger(&now);
    IS(s, now.allocations, 1);
    IS(s, now.allocated_bytes, 100);
    IS(s, now.host_allocations, 1);
    IS(s, now.modules, 1);
    IS(s, now.libraries, 1);
    IS(s, now.streams, 1);
    IS(s, now.events, 1);
    IS(s, now.contexts, 1);
    OK(s, s.cuModuleUnload(module));
    OK(s, s.cuLibraryUnload(library));
    OK(s, s.cuDevicePrimaryCtxRelease(0));
    ledger(&now);
    IS(s, now.allocations + now.allocated_bytes + now.host_allocations, 0);
    IS(s, now.modules + now.libraries + now.streams + now.events + now.contexts, 0);
  });
}

TEST_CASE("Settings change between launches and refuse what they do not know") {
  in_child([](Session& s) {
    auto set = s.extension<decltype(&nvfp4emu_set)>("nvfp4emu_set");
    IS(s, set("EMU_SEED", "0x10"), 0);
    IS(s, set("EMU_ORDER", "latest"), 0);
    IS(s, set("EMU_ORDER", "never"), -1);
    IS(s, set("EMU_SEED", "-1"), -1);
    IS(s, set("EMU_SEED", ""), -1);
    IS(s, set("EMU_DEVICE", "H200"), -1);
    IS(s, set("EMU_HAZARDS", "report"), 0);
    IS(s, set("EMU_FORMAL", "stop"), 0);
    IS(s, set("EMU_FORMAL", "perhaps"), -1);
    CUfunction f = s.function(s.load(add), "add");
    uint64_t zero = 0;
    void* parameters[] = {&zero, &zero, &zero, &zero};
    IS(s, set("EMU_MAX_INSTRUCTIONS", "3"), 0);
    OK(s, s.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
  });
}

TEST_CASE("The library exports the driver API and its extensions and nothing of C++") {
  in_child([](Session& s) {
    IS(s, s.symbol("cuMemAlloc_v2") != nullptr, 1);
    IS(s, s.symbol("nvfp4emu_set") != nullptr, 1);
    IS(s, s.symbol("cuNope") == nullptr, 1);
    IS(s, s.symbol("_ZN3emu8run_gridERKNS_6LaunchE") == nullptr, 1);
  });
}

TEST_CASE("Tensor maps are encoded where there is a TMA and refused by the rules") {
  auto encode = [](Session& s, uint32_t box, uint32_t swizzle) {
    alignas(64) CUtensorMap map;
    cuuint64_t dims[] = {256, 64}, strides[] = {256};
    cuuint32_t boxes[] = {box, 8}, steps[] = {1, 1};
    return s.cuTensorMapEncodeTiled(
        &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, reinterpret_cast<void*>(0x1000), dims, strides,
        boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CUtensorMapSwizzle(swizzle),
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  std::string errors = in_child([&](Session& s) {
    IS(s, encode(s, 128, CU_TENSOR_MAP_SWIZZLE_128B), CUDA_ERROR_NOT_INITIALIZED);
    OK(s, s.cuInit(0));
    IS(s, encode(s, 128, CU_TENSOR_MAP_SWIZZLE_128B), CUDA_ERROR_INVALID_CONTEXT);
    s.start();
    OK(s, encode(s, 128, CU_TENSOR_MAP_SWIZZLE_128B));
    IS(s, encode(s, 144, CU_TENSOR_MAP_SWIZZLE_128B), CUDA_ERROR_INVALID_VALUE);
    OK(s, encode(s, 144, CU_TENSOR_MAP_SWIZZLE_NONE));
    alignas(64) CUtensorMap map = {};
    IS(s, s.cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(0x2000)),
       CUDA_ERROR_INVALID_VALUE);
  });
  CHECK(errors.find("cuTensorMapEncodeTiled: ") != std::string::npos);
  in_child({{"EMU_DEVICE", "A100"}}, [&](Session& s) {
    s.start();
    IS(s, encode(s, 128, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_NOT_SUPPORTED);
  });
}

TEST_CASE("Tensor maps of pixel columns are encoded and refused by their own rules") {
  auto encode = [](Session& s, cuuint32_t channels, int upper) {
    alignas(64) CUtensorMap map;
    cuuint64_t dims[] = {64, 8, 8, 2}, strides[] = {64, 512, 4096};
    cuuint32_t steps[] = {1, 1, 1, 1};
    int lower[] = {-1, -1}, uppers[] = {upper, upper};
    return s.cuTensorMapEncodeIm2col(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 4,
                                     reinterpret_cast<void*>(0x1000), dims, strides, lower, uppers,
                                     channels, 64, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                     CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  std::string errors = in_child([&](Session& s) {
    OK(s, s.cuInit(0));
    IS(s, encode(s, 64, -1), CUDA_ERROR_INVALID_CONTEXT);
    s.start();
    OK(s, encode(s, 64, -1));
    IS(s, encode(s, 80, -1), CUDA_ERROR_INVALID_VALUE);  // the swizzle spans 64 bytes
    IS(s, encode(s, 64, -9), CUDA_ERROR_INVALID_VALUE);  // the box is empty
  });
  CHECK(errors.find("cuTensorMapEncodeIm2col: ") != std::string::npos);
  in_child({{"EMU_DEVICE", "A100"}}, [&](Session& s) {
    s.start();
    IS(s, encode(s, 64, -1), CUDA_ERROR_NOT_SUPPORTED);
  });
}

namespace {

std::string object_read;
void read_object(const char* object) { object_read = object; }

}  // namespace

TEST_CASE("Reports go to the program as objects and no more to stderr") {
  const std::string said = in_child([](Session& s) {
    const auto report_to = s.extension<decltype(&nvfp4emu_report_to)>("nvfp4emu_report_to");
    const CUfunction f = s.function(s.load(add), "add");
    report_to(read_object);
    CUdeviceptr p = 0;
    uint32_t count = 8;
    OK(s, s.cuMemAlloc(&p, 16));
    void* parameters[] = {&p, &p, &p, &count};
    OK(s, s.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    s.says("the object", object_read, "{\"class\":\"error\",");
    s.says("the object", object_read, "outside every allocation");
    report_to(nullptr);
  });
  CHECK(said.empty());
}
