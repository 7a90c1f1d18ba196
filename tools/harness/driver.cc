// SPDX-License-Identifier: MIT
#include "tools/harness/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace support {

// The oldest driver with cuGetProcAddress_v2. It has every entry up to this version.
constexpr int kOldest = 12000;

Driver::Driver() {
  library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    throw DriverError(std::string("no CUDA driver: ") + dlerror(), CUDA_ERROR_NOT_INITIALIZED);
  }
  // The versioned symbol: the plain one is the CUDA 11 form with another signature.
  auto lookup =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library_, "cuGetProcAddress_v2"));
  if (!lookup) {
    throw DriverError("the CUDA driver has no cuGetProcAddress_v2", CUDA_ERROR_NOT_FOUND);
  }
  const auto find = [&](const char* name, int version) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found{};
    lookup(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    if (!address && version <= kOldest) {
      throw DriverError(std::string("the CUDA driver has no ") + name, CUDA_ERROR_NOT_FOUND);
    }
    return address;
  };
#define ENTRY(name, version) \
  this->name = reinterpret_cast<decltype(this->name)>(find(#name, version));
#include "tools/harness/driver.def"
#undef ENTRY
  check(this->cuInit(0), "cuInit");
}

const Driver& Driver::get() {
  static const Driver driver;
  return driver;
}

void Driver::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (this->cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
  throw DriverError(
      std::string(what) + " answered " + name + " (" + std::to_string(int(result)) + ")", result);
}

void* Driver::extension(const char* name) const { return dlsym(library_, name); }

std::vector<DeviceInfo> devices(const Driver& driver) {
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<DeviceInfo> list;
  for (int i = 0; i < count; ++i) {
    CUdevice device{};
    DeviceInfo info;
    char name[256] = "";
    driver.check(driver.cuDeviceGet(&device, i), "cuDeviceGet");
    driver.check(driver.cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    info.name = name;
    const auto attribute = [&](int& value, CUdevice_attribute which) {
      driver.check(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    };
    attribute(info.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    attribute(info.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    attribute(info.sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    driver.check(driver.cuDeviceTotalMem(&info.memory, device), "cuDeviceTotalMem");
    list.push_back(info);
  }
  return list;
}

Context::Context(const Driver& driver, int device) : driver_(driver) {
  CUcontext context = nullptr;
  driver.check(driver.cuDeviceGet(&device_, device), "cuDeviceGet");
  driver.check(driver.cuDevicePrimaryCtxRetain(&context, device_), "cuDevicePrimaryCtxRetain");
  driver.check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

Context::~Context() {
  driver_.cuCtxSetCurrent(nullptr);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

namespace {

// Bytes behind a buffer. None where the emulator finds each access beyond the end of an allocation.
// compute-sanitizer (tools/gates/check_hw.sh) does, too, but takes a cp.async with a source size
// for a read of all of its 16 bytes.
size_t guard_behind(const Driver& driver, size_t bytes, size_t usual) {
  if (driver.extension("nvfp4emu_set") != nullptr) return 0;
  return std::getenv("NVFP4_SANITIZED") != nullptr ? -bytes % 16 : usual;
}

}  // namespace

DeviceBuffer::DeviceBuffer(const Driver& driver, size_t bytes)
    : driver_(driver), bytes_(bytes), behind_(guard_behind(driver, bytes, kGuard)) {
  const size_t total = kGuard + bytes + behind_;
  driver.check(driver.cuMemAlloc(&base_, total),
               ("cuMemAlloc of " + std::to_string(total) + " bytes").c_str());
  driver.check(driver.cuMemsetD8(base_, 0xFF, total), "cuMemsetD8");
}

DeviceBuffer::DeviceBuffer(const Driver& driver, const std::vector<uint8_t>& content)
    : DeviceBuffer(driver, content.size()) {
  upload(content);
}

DeviceBuffer::DeviceBuffer(const Driver& driver, const DeviceBuffer& content)
    : DeviceBuffer(driver, content.bytes()) {
  if (!bytes_) return;
  driver.check(driver.cuMemcpyDtoD(address(), content.address(), bytes_), "cuMemcpyDtoD");
  driver.check(driver.cuCtxSynchronize(), "cuCtxSynchronize");
}

DeviceBuffer::~DeviceBuffer() { driver_.cuMemFree(base_); }

void DeviceBuffer::upload(const std::vector<uint8_t>& content) {
  if (content.size() != bytes_) throw std::logic_error("upload of another size than the buffer's");
  if (!bytes_) return;
  driver_.check(driver_.cuMemcpyHtoD(address(), content.data(), bytes_), "cuMemcpyHtoD");
  // Few bytes are only staged when the copy returns, and streams of the tests' own wait for no
  // other.
  driver_.check(driver_.cuCtxSynchronize(), "cuCtxSynchronize");
}

std::vector<uint8_t> DeviceBuffer::download() const {
  std::vector<uint8_t> content(bytes_);
  if (bytes_)
    driver_.check(driver_.cuMemcpyDtoH(content.data(), address(), bytes_), "cuMemcpyDtoH");
  return content;
}

bool DeviceBuffer::guards_intact() const {
  const auto intact = [&](CUdeviceptr at, size_t bytes) {
    std::vector<uint8_t> guard(bytes);
    driver_.check(driver_.cuMemcpyDtoH(guard.data(), at, bytes), "cuMemcpyDtoH");
    return std::all_of(guard.begin(), guard.end(), [](uint8_t b) { return b == 0xFF; });
  };
  return intact(base_, kGuard) && (behind_ == 0 || intact(address() + bytes_, behind_));
}

}  // namespace support
