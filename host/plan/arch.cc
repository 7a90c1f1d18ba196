// SPDX-License-Identifier: MIT
#include "host/plan/arch.h"

#include <cinttypes>
#include <cstdio>

namespace nvfp4 {

namespace {

nvfp4_status refuse_capability(int32_t capability) {
  char served[64] = "";
  size_t length = 0;
  for (uint32_t i = 0; i < kArchitectureCount; ++i) {
    if (!is_first_row(i)) continue;
    length += static_cast<size_t>(snprintf(served + length, sizeof served - length, " %s",
                                           capability_text(kArchitectures[i].capability).text));
  }
  return fail(NVFP4_STATUS_UNSUPPORTED_ARCH,
              "compute capability %s has no kernel here; served are:%s",
              capability_text(capability).text, served);
}

}  // namespace

CapabilityText capability_text(int32_t capability) {
  CapabilityText number;
  if (capability < 0) {
    snprintf(number.text, sizeof number.text, "%" PRId32, capability);
  } else {
    snprintf(number.text, sizeof number.text, "%" PRId32 ".%" PRId32, capability / 10,
             capability % 10);
  }
  return number;
}

nvfp4_status find_architecture(int32_t capability, uint32_t* index) {
  for (*index = 0; *index < kArchitectureCount; ++*index) {
    if (kArchitectures[*index].capability == capability) return NVFP4_SUCCESS;
  }
  return refuse_capability(capability);
}

}  // namespace nvfp4
