// SPDX-License-Identifier: MIT
// cuLink*: PTX in, PTX out, which a module takes where NVIDIA's driver has a cubin.
#include <cstring>

#include "tools/emulator/test/support/driver_session.h"

namespace {

const char* const header = ".version 8.0\n.target sm_90\n.address_size 64\n";

const char* const caller = R"(// a comment before
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) seven();
.visible .entry k(.param .u64 p) {
  .reg .b64 %a; .reg .b32 %v;
  ld.param.u64 %a, [p];
  { .param .b32 r0; call.uni (r0), seven, (); ld.param.b32 %v, [r0]; }
  st.global.u32 [%a], %v;
  ret;
}
)";
const char* const callee = R"(
.version 8.3
.target sm_90  // as the other one
.address_size 64
.visible .func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }
)";

CUresult add(Session& s, CUlinkState link, const std::string& text,
             CUjitInputType type = CU_JIT_INPUT_PTX) {
  return s.cuLinkAddData(link, type, const_cast<char*>(text.c_str()), text.size() + 1, "one.ptx", 0,
                         nullptr, nullptr);
}

}  // namespace

TEST_CASE("Linked PTX is one module in which the texts call each other") {
  in_child([](Session& s) {
    s.start();
    CUlinkState link = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    CUmodule module = nullptr;
    CUdeviceptr p = 0;
    uint32_t value = 0;
    OK(s, s.cuLinkCreate(0, nullptr, nullptr, &link));
    OK(s, add(s, link, caller));
    OK(s, add(s, link, callee));
    OK(s, s.cuLinkComplete(link, &image, &bytes));
    IS(s, bytes, strlen(static_cast<char*>(image)) + 1);
    IS(s, add(s, link, callee), CUDA_ERROR_INVALID_VALUE);  // complete
    const std::string copy(static_cast<char*>(image), bytes);
    IS(s, copy.starts_with(".version 8.3\n"), 1);  // the newer one
    OK(s, s.cuLinkDestroy(link));
    IS(s, s.cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuModuleLoadData(&module, copy.data()));
    OK(s, s.cuMemAlloc(&p, 4));
    OK(s, s.launch(s.function(module, "k"), p));
    OK(s, s.cuMemcpyDtoH(&value, p, 4));
    IS(s, value, 7);
  });
}

TEST_CASE("A single text is linked as it is and its errors are in the linker's log") {
  in_child([](Session& s) {
    s.start();
    CUlinkState link = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_TARGET};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log), reinterpret_cast<void*>(90)};
    OK(s, s.cuLinkCreate(3, options, values, &link));
    const std::string good = std::string(header) + ".visible .entry k() { ret; }\n";
    OK(s, add(s, link, good, CU_JIT_INPUT_CUBIN));  // what cuLinkComplete gave may be linked again
    OK(s, s.cuLinkComplete(link, &image, &bytes));
    IS(s, good == static_cast<char*>(image), 1);
    values[1] = reinterpret_cast<void*>(sizeof log);  // in which the length was answered
    OK(s, s.cuLinkCreate(3, options, values, &link));
    OK(s, add(s, link, std::string(header) + ".visible .entry k() { frobnicate; }\n"));
    IS(s, s.cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_PTX);
    s.says("the log", log, "4:");
    s.says("the log", log, "frobnicate");
  });
}

TEST_CASE("What cannot be linked is refused with a sentence that names the input") {
  const std::string said = in_child([](Session& s) {
    s.start();
    CUlinkState link = nullptr;
    void* image = nullptr;
    size_t bytes = 0;
    OK(s, s.cuLinkCreate(0, nullptr, nullptr, &link));
    IS(s, s.cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_IMAGE);  // nothing was added
    IS(s, add(s, link, "x", CU_JIT_INPUT_LIBRARY), CUDA_ERROR_NOT_SUPPORTED);
    IS(s, add(s, link, "x"), CUDA_ERROR_INVALID_PTX);
    IS(s, add(s, link, "\177ELF", CU_JIT_INPUT_CUBIN), CUDA_ERROR_INVALID_IMAGE);
    IS(s, add(s, link, "x", CU_JIT_NUM_INPUT_TYPES), CUDA_ERROR_INVALID_VALUE);
    std::string elf(64, '\0');
    memcpy(elf.data(), "\177ELF\2\1\1", 7);
    elf[18] = char(190);
    IS(s, add(s, link, elf, CU_JIT_INPUT_CUBIN), CUDA_ERROR_NO_BINARY_FOR_GPU);
    OK(s, add(s, link, caller));
    IS(s, add(s, link, ".version 8.0\n.target sm_80\n.address_size 64\n"), CUDA_ERROR_INVALID_PTX);
    IS(s, add(s, link, ".version 8.0\n.entry k() { ret; }"), CUDA_ERROR_INVALID_PTX);
    IS(s, s.cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr),
       CUDA_ERROR_FILE_NOT_FOUND);
    IS(s, s.cuLinkAddFile(link, CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr),
       CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuLinkAddData(link, CU_JIT_INPUT_PTX, nullptr, 4, "", 0, nullptr, nullptr),
       CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuLinkAddData(nullptr, CU_JIT_INPUT_PTX, image, 4, "", 0, nullptr, nullptr),
       CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuLinkCreate(1, nullptr, nullptr, &link), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuLinkCreate(0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  });
  CHECK(said.find("one.ptx: the emulator links PTX") != std::string::npos);
  CHECK(said.find("one.ptx: a cubin has no code for an emulated device") != std::string::npos);
  CHECK(said.find("one.ptx: .target sm_80") != std::string::npos);
}

TEST_CASE("The functions of a module and the kernels of a library can be listed") {
  in_child([](Session& s) {
    s.start();
    const std::string text = std::string(header) + ".entry a() { ret; }\n.entry b() { ret; }\n";
    const CUmodule module = s.load(text.c_str());
    unsigned count = 0;
    CUfunction functions[3] = {};
    const char* name = nullptr;
    OK(s, s.cuModuleGetFunctionCount(&count, module));
    IS(s, count, 2);
    OK(s, s.cuModuleEnumerateFunctions(functions, 1, module));
    IS(s, functions[0] && !functions[1], 1);
    OK(s, s.cuModuleEnumerateFunctions(functions, 3, module));
    OK(s, s.cuFuncGetName(&name, functions[1]));
    s.says("the second name", name, "b");
    IS(s, functions[2] == nullptr, 1);
    IS(s, s.cuModuleEnumerateFunctions(nullptr, 1, module), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuModuleEnumerateFunctions(functions, 0, module), CUDA_ERROR_INVALID_VALUE);
    CUlibrary library = nullptr;
    CUkernel kernels[2] = {};
    OK(s, s.cuLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(s, s.cuLibraryEnumerateKernels(kernels, 2, library));
    IS(s, kernels[0] && kernels[1] && kernels[0] != kernels[1], 1);
    IS(s, s.cuLibraryEnumerateKernels(kernels, 0, library), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("Preferences of caches and banks are checked and change nothing") {
  in_child([](Session& s) {
    s.start();
    const CUmodule module =
        s.load((std::string(header) + ".visible .entry k() { ret; }\n").c_str());
    const CUfunction f = s.function(module, "k");
    const auto nine = CUfunc_cache(9);
    auto config = nine;
    // <cuda.h> warns of these three; a plain int has the form of their argument.
    const auto set_banks = s.extension<CUresult (*)(int)>("cuCtxSetSharedMemConfig");
    const auto get_banks = s.extension<CUresult (*)(int*)>("cuCtxGetSharedMemConfig");
    const auto function_banks =
        s.extension<CUresult (*)(CUfunction, int)>("cuFuncSetSharedMemConfig");
    int banks = 9;
    OK(s, s.cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED));
    IS(s, s.cuFuncSetCacheConfig(f, nine), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuFuncSetCacheConfig(nullptr, CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_INVALID_HANDLE);
    IS(s, function_banks(f, banks), CUDA_ERROR_INVALID_VALUE);
    OK(s, function_banks(f, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(s, s.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
    OK(s, s.cuCtxGetCacheConfig(&config));
    IS(s, config, CU_FUNC_CACHE_PREFER_EQUAL);
    IS(s, s.cuCtxSetCacheConfig(nine), CUDA_ERROR_INVALID_VALUE);
    IS(s, set_banks(banks), CUDA_ERROR_INVALID_VALUE);
    OK(s, set_banks(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    OK(s, get_banks(&banks));
    IS(s, banks, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    IS(s, s.cuKernelSetCacheConfig(nullptr, CU_FUNC_CACHE_PREFER_L1, 0), CUDA_ERROR_INVALID_HANDLE);
  });
}
