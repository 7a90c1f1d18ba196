// SPDX-License-Identifier: MIT
// What a probe needs of a CUDA driver: a GPU's or the emulator, whichever the loader finds.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tools/testing/catch.h"
#include "tools/testing/left_out.h"

namespace h200 {

struct DriverError : std::runtime_error {
  CUresult result;
  DriverError(const std::string& text, CUresult r) : std::runtime_error(text), result(r) {}
};

// The entry point of that exported name; throws DriverError where there is none, or no driver.
void* entry(const char* name);
// Throws DriverError, which names the call, unless the result is CUDA_SUCCESS.
void check(CUresult result, const char* call);

// H200_CALL(cuMemAlloc, &address, bytes): the version of the call that cuda.h means, checked.
#define H200_STRING(x) #x
#define H200_NAME(x) H200_STRING(x)
#define H200_ENTRY(call) reinterpret_cast<decltype(&::call)>(::h200::entry(H200_NAME(call)))
#define H200_CALL(call, ...) ::h200::check(H200_ENTRY(call)(__VA_ARGS__), #call)

// A file of the build, by its path from this program's folder. So a build can be moved.
std::string beside_this_program(const std::string& path);

// The first device's primary context, current while this lives.
class Device {
 public:
  Device();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  std::string name;
  int capability = 0;  // 90 = 9.0
  bool emulated() const { return name.find("(emulated)") != std::string::npos; }
  bool hopper() const { return capability == 90; }

 private:
  CUdevice device_ = 0;
};

// Device memory between guards; it and they start as 0xFF.
class Buffer {
 public:
  static constexpr size_t guard = 64 * 1024;

  explicit Buffer(size_t bytes);
  template <class T>
  explicit Buffer(const std::vector<T>& content) : Buffer(content.size() * sizeof(T)) {
    upload(content.data());
  }
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr address() const { return base_ + guard; }
  bool guards_intact() const;
  // Its content as numbers of type T.
  template <class T>
  std::vector<T> download() const {
    std::vector<T> content(bytes_ / sizeof(T));
    download(content.data());
    return content;
  }

 private:
  void upload(const void* from);
  void download(void* to) const;
  CUdeviceptr base_ = 0;
  size_t bytes_ = 0;
};

// PTX loaded into the current context.
class Module {
 public:
  // Throws DriverError with what the driver's compiler says of the text.
  explicit Module(const std::string& text);
  static Module from_build(const std::string& path);
  ~Module();
  Module(Module&& other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Launches `grid` CTAs of `block` threads and waits for them.
  void launch(const char* function, uint32_t grid, uint32_t block, uint32_t dynamic_shared_bytes,
              void** arguments) const;

 private:
  CUmodule module_ = nullptr;
};

}  // namespace h200

// Leaves the test case out if the device does not have Hopper's instructions.
#define USE_HOPPER(device)   \
  const h200::Device device; \
  if (!(device).hopper()) {  \
    support::leave_out();    \
    return;                  \
  }
