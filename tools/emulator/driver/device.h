// SPDX-License-Identifier: MIT
// The emulated device's identity: a row of devices.def and what it says of itself.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <cstdint>
#include <string>

namespace emu::driver {

struct DeviceRow {
  const char* key;  // EMU_DEVICE
  const char* product;
  int capability;  // 100 = 10.0
  int sms;
  uint64_t memory_mib;
  int l2_kib, clock_mhz, memory_clock_mhz, bus_bits;
  int shared_per_sm_kib, shared_per_block_kib;
  int threads_per_sm, blocks_per_sm;

  int major() const { return capability / 10; }
  int minor() const { return capability % 10; }
  uint64_t memory_bytes() const { return memory_mib << 20; }
  int shared_optin() const { return shared_per_block_kib << 10; }
  bool clusters() const { return capability >= 90; }
  bool integrated() const { return capability == 110 || capability == 121; }
  // From the table of throughputs in the programming guide. Assumed: 11.0 is as 12.x, and 10.7 as
  // 10.0.
  int floats_per_double() const;
  std::string name() const { return std::string(product) + " (emulated)"; }
};

constexpr int shared_default = 48 << 10;  // dynamic + static without the opt-in attribute
constexpr int threads_per_block = 1024;

const DeviceRow* find_device(const std::string& key);  // nullptr: no such row
std::string device_keys();                             // "B200, B300, ..." for a message

// cuDeviceGetAttribute. False: no such attribute in CUDA 13.0.
bool device_attribute(const DeviceRow& device, CUdevice_attribute attribute, int* value);

CUuuid device_uuid(const DeviceRow& device);

}  // namespace emu::driver
