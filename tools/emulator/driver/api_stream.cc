// SPDX-License-Identifier: MIT
// Streams. Work in them has ended before the enqueueing call returns (state.h), so there is nothing
// to wait for; what remains is which handles and flags are right.
#include <algorithm>

#include "tools/emulator/driver/call.h"

using namespace emu::driver;

namespace {

CUresult create(Entry entry, CUstream* stream, unsigned flags, int priority) {
  return in_context(entry, [&](State& s, Context& context) {
    if (!stream || flags & ~unsigned(CU_STREAM_NON_BLOCKING)) return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<Stream>();
    made->context = context.handle;
    made->flags = flags;
    made->priority = std::clamp(priority, greatest_priority, least_priority);
    *stream = s.streams.insert(std::move(made));
    return CUDA_SUCCESS;
  });
}

// A call about one stream, built-in ones included.
template <class Body>
CUresult on_stream(Entry entry, CUstream stream, Body&& body) {
  return in_context(entry, [&](State& s, Context& context) {
    if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
    Stream built_in;
    built_in.context = context.handle;
    Stream* created = s.streams.find(stream);
    return body(s, created ? *created : built_in);
  });
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return create(Entry::cuStreamCreate, stream, flags, 0);
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return create(Entry::cuStreamCreateWithPriority, stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return initialised(Entry::cuStreamDestroy_v2, [&](State& s) {
    if (!s.streams.find(stream)) return CUDA_ERROR_INVALID_HANDLE;  // before the context (measured)
    Context* context = nullptr;
    if (CUresult r = s.current(&context)) return r;
    s.forget_stream(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  std::lock_guard running(state().execution);
  return on_stream(Entry::cuStreamSynchronize, stream,
                   [&](State& s, Stream&) { return check_not_capturing(s, stream); });
}

CUresult cuStreamQuery(CUstream stream) {
  return on_stream(Entry::cuStreamQuery, stream,
                   [&](State& s, Stream&) { return check_not_capturing(s, stream); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return in_context(Entry::cuStreamWaitEvent, [&](State& s, Context& context) {
    const Event* waited = s.events.find(event);
    if (!s.holds(stream) || !waited) return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~unsigned(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
    return capture_wait(s, context, stream, *waited).value_or(CUDA_SUCCESS);
  });
}

namespace {

// What the host is to do after the stream's work, which is over. No lock is held meanwhile.
template <class Call>
CUresult call_host(Entry entry, CUstream stream, bool arguments_fit, Call&& call) {
  std::unique_lock running(state().execution);
  const CUresult r = on_stream(entry, stream, [&](State& s, Stream&) {
    return arguments_fit ? check_not_capturing(s, stream) : CUDA_ERROR_INVALID_VALUE;
  });
  running.unlock();
  if (r == CUDA_SUCCESS) call();
  return r;
}

}  // namespace

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned int flags) {
  return call_host(Entry::cuStreamAddCallback, stream, callback && !flags,
                   [&] { callback(stream, CUDA_SUCCESS, data); });
}

// Refused in a capture, where a real driver adds a host node to the graph.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return call_host(Entry::cuLaunchHostFunc, stream, function != nullptr, [&] { function(data); });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return on_stream(Entry::cuStreamGetCtx, stream, [&](State&, Stream& of) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = of.context;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  return on_stream(Entry::cuStreamGetFlags, stream, [&](State&, Stream& of) {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = of.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return on_stream(Entry::cuStreamGetPriority, stream, [&](State&, Stream& of) {
    if (!priority) return CUDA_ERROR_INVALID_VALUE;
    *priority = of.priority;
    return CUDA_SUCCESS;
  });
}
