// SPDX-License-Identifier: MIT
// Start, entry points by name and version, identities. Statuses as measured on an H200, driver 580.
#include <cstring>

#include "tools/emulator/test/support/driver_session.h"

TEST_CASE("Before cuInit only the version and the entry points can be asked for") {
  in_child([](Session& s) {
    int n = 0;
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    CUlibrary library = nullptr;
    OK(s, s.cuDriverGetVersion(&n));
    IS(s, n, 13000);
    IS(s, s.cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    IS(s, s.cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    IS(s, s.cuMemAlloc(&address, 0), CUDA_ERROR_NOT_INITIALIZED);
    IS(s, s.cuLibraryLoadData(&library, "x", nullptr, nullptr, 0, nullptr, nullptr, 0),
       CUDA_ERROR_NOT_INITIALIZED);
    IS(s, s.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(s, s.cuInit(0));
    OK(s, s.cuInit(0));
    OK(s, s.cuDeviceGetCount(&n));
    IS(s, n, 1);
  });
}

namespace {

void look_up(Session& s, const char* name, int version, int status, bool address, int found) {
  void* p = nullptr;
  auto seen = CUdriverProcAddressQueryResult(77);
  std::string what = std::string(name) + " at " + std::to_string(version);
  s.is(what.c_str(), s.lookup(name, &p, version, CU_GET_PROC_ADDRESS_DEFAULT, &seen), status);
  s.is((what + " has an address").c_str(), p != nullptr, address);
  s.is((what + " query result").c_str(), seen, found);
}

constexpr int found = CU_GET_PROC_ADDRESS_SUCCESS;
constexpr int unknown = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
constexpr int too_old = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;

}  // namespace

TEST_CASE("cuGetProcAddress tells an unknown name from a version that is too old") {
  in_child([](Session& s) {
    look_up(s, "cuMemAlloc", 13000, CUDA_SUCCESS, true, found);
    look_up(s, "cuMemAlloc", 3020, CUDA_SUCCESS, true, found);
    look_up(s, "cuMemAlloc", 1000, CUDA_SUCCESS, false, too_old);
    look_up(s, "cuLibraryLoadData", 11080, CUDA_SUCCESS, false, too_old);
    look_up(s, "cuNope", 13000, CUDA_SUCCESS, false, unknown);
    look_up(s, "", 13000, CUDA_SUCCESS, false, unknown);
    look_up(s, "cuMemAlloc_v2", 13000, CUDA_SUCCESS, false, unknown);
    look_up(s, "cuMemAlloc", 13010, CUDA_ERROR_INVALID_VALUE, false, 77);
  });
}

TEST_CASE("cuGetProcAddress gives each CUDA version its own signature of a name") {
  in_child([](Session& s) {
    auto at = [&](const char* name, int version) {
      void* p = nullptr;
      s.lookup(name, &p, version, 0, nullptr);
      return p;
    };
    IS(s, at("cuCtxCreate", 11030) == s.symbol("cuCtxCreate_v2"), 1);
    IS(s, at("cuCtxCreate", 12040) == s.symbol("cuCtxCreate_v3"), 1);
    IS(s, at("cuCtxCreate", 12050) == s.symbol("cuCtxCreate_v4"), 1);
    IS(s, at("cuEventElapsedTime", 12070) == s.symbol("cuEventElapsedTime"), 1);
    IS(s, at("cuEventElapsedTime", 12080) == s.symbol("cuEventElapsedTime_v2"), 1);
    IS(s, at("cuCtxGetDevice", 13000) == s.symbol("cuCtxGetDevice_v2"), 1);
  });
}

TEST_CASE("An older driver version hides the entry points that it did not have") {
  in_child({{"EMU_DRIVER_VERSION", "12040"}}, [](Session& s) {
    int version = 0;
    OK(s, s.cuDriverGetVersion(&version));
    IS(s, version, 12040);
    look_up(s, "cuCtxCreate", 12050, CUDA_ERROR_INVALID_VALUE, false, 77);
    look_up(s, "cuLibraryLoadData", 12040, CUDA_SUCCESS, true, found);
  });
}

TEST_CASE("Error names and texts exist for every status and for no other number") {
  in_child([](Session& s) {
    const char* text = nullptr;
    OK(s, s.cuGetErrorName(CUDA_ERROR_NO_BINARY_FOR_GPU, &text));
    s.says("209", text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    OK(s, s.cuGetErrorString(CUDA_ERROR_TENSOR_MEMORY_LEAK, &text));
    IS(s, text != nullptr && *text != 0, 1);
    IS(s, s.cuGetErrorName(CUresult(9999), &text), CUDA_ERROR_INVALID_VALUE);
    IS(s, text == nullptr, 1);
  });
}

namespace {

struct Identity {
  const char *key, *name;
  int major, minor, sms, shared, clusters;
};
const Identity identities[] = {
    {"B200", "NVIDIA B200 (emulated)", 10, 0, 148, 232448, 1},
    {"B300", "NVIDIA B300 (emulated)", 10, 3, 148, 232448, 1},
    {"H200", "NVIDIA H200 (emulated)", 9, 0, 132, 232448, 1},
    {"H100", "NVIDIA H100 (emulated)", 9, 0, 132, 232448, 1},
    {"RTX5090", "NVIDIA GeForce RTX 5090 (emulated)", 12, 0, 170, 101376, 1},
    {"RUBIN", "NVIDIA Rubin (emulated)", 10, 7, 224, 232448, 1},
    {"THOR", "NVIDIA Thor (emulated)", 11, 0, 20, 232448, 1},
    {"GB10", "NVIDIA GB10 (emulated)", 12, 1, 48, 101376, 1},
    {"RTX4090", "NVIDIA GeForce RTX 4090 (emulated)", 8, 9, 128, 101376, 0},
    {"A40", "NVIDIA A40 (emulated)", 8, 6, 84, 101376, 0},
    {"A100", "NVIDIA A100 (emulated)", 8, 0, 108, 166912, 0},
    {"T4", "Tesla T4 (emulated)", 7, 5, 40, 65536, 0},
};

}  // namespace

TEST_CASE("EMU_DEVICE chooses the device that programs see") {
  for (const Identity& d : identities) {
    in_child({{"EMU_DEVICE", d.key}}, [&](Session& s) {
      char name[100] = "";
      int value = 0;
      OK(s, s.cuInit(0));
      OK(s, s.cuDeviceGetName(name, sizeof name, 0));
      s.says("the name", name, d.name);
      auto attribute = [&](CUdevice_attribute which) {
        return s.cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS ? value : -1;
      };
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), d.major);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), d.minor);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), d.sms);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), d.shared);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH), d.clusters);
      IS(s, attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    });
  }
}

TEST_CASE("Devices and attributes that do not exist are refused") {
  in_child([](Session& s) {
    int value = 0;
    CUdevice device = 0;
    char name[5];
    OK(s, s.cuInit(0));
    IS(s, s.cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
    IS(s, s.cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    IS(s, s.cuDeviceGetAttribute(&value, CUdevice_attribute(9999), 0), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuDeviceGetAttribute(&value, CUdevice_attribute(0), 0), CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0),
       CUDA_ERROR_INVALID_VALUE);
    IS(s, s.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7),
       CUDA_ERROR_INVALID_DEVICE);
    OK(s, s.cuDeviceGetName(name, sizeof name, 0));
    IS(s, strcmp(name, "NVID"), 0);
  });
}

TEST_CASE("A machine without a device is one where cuInit says so") {
  in_child({{"EMU_DEVICE", "none"}}, [](Session& s) {
    int count = 7;
    IS(s, s.cuInit(0), CUDA_ERROR_NO_DEVICE);
    IS(s, s.cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  });
}

TEST_CASE("An unknown EMU_DEVICE is refused with the list of known ones") {
  std::string errors = in_child({{"EMU_DEVICE", "B2000"}},
                                [](Session& s) { IS(s, s.cuInit(0), CUDA_ERROR_INVALID_DEVICE); });
  CHECK(errors.find("EMU_DEVICE=B2000") != std::string::npos);
  CHECK(errors.find("B200, B300, H200") != std::string::npos);
}
