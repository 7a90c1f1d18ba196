// SPDX-License-Identifier: MIT
// A PTX file loaded into the current context, for tests that launch kernels of their own.
#pragma once

#include <string>
#include <utility>

#include "tools/harness/driver.h"

namespace support {

// A variable of a module, on the device; of 0 bytes if the module has none of that name.
struct Global {
  CUdeviceptr address = 0;
  size_t bytes = 0;
};
Global global_of(const Driver& driver, CUmodule module, const char* name);

class Module {
 public:
  // Throws DriverError with what the driver's compiler says of the text.
  Module(const Driver& driver, const std::string& path);
  static Module from_text(const Driver& driver, const std::string& text);
  ~Module();
  Module(Module&& other) noexcept
      : driver_(other.driver_), module_(std::exchange(other.module_, nullptr)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  CUfunction function(const char* entry) const;
  Global global(const char* name) const { return global_of(driver_, module_, name); }

  // Launches grid.x CTAs of block.x threads and waits for them.
  void launch(const char* entry, uint32_t grid, uint32_t block, uint32_t dynamic_shared_bytes,
              void** arguments) const;

 private:
  explicit Module(const Driver& driver) : driver_(driver) {}
  void load(const std::string& text);
  const Driver& driver_;
  CUmodule module_ = nullptr;
};

}  // namespace support
