// SPDX-License-Identifier: MIT
// Images: PTX, cubins, garbage, and what modules and libraries answer. Statuses as measured on an
// H200, driver 580: a library always loads, its kernels tell what is wrong with it.
#include <cstring>

#include "tools/emulator/driver/known_code.h"
#include "tools/emulator/op/load.h"
#include "tools/emulator/test/support/driver_session.h"

namespace {

const char* const good = R"(// a comment first
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .entry kernel(.param .u64 p) { ret; }
)";

const char* const plain =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry kernel(.param .u64 p) { ret; }\n";

const char* const wrong_target =
    ".version 8.8\n.target sm_103a\n.address_size 64\n.visible .entry kernel() { ret; }\n";

const char* const unknown_instruction =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry kernel() {\n"
    "  .reg .u32 a;\n  frobnicate.u32 a, 1;\n  ret; }\n";

const char* const too_new =
    "\n.version 9.1\n.target sm_90\n.address_size 64\n.visible .entry kernel() { ret; }\n";

// The first bytes of an ELF file for the given machine (190: CUDA, 62: x86-64).
std::string elf(unsigned char machine) {
  std::string bytes(64, '\0');
  memcpy(bytes.data(), "\177ELF\2\1\1", 7);
  bytes[18] = char(machine);
  return bytes;
}

const std::string fat_binary("\x50\xED\x55\xBA\1\0\x10\0\0\0\0\0\0\0\0\0", 16);

// What both ways of loading say about an image: the status and, where PTX is at fault, the log.
void refused(Session& s, const void* image, CUresult status, const std::string& log_part) {
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  IS(s, s.cuModuleLoadDataEx(&module, image, 2, options, values), status);
  s.says("the module's log", log, log_part);
  if (log[0]) IS(s, size_t(values[1]), strlen(log));

  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  log[0] = 0;
  values[1] = reinterpret_cast<void*>(sizeof log);
  OK(s, s.cuLibraryLoadData(&library, image, options, values, 2, nullptr, nullptr, 0));
  s.says("the library's log", log, log_part);
  IS(s, s.cuLibraryGetKernel(&kernel, library, "kernel"), status);
  IS(s, s.cuLibraryGetModule(&module, library), status);
  OK(s, s.cuLibraryUnload(library));
}

}  // namespace

TEST_CASE("PTX that the device does not run is INVALID_PTX with the place in the log") {
  in_child([](Session& s) {
    s.start();
    refused(s, wrong_target, CUDA_ERROR_INVALID_PTX, "2:9: ");
    refused(s, unknown_instruction, CUDA_ERROR_INVALID_PTX, "6:3: ");
    refused(s, unknown_instruction, CUDA_ERROR_INVALID_PTX, "frobnicate");
    refused(s, ".version 8.0\n", CUDA_ERROR_INVALID_PTX, ".target");
  });
}

namespace {

std::string rubin(const std::string& version) {
  return ".version " + version + "\n.target sm_107a\n.address_size 64\n.entry k() { ret; }\n";
}

}  // namespace

TEST_CASE("PTX newer than the driver is UNSUPPORTED_PTX_VERSION") {
  in_child([](Session& s) {
    s.start();
    refused(s, too_new, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "2:1: .version 9.1");
  });
  in_child({{"EMU_DRIVER_VERSION", "13040"}, {"EMU_DEVICE", "RUBIN"}}, [](Session& s) {
    CUmodule module = nullptr;
    s.start();
    OK(s, s.cuModuleLoadData(&module, rubin("9.4").c_str()));
    refused(s, rubin("9.5").c_str(), CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "this driver's 9.4");
  });
  in_child({{"EMU_DRIVER_VERSION", "12000"}}, [](Session& s) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    OK(s, s.cuInit(0));
    OK(s, s.cuDevicePrimaryCtxRetain(&context, 0));
    OK(s, s.cuCtxSetCurrent(context));
    OK(s, s.cuModuleLoadData(&module, good));
    IS(s, s.cuModuleLoadData(&module, wrong_target), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  });
}

TEST_CASE("Cubins and empty fat binaries have no code for an emulated device") {
  in_child([](Session& s) {
    s.start();
    refused(s, elf(190).data(), CUDA_ERROR_NO_BINARY_FOR_GPU, "");
    refused(s, fat_binary.data(), CUDA_ERROR_NO_BINARY_FOR_GPU, "");
  });
}

TEST_CASE("What is no device code at all is INVALID_IMAGE") {
  in_child([](Session& s) {
    s.start();
    CUmodule module = nullptr;
    CUlibrary library = nullptr;
    refused(s, "garbage", CUDA_ERROR_INVALID_IMAGE, "neither PTX");
    refused(s, "", CUDA_ERROR_INVALID_IMAGE, "neither PTX");
    refused(s, "/* a comment without end", CUDA_ERROR_INVALID_IMAGE, "neither PTX");
    refused(s, elf(62).data(), CUDA_ERROR_INVALID_IMAGE, "neither PTX");
    IS(s, s.cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0),
       CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("A module that is refused without a log buffer says why on stderr") {
  const auto told = [](const void* image) {
    return in_child([&](Session& s) {
      CUmodule module = nullptr;
      s.start();
      IS(s, s.cuModuleLoadData(&module, image) != CUDA_SUCCESS, 1);
    });
  };
  CHECK(told(unknown_instruction).find("emulator: a module is refused: 6:3: ") == 0);
  CHECK(told(too_new).find("emulator: a module is refused: ") == 0);
  CHECK(told(elf(190).c_str()).find("emulator: a module is refused: a cubin") == 0);
  const std::string logged = in_child([](Session& s) {
    s.start();
    refused(s, unknown_instruction, CUDA_ERROR_INVALID_PTX, "6:3: ");
  });
  CHECK(logged == "");
}

TEST_CASE("A log buffer that is too short gets the beginning of the text") {
  in_child([](Session& s) {
    s.start();
    char log[8] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(5)};
    CUmodule module = nullptr;
    log[5] = 'x';
    IS(s, s.cuModuleLoadDataEx(&module, unknown_instruction, 2, options, values),
       CUDA_ERROR_INVALID_PTX);
    IS(s, strcmp(log, "6:3:"), 0);
    IS(s, log[5], 'x');
  });
}

TEST_CASE("A module gives its functions and variables by name") {
  in_child([](Session& s) {
    CUmodule module = s.load(good);
    CUfunction f = nullptr;
    CUdeviceptr address = 0;
    size_t bytes = 0;
    uint32_t value = 0;
    OK(s, s.cuModuleGetFunction(&f, module, "kernel"));
    IS(s, s.cuModuleGetFunction(&f, module, "nope"), CUDA_ERROR_NOT_FOUND);
    IS(s, s.cuModuleGetFunction(nullptr, module, "kernel"), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuModuleGetFunction(&f, nullptr, "kernel"), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuModuleGetGlobal(&address, &bytes, module, "counter"));
    IS(s, bytes, 4);
    OK(s, s.cuMemcpyDtoH(&value, address, 4));
    IS(s, value, 7);
    IS(s, s.cuModuleGetGlobal(&address, &bytes, module, "nope"), CUDA_ERROR_NOT_FOUND);
    OK(s, s.cuModuleUnload(module));
    IS(s, s.cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuMemcpyDtoH(&value, address, 4), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.launch(f), CUDA_ERROR_INVALID_HANDLE);
  });
}

TEST_CASE("A library needs no context until its code does") {
  in_child([](Session& s) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr, same = nullptr;
    CUfunction f = nullptr;
    CUmodule module = nullptr;
    int value = 0;
    OK(s, s.cuInit(0));
    OK(s, s.cuLibraryLoadData(&library, good, nullptr, nullptr, 0, nullptr, nullptr, 0));
    IS(s, s.cuLibraryGetKernel(&kernel, library, "nope"), CUDA_ERROR_NOT_FOUND);
    OK(s, s.cuLibraryGetKernel(&kernel, library, "kernel"));
    OK(s, s.cuLibraryGetKernel(&same, library, "kernel"));
    IS(s, kernel == same, 1);
    OK(s, s.cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    IS(s, value, 1024);
    IS(s, s.cuKernelGetFunction(&f, kernel), CUDA_ERROR_INVALID_CONTEXT);
    IS(s, s.cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_CONTEXT);
  });
}

TEST_CASE("A library's code is one module per context which the library owns") {
  in_child([](Session& s) {
    CUcontext primary = s.start(), other = nullptr;
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    CUfunction f = nullptr, again = nullptr, elsewhere = nullptr;
    CUmodule module = nullptr, same = nullptr;
    CUdeviceptr here = 0, there = 0;
    OK(s, s.cuLibraryLoadData(&library, good, nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(s, s.cuLibraryGetKernel(&kernel, library, "kernel"));
    OK(s, s.cuKernelGetFunction(&f, kernel));
    OK(s, s.cuKernelGetFunction(&again, kernel));
    IS(s, f == again, 1);
    OK(s, s.cuFuncLoad(f));
    IS(s, s.cuFuncLoad(nullptr), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.cuLibraryGetModule(&module, library));
    OK(s, s.cuFuncGetModule(&same, f));
    IS(s, module == same, 1);
    IS(s, s.cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
    OK(s, s.cuLibraryGetGlobal(&here, nullptr, library, "counter"));
    OK(s, s.launch(reinterpret_cast<CUfunction>(kernel)));

    OK(s, s.cuCtxCreate(&other, nullptr, 0, 0));
    OK(s, s.cuKernelGetFunction(&elsewhere, kernel));
    IS(s, elsewhere != f, 1);
    OK(s, s.cuLibraryGetGlobal(&there, nullptr, library, "counter"));
    IS(s, here != there, 1);
    IS(s, s.launch(f), CUDA_ERROR_INVALID_HANDLE);
    OK(s, s.launch(reinterpret_cast<CUfunction>(kernel)));
    OK(s, s.cuCtxDestroy(other));
    OK(s, s.cuCtxSetCurrent(primary));
    OK(s, s.cuLibraryUnload(library));
    IS(s, s.launch(f), CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuFuncLoad(f), CUDA_ERROR_INVALID_HANDLE);
    IS(s, s.cuMemsetD8(here, 0, 1), CUDA_ERROR_INVALID_VALUE);
  });
}

namespace {

std::string without_variables(int name) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k" + std::to_string(name) +
         "() { ret; }\n";
}

}  // namespace

TEST_CASE("The last four codes that were read are known by their text") {
  emu::driver::KnownCode known;
  const auto read = [&](const std::string& text) {
    const std::shared_ptr<emu::ptx::Module> code = emu::ops::load(text, 90);
    known.keep(code);
    return code;
  };
  const auto first = read(without_variables(0));
  CHECK(known.find(without_variables(0)) == first);
  CHECK(known.find(without_variables(0) + std::string(3, '\0')) == first);
  CHECK(known.find(without_variables(0) + " ") == nullptr);
  read(good);
  CHECK(known.find(good) == nullptr);  // its variable has one module's address
  for (int i = 1; i < 4; ++i) read(without_variables(i));
  CHECK(known.find(without_variables(0)) == first);
  read(without_variables(4));
  CHECK(known.find(without_variables(0)) == nullptr);
  CHECK(known.find(without_variables(1)) != nullptr);
}

TEST_CASE("One text in two modules or libraries is two of them with variables of their own") {
  in_child([](Session& s) {
    s.start();
    CUdeviceptr address[2] = {};
    CUmodule module[2] = {};
    for (CUmodule& m : module) OK(s, s.cuModuleLoadData(&m, good));
    for (int i = 0; i < 2; ++i)
      OK(s, s.cuModuleGetGlobal(&address[i], nullptr, module[i], "counter"));
    IS(s, address[0] == address[1], 0);
    for (const char* text : {good, plain}) {
      CUlibrary library[2] = {};
      CUkernel kernel[2] = {};
      for (int i = 0; i < 2; ++i) {
        OK(s, s.cuLibraryLoadData(&library[i], text, nullptr, nullptr, 0, nullptr, nullptr, 0));
        OK(s, s.cuLibraryGetKernel(&kernel[i], library[i], "kernel"));
        if (text == good) OK(s, s.cuLibraryGetGlobal(&address[i], nullptr, library[i], "counter"));
      }
      IS(s, kernel[0] == kernel[1], 0);
      OK(s, s.cuLibraryUnload(library[0]));
      IS(s, s.launch(reinterpret_cast<CUfunction>(kernel[0])), CUDA_ERROR_INVALID_HANDLE);
      OK(s, s.launch(reinterpret_cast<CUfunction>(kernel[1])));
    }
    IS(s, address[0] == address[1], 0);
  });
}
