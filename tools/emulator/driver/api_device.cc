// SPDX-License-Identifier: MIT
// Devices: there is one, ordinal 0.
#include <algorithm>
#include <cstring>

#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/device.h"

using namespace emu::driver;

namespace {

template <class Body>
CUresult on_ordinal(Entry entry, CUdevice device, Body&& body) {
  return initialised(entry, [&](State& s) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    return body(*s.device);
  });
}

}  // namespace

CUresult cuDeviceGetCount(int* count) {
  return initialised(Entry::cuDeviceGetCount, [&](State&) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return initialised(Entry::cuDeviceGet, [&](State&) {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    if (ordinal != 0) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return on_ordinal(Entry::cuDeviceGetName, device, [&](const DeviceRow& d) {
    if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::string full = d.name();
    size_t n = std::min(full.size(), size_t(length) - 1);
    memcpy(name, full.data(), n);
    name[n] = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return on_ordinal(Entry::cuDeviceGetAttribute, device, [&](const DeviceRow& d) {
    if (!value || !device_attribute(d, attribute, value)) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return on_ordinal(Entry::cuDeviceTotalMem_v2, device, [&](const DeviceRow& d) {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = d.memory_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return on_ordinal(Entry::cuDeviceComputeCapability, device, [&](const DeviceRow& d) {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = d.major();
    *minor = d.minor();
    return CUDA_SUCCESS;
  });
}

namespace {

CUresult get_uuid(Entry entry, CUuuid* uuid, CUdevice device) {
  return on_ordinal(entry, device, [&](const DeviceRow& d) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device_uuid(d);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return get_uuid(Entry::cuDeviceGetUuid, uuid, device);
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return get_uuid(Entry::cuDeviceGetUuid_v2, uuid, device);
}
