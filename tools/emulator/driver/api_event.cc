// SPDX-License-Identifier: MIT
// Events: complete as soon as recorded (state.h). Times between them are this host's, not a GPU's.
#include "tools/emulator/driver/call.h"

#include <mutex>

#include "tools/emulator/base/tell.h"

using namespace emu::driver;
using emu::tell;

namespace {

template <class Body>
CUresult on_event(Entry entry, CUevent handle, Body&& body) {
  return in_context(entry, [&](State& s, Context&) {
    Event* event = s.events.find(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    return body(s, *event);
  });
}

// A record that was captured has not been executed. Waiting for it on the host invalidates the
// capture.
CUresult check_recorded(Event& event) {
  if (!event.point.capture) return CUDA_SUCCESS;
  event.point.capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void say_whose_time() {
  static std::once_flag said;
  std::call_once(said, [] {
    tell("cuEventElapsedTime answers how long the emulation took, which says nothing of a GPU");
  });
}

CUresult elapsed(Entry entry, float* milliseconds, CUevent start, CUevent end) {
  return on_event(entry, start, [&](State& s, Event& from) {
    Event* to = s.events.find(end);
    if (!to) return CUDA_ERROR_INVALID_HANDLE;
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (from.point.capture || to->point.capture) return CUDA_ERROR_CAPTURED_EVENT;
    bool timed = !((from.flags | to->flags) & CU_EVENT_DISABLE_TIMING);
    if (!timed || !from.recorded || !to->recorded) return CUDA_ERROR_INVALID_HANDLE;
    say_whose_time();
    *milliseconds =
        std::chrono::duration<float, std::milli>(*to->recorded - *from.recorded).count();
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return in_context(Entry::cuEventCreate, [&](State& s, Context& context) {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (!event || flags & ~known) return CUDA_ERROR_INVALID_VALUE;  // no inter-process events
    auto made = std::make_unique<Event>();
    made->context = context.handle;
    made->flags = flags;
    *event = s.events.insert(std::move(made));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return on_device(Entry::cuEventRecord, [&](State& s, Context& context) {
    Event* found = s.events.find(event);
    if (!found || !s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
    Event& e = *found;
    if (auto answer = capture_record(s, context, stream, e)) return *answer;
    e.recorded = std::chrono::steady_clock::now();
    return CUDA_SUCCESS;
  });
}

// An event that was never recorded counts as complete.
CUresult cuEventQuery(CUevent event) {
  return on_event(Entry::cuEventQuery, event, [](State&, Event& e) { return check_recorded(e); });
}
CUresult cuEventSynchronize(CUevent event) {
  return on_event(Entry::cuEventSynchronize, event,
                  [](State&, Event& e) { return check_recorded(e); });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(Entry::cuEventElapsedTime, milliseconds, start, end);
}
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(Entry::cuEventElapsedTime_v2, milliseconds, start, end);
}

CUresult cuEventDestroy_v2(CUevent event) {
  return on_event(Entry::cuEventDestroy_v2, event, [&](State& s, Event&) {
    s.events.erase(event);
    return CUDA_SUCCESS;
  });
}
