// SPDX-License-Identifier: MIT
// Graphs, and the capture of streams that makes them.
//
// Which call answers what is from the CUDA driver API manual (stream management, graph management)
// and was compared with no device. The manual does not say which calls are "potentially unsafe";
// unsafe.def lists every call that may be.
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

// The accesses of a grid, and those of earlier grids that may still run when the grids that depend
// on it begin.
using Accessed = std::vector<std::shared_ptr<GlobalOrder>>;

// What a node does when a graph runs. `beside` has the accesses of kernels that may not have ended.
// Returns the accesses of its own kernel. Takes State::lock itself; State::execution is held.
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

// The place of a stream or an event in a capture: the nodes on which its next work depends.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last;

  bool active() const { return capture && !capture->ended; }
};

// The calling thread's mode: cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& thread_capture_mode();

// For calls of unsafe.def: if a capture forbids them to the calling thread, invalidates that
// capture and returns 900. Otherwise returns 0.
CUresult check_unsafe(State& s);

// Adds work to the capture of a stream. Returns nullopt if the stream is not being captured: the
// caller does the work now. Otherwise returns the status of the call: the work has become a node,
// or was refused.
std::optional<CUresult> capture_work(State& s, const Context& context, CUstream stream,
                                     CUgraphNodeType type, Work work, bool programmatic = false);

// For calls that ask about work which has not run: if the stream is being captured, invalidates the
// capture and returns 900.
CUresult check_not_capturing(State& s, CUstream stream);

CUresult begin_capture(State& s, CUstream stream, CUstreamCaptureMode mode);
CUresult end_capture(State& s, CUstream stream, CUgraph* graph);
// Returns nullopt if neither side is being captured.
std::optional<CUresult> capture_record(State& s, const Context& context, CUstream stream,
                                       Event& event);
std::optional<CUresult> capture_wait(State& s, const Context& context, CUstream stream,
                                     const Event& event);

// Runs the nodes, each after those that it depends on, otherwise in an order that EMU_ORDER and
// EMU_SEED choose. State::execution is held, State::lock is not.
void run_graph(State& s, const Graph& graph);

}  // namespace emu::driver
