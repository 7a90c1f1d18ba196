// SPDX-License-Identifier: MIT
// Memory that a command will need, checked before any is touched.
#pragma once

#include <string>

#include "tools/harness/driver.h"
#include "tools/harness/problem.h"

namespace nvfp4_tool {

std::string to_bytes(double bytes);  // "16.0 GiB"

// Buffers of a problem on the device: codes, scales and D with the gaps between them.
double device_bytes(const support::Shape& shape, const support::Gaps& gaps);

// Throws std::runtime_error with a message and the bytes if a run of the problem does not fit the
// device's memory or this machine's, in which an emulated device lives too.
void require_memory(const support::Shape& shape, const support::Gaps& gaps,
                    const support::DeviceInfo& device);
// The same for a command that computes only on this machine.
void require_memory(const std::string& what, double bytes);

}  // namespace nvfp4_tool
