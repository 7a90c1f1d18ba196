// SPDX-License-Identifier: MIT
// The CUDA driver, opened by soname as the library opens it, and device buffers between guards.
// Whether the driver is NVIDIA's or the emulator is decided by the loader's search path alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/cuda/driver.h"

namespace support {

struct DriverError : std::runtime_error {
  CUresult result;
  DriverError(const std::string& text, CUresult r) : std::runtime_error(text), result(r) {}
};

struct Driver {
#define ENTRY(name, version) decltype(&::name) name = nullptr;
#include "tools/harness/driver.def"
#undef ENTRY

  // The process's driver, initialised; throws DriverError with a sentence where there is none.
  static const Driver& get();

  // Throws DriverError naming `what` unless the result is CUDA_SUCCESS.
  void check(CUresult result, const char* what) const;

  // An emulator's own entry point, nullptr on a real driver.
  void* extension(const char* name) const;

 private:
  Driver();
  void* library_ = nullptr;
};

struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0, sms = 0;
  size_t memory = 0;

  int compute_capability() const { return 10 * major + minor; }
  bool emulated() const { return name.find("(emulated)") != std::string::npos; }
};

std::vector<DeviceInfo> devices(const Driver& driver);

// The primary context of one device, current on the constructing thread while this lives.
class Context {
 public:
  explicit Context(const Driver& driver, int device = 0);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
};

// Device memory with 64 KiB of 0xFF on both sides. 0xFF is NaN as fp32, fp16, bf16 and e4m3, so a
// read that strays shows in the result, and a write that strays shows in guards_intact(). The guard
// after starts at the very next byte. In the emulator and under compute-sanitizer there is none:
// memory ends with the buffer, and any access beyond it is found. The buffer itself starts as 0xFF
// as well.
class DeviceBuffer {
 public:
  static constexpr size_t kGuard = 64 * 1024;

  DeviceBuffer(const Driver& driver, size_t bytes);
  DeviceBuffer(const Driver& driver, const std::vector<uint8_t>& content);
  DeviceBuffer(const Driver& driver, const DeviceBuffer& content);  // copied on the device
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  CUdeviceptr address() const { return base_ + kGuard; }
  void* pointer() const { return reinterpret_cast<void*>(address()); }
  size_t bytes() const { return bytes_; }

  void upload(const std::vector<uint8_t>& content);
  std::vector<uint8_t> download() const;
  bool guards_intact() const;

 private:
  const Driver& driver_;
  CUdeviceptr base_ = 0;
  size_t bytes_ = 0, behind_ = 0;  // bytes of the guard behind
};

}  // namespace support
