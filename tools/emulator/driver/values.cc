// SPDX-License-Identifier: MIT
// See values.h.
#include "tools/emulator/driver/values.h"

#include <cstring>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/machine/report.h"

namespace emu::driver {

namespace {

// 0: nothing is wrong, or it was told and the copy goes on.
CUresult reach_host(State& s, CUdeviceptr from, size_t bytes) {
  if (settings().hazards == Reaction::ignore) return CUDA_SUCCESS;
  try {
    s.memory->require_values(from, bytes, "a copy to the host");
    return CUDA_SUCCESS;
  } catch (const Fault& fault) {
    tell(fault.text, {name_of(Severity::error), report::rule(fault.kind)});
  }
  if (settings().hazards == Reaction::report) return CUDA_SUCCESS;
  Context* context = nullptr;
  if (s.current(&context) == CUDA_SUCCESS) context->sticky = CUDA_ERROR_LAUNCH_FAILED;
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace

CUresult copy_values(State& s, const End& to, const End& from, size_t bytes) {
  BlankBytes& blank = s.memory->blank();
  std::vector<BlankBytes::Range> none;
  if (from.device && to.device) none = blank.within(from.device, bytes);
  if (from.device && !to.device)
    if (CUresult r = reach_host(s, from.device, bytes)) return r;
  memmove(to.bytes, from.bytes, bytes);
  if (!to.device) return CUDA_SUCCESS;
  blank.remove(to.device, bytes);
  for (const BlankBytes::Range& r : none)
    blank.add({to.device + (r.address - from.device), r.bytes, r.why});
  return CUDA_SUCCESS;
}

}  // namespace emu::driver
