// SPDX-License-Identifier: MIT
// One product per variant that serves the device, compared bit for bit with the reference.
#pragma once

#include "host/run/device.h"

namespace nvfp4 {

// Bytes of device memory that the self test of that capability needs; 0 if no kernel serves it.
uint64_t selftest_bytes(int32_t capability);

// Waits for the stream. All arguments have been checked except for what depends on the device.
nvfp4_status run_selftest(void* workspace, uint64_t workspace_bytes, void* stream);

}  // namespace nvfp4
