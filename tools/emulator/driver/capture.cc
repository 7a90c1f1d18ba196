// SPDX-License-Identifier: MIT
#include <algorithm>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/driver/state.h"

namespace emu::driver {

CUstreamCaptureMode& thread_capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

namespace {

CUresult invalidate(Capture& capture, CUresult why) {
  capture.invalid = true;
  return why;
}

bool is_legacy(CUstream stream) { return !stream || stream == CU_STREAM_LEGACY; }

// Whether the capture forbids unsafe calls to the calling thread, given the thread's mode. GLOBAL:
// the thread's own captures do, and those of others that were begun as GLOBAL. THREAD_LOCAL: only
// the thread's own do. A capture begun as RELAXED forbids nothing.
bool forbids(const Capture& capture) {
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  if (capture.thread == std::this_thread::get_id()) return true;
  return thread_capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL &&
         capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

// The legacy stream waits for every blocking stream of its context and holds it up: neither can be
// put into a graph.
CUresult check_legacy(State& s, const Context& context) {
  CUresult answer = CUDA_SUCCESS;
  for (const auto& [handle, stream] : s.streams) {
    const bool waits = !(stream->flags & CU_STREAM_NON_BLOCKING);
    if (stream->context != context.handle || !waits || !stream->point.active()) continue;
    answer = invalidate(*stream->point.capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  }
  return answer;
}

void add(std::vector<size_t>& to, const std::vector<size_t>& more) {
  for (size_t place : more)
    if (std::find(to.begin(), to.end(), place) == to.end()) to.push_back(place);
}

}  // namespace

CUresult check_unsafe(State& s) {
  if (thread_capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult answer = CUDA_SUCCESS;
  for (const auto& capture : s.captures)
    if (forbids(*capture)) answer = invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return answer;
}

CUresult check_not_capturing(State& s, CUstream stream) {
  Stream* created = s.streams.find(stream);
  if (!created || !created->point.active()) return CUDA_SUCCESS;
  return invalidate(*created->point.capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

std::optional<CUresult> capture_work(State& s, const Context& context, CUstream stream,
                                     CUgraphNodeType type, Work work, bool programmatic) {
  if (is_legacy(stream)) {
    const CUresult r = check_legacy(s, context);
    return r ? std::optional(r) : std::nullopt;
  }
  Stream* created = s.streams.find(stream);
  if (!created || !created->point.active()) return std::nullopt;
  CapturePoint& point = created->point;
  if (point.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode node;
  node.handle = reinterpret_cast<CUgraphNode>(next_handle());
  node.type = type;
  node.context = context.handle;
  node.work = std::move(work);
  std::vector<GraphNode>& nodes = point.capture->graph.nodes;
  for (size_t from : point.last) {
    // Only a kernel can let its successor start before it has ended.
    const bool early = programmatic && nodes[from].type == CU_GRAPH_NODE_TYPE_KERNEL;
    node.after.push_back({from, early});
  }
  nodes.push_back(std::move(node));
  point.last = {nodes.size() - 1};
  return CUDA_SUCCESS;
}

CUresult begin_capture(State& s, CUstream stream, CUstreamCaptureMode mode) {
  if (unsigned(mode) > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (is_legacy(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Stream* created = s.streams.find(stream);
  if (!created) return CUDA_ERROR_NOT_SUPPORTED;  // the per-thread default stream
  if (created->point.active()) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = ++s.captures_begun;
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  s.captures.push_back(capture);
  created->point = {std::move(capture), {}};
  return CUDA_SUCCESS;
}

namespace {

// Every node is the origin's last one, or before one that is.
bool joined(const Graph& graph, const std::vector<size_t>& last) {
  std::vector<bool> seen(graph.nodes.size());
  for (size_t place : last) seen[place] = true;
  for (size_t place = graph.nodes.size(); place-- > 0;) {
    if (!seen[place]) return false;
    for (const GraphEdge& edge : graph.nodes[place].after) seen[edge.from] = true;
  }
  return true;
}

}  // namespace

CUresult end_capture(State& s, CUstream stream, CUgraph* graph) {
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  Stream* created = s.streams.find(stream);
  if (!created || !created->point.active()) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture = created->point.capture;
  if (capture->origin != stream) return invalidate(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const bool whole = joined(capture->graph, created->point.last);
  capture->ended = true;
  std::erase(s.captures, capture);
  for (const auto& [handle, other] : s.streams)
    if (other->point.capture == capture) other->point = {};
  *graph = nullptr;
  if (capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *graph = s.graphs.insert(std::make_unique<Graph>(std::move(capture->graph)));
  return CUDA_SUCCESS;
}

// The event marks a place in the capture and is no node.
std::optional<CUresult> capture_record(State& s, const Context& context, CUstream stream,
                                       Event& event) {
  Stream* created = s.streams.find(stream);
  if (created && created->point.active()) {
    if (created->point.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event.point = created->point;
    return CUDA_SUCCESS;
  }
  if (is_legacy(stream))
    if (CUresult r = check_legacy(s, context)) return r;
  event.point = {};
  return std::nullopt;
}

std::optional<CUresult> capture_wait(State& s, const Context& context, CUstream stream,
                                     const Event& event) {
  Stream* created = s.streams.find(stream);
  const bool capturing = created && created->point.active();
  if (!capturing && !event.point.capture) {
    if (!is_legacy(stream)) return std::nullopt;
    const CUresult r = check_legacy(s, context);
    return r ? std::optional(r) : std::nullopt;
  }
  if (capturing && created->point.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!event.point.active()) {
    // The event belongs to a capture that has ended, or to none.
    if (!capturing) return CUDA_ERROR_CAPTURED_EVENT;
    return invalidate(*created->point.capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  Capture& other = *event.point.capture;
  if (!created) return invalidate(other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (other.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!capturing) {
    created->point = event.point;  // a fork: this stream joins the capture
    return CUDA_SUCCESS;
  }
  if (created->point.capture != event.point.capture)
    return invalidate(other, invalidate(*created->point.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE));
  add(created->point.last, event.point.last);
  return CUDA_SUCCESS;
}

namespace {

// Which of `ready` nodes, in the order of their capture, runs next.
size_t choose(size_t ready, uint64_t& random) {
  switch (settings().order) {
    case Order::soonest: return 0;
    case Order::latest: return ready - 1;
    case Order::random: break;
  }
  random = random * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX
  return (random >> 33) % ready;
}

// The accesses of the kernels that have run. They are kept while a node is left that may begin
// before such a kernel has ended.
class Unfinished {
 public:
  explicit Unfinished(const Graph& graph) : of_(graph.nodes.size()), waiting_(graph.nodes.size()) {
    for (const GraphNode& node : graph.nodes)
      for (const GraphEdge& edge : node.after) waiting_[edge.from] += edge.programmatic;
  }
  std::vector<Accessed> beside(const GraphNode& node) {
    std::vector<Accessed> grids;
    for (const GraphEdge& edge : node.after) {
      if (!edge.programmatic) continue;
      grids.push_back(of_[edge.from]);
      if (--waiting_[edge.from] == 0) of_[edge.from].clear();
    }
    return grids;
  }
  void add(size_t place, Accessed accessed) {
    if (waiting_[place]) of_[place] = std::move(accessed);
  }

 private:
  std::vector<Accessed> of_;
  std::vector<size_t> waiting_;
};

}  // namespace

void run_graph(State& s, const Graph& graph) {
  Unfinished unfinished(graph);
  std::vector<bool> done(graph.nodes.size());
  uint64_t random = settings().seed + s.grids;
  for (size_t left = graph.nodes.size(); left > 0; --left) {
    std::vector<size_t> ready;
    for (size_t place = 0; place < graph.nodes.size(); ++place) {
      const auto& after = graph.nodes[place].after;
      const bool free =
          std::all_of(after.begin(), after.end(), [&](const GraphEdge& e) { return done[e.from]; });
      if (free && !done[place]) ready.push_back(place);
    }
    const size_t next = ready[choose(ready.size(), random)];
    done[next] = true;
    unfinished.add(next, graph.nodes[next].work(s, unfinished.beside(graph.nodes[next])));
  }
}

}  // namespace emu::driver
