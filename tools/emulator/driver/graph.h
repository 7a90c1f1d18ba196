// SPDX-License-Identifier: MIT
// Graphs, and the capture of streams that makes them.
//
// Which call answers what is from the CUDA driver API manual (stream management, graph management)
// and was compared with no device. Where the manual only says "potentially unsafe call", capture.cc
// has the list, the pessimistic reading.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace emu {
class GlobalOrder;
}

namespace emu::driver {

struct State;
struct Context;
struct Stream;
struct Event;

// What a grid has accessed and those before it that may still run with it when its dependents
// begin.
using Accessed = std::vector<std::shared_ptr<GlobalOrder>>;

// What a node does when a graph runs, `beside` kernels that may not be over. Answers with what its
// own kernel accessed. Takes State::lock itself; State::execution is held.
using Work = std::function<Accessed(State&, const std::vector<Accessed>& beside)>;

struct GraphEdge {
  size_t from;        // a node's place in Graph::nodes
  bool programmatic;  // after griddepcontrol.launch_dependents at the earliest, not after the end
};

struct GraphNode {
  CUgraphNode handle = nullptr;
  CUgraphNodeType type{};
  CUcontext context = nullptr;
  std::vector<GraphEdge> after;
  Work work;
};

// Nodes in the order in which they were enqueued, so edges lead from lower places to higher ones.
struct Graph {
  std::vector<GraphNode> nodes;
};

// One capture, from cuStreamBeginCapture to cuStreamEndCapture.
struct Capture {
  cuuint64_t id = 0;
  CUstreamCaptureMode mode{};
  CUstream origin = nullptr;
  std::thread::id thread;
  Graph graph;
  bool invalid = false, ended = false;
};

// Where a stream or an event stands in a capture: the nodes that come last.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last;

  bool active() const { return capture && !capture->ended; }
};

// The calling thread's mode: cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& thread_capture_mode();

// 900, and the captures that forbid it invalidated, if the calling thread may not make calls that a
// capture calls unsafe.
CUresult check_unsafe(State& s);

// Work for a stream. Nothing: the stream is not being captured, do it now. Else the answer: the
// work has become a node, or was refused.
std::optional<CUresult> capture_work(State& s, const Context& context, CUstream stream,
                                     CUgraphNodeType type, Work work, bool programmatic = false);

// A call that looks at work which has not run: 900 for a capturing stream, which ends its capture.
CUresult check_not_capturing(State& s, CUstream stream);

CUresult begin_capture(State& s, CUstream stream, CUstreamCaptureMode mode);
CUresult end_capture(State& s, CUstream stream, CUgraph* graph);
// Nothing: neither side is captured.
std::optional<CUresult> capture_record(State& s, const Context& context, CUstream stream,
                                       Event& event);
std::optional<CUresult> capture_wait(State& s, const Context& context, CUstream stream,
                                     const Event& event);

// Runs the nodes, each after those that it depends on, otherwise in an order that EMU_ORDER and
// EMU_SEED choose. State::execution is held, State::lock is not.
void run_graph(State& s, const Graph& graph);

}  // namespace emu::driver
