// SPDX-License-Identifier: MIT
// Stream capture. Refused in words: the per-thread default stream, updates of a capture's
// dependencies.
#include "tools/emulator/driver/call.h"

using namespace emu::driver;

namespace {

template <class Body>
CUresult on_stream(Entry entry, CUstream stream, Body&& body) {
  return in_context(entry, [&](State& s, Context&) {
    return s.holds(stream) ? body(s) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUstreamCaptureStatus status_of(const Stream* stream) {
  if (!stream || !stream->point.active()) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->point.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                        : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

// A graph that is being captured has no handle here, and its last nodes cannot be asked for.
CUresult get_info(Entry entry, CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                  bool wants_more) {
  return on_stream(entry, stream, [&](State& s) {
    if (!status) return CUDA_ERROR_INVALID_VALUE;
    const Stream* created = s.streams.find(stream);
    *status = status_of(created);
    if (id && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) *id = created->point.capture->id;
    return wants_more ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return on_stream(Entry::cuStreamBeginCapture_v2, stream,
                   [&](State& s) { return begin_capture(s, stream, mode); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return on_stream(Entry::cuStreamEndCapture, stream,
                   [&](State& s) { return end_capture(s, stream, graph); });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return get_info(Entry::cuStreamIsCapturing, stream, status, nullptr, false);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes, size_t* count) {
  return get_info(Entry::cuStreamGetCaptureInfo_v2, stream, status, id, graph || nodes || count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** nodes,
                                   const CUgraphEdgeData** edges, size_t* count) {
  return get_info(Entry::cuStreamGetCaptureInfo_v3, stream, status, id,
                  graph || nodes || edges || count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return initialised(Entry::cuThreadExchangeStreamCaptureMode, [&](State&) {
    if (!mode || unsigned(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, thread_capture_mode());
    return CUDA_SUCCESS;
  });
}
