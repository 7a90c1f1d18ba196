// SPDX-License-Identifier: MIT
// The emulated device's identity.
#include "tools/emulator/driver/device.h"

#include <algorithm>
#include <cstring>

namespace emu::driver {
namespace {

const DeviceRow devices[] = {
#define EMU_DEVICE(key, ...) {#key, __VA_ARGS__},
#include "tools/emulator/driver/devices.def"
#undef EMU_DEVICE
};

// The last attribute of CUDA 13.0; cuda.h has a MAX enumerator after it.
constexpr int attribute_end = CU_DEVICE_ATTRIBUTE_MAX;

}  // namespace

int DeviceRow::floats_per_double() const {
  switch (capability) {
    case 80:
    case 90:
    case 100:
    case 107: return 2;
    case 75: return 32;
    default: return 64;
  }
}

const DeviceRow* find_device(const std::string& key) {
  for (const DeviceRow& d : devices)
    if (key == d.key) return &d;
  return nullptr;
}

std::string device_keys() {
  std::string keys;
  for (const DeviceRow& d : devices) keys += std::string(keys.empty() ? "" : ", ") + d.key;
  return keys;
}

bool device_attribute(const DeviceRow& d, CUdevice_attribute attribute, int* value) {
  if (attribute < 1 || attribute >= attribute_end) return false;
  switch (attribute) {
#define EMU_ATTRIBUTE(name, answer) \
  case CU_DEVICE_ATTRIBUTE_##name:  \
    *value = (answer);              \
    return true;
#include "tools/emulator/driver/attributes.def"
#undef EMU_ATTRIBUTE
    default: *value = 0; return true;
  }
}

CUuuid device_uuid(const DeviceRow& device) {
  CUuuid uuid = {};
  memcpy(uuid.bytes, "nvfp4emu", 8);  // the same in every process, as a device's is
  memcpy(uuid.bytes + 8, device.key, std::min<size_t>(strlen(device.key), 8));
  return uuid;
}

}  // namespace emu::driver
