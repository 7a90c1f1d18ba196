// SPDX-License-Identifier: MIT
// Copies and fills, as work of a stream.
#pragma once

#include "tools/emulator/driver/call.h"

namespace emu::driver {

// Now, or as a node of the graph that the stream is captured into: then a bad address is only found
// when the graph runs, and is the context's sticky error. `stream` is nullptr for the synchronous
// forms.
template <class Body>
CUresult in_stream(Entry entry, CUstream stream, CUgraphNodeType type, Body body) {
  return on_device(entry, [&](State& s, Context& context) {
    if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
    auto node = [body, handle = context.handle](State& later, const auto&) -> Accessed {
      std::lock_guard guard(later.lock);
      Context* owner = later.contexts.find(handle);
      if (!owner || owner->destroyed || owner->sticky) return {};
      if (CUresult r = contained([&] { return body(later); }))
        owner->sticky = is_asynchronous(r) ? r : CUDA_ERROR_ILLEGAL_ADDRESS;
      return {};
    };
    if (auto noted = capture_work(s, context, stream, type, node)) return *noted;
    return body(s);
  });
}

}  // namespace emu::driver
