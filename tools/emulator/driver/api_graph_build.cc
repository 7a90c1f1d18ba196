// SPDX-License-Identifier: MIT
// Graphs built node by node: kernels. An edge leads to a node from one that was added before it, so
// the order of adding is an order to run them in.
#include <algorithm>

#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/launch.h"

using namespace emu::driver;

namespace {

LaunchArguments arguments_of(const CUDA_KERNEL_NODE_PARAMS& given) {
  LaunchArguments a;
  a.function = given.func ? given.func : reinterpret_cast<CUfunction>(given.kern);
  a.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
  a.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
  a.dynamic_shared = given.sharedMemBytes;
  a.params = given.kernelParams;
  a.extra = given.extra;
  return a;
}

// The places of `count` nodes in the graph, each once.
CUresult find_nodes(const Graph& graph, const CUgraphNode* nodes, size_t count,
                    std::vector<GraphEdge>* edges) {
  if (count && !nodes) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const auto is_it = [&](const GraphNode& node) { return node.handle == nodes[i]; };
    const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), is_it);
    if (found == graph.nodes.end()) return CUDA_ERROR_INVALID_VALUE;
    const auto place = size_t(found - graph.nodes.begin());
    for (const GraphEdge& edge : *edges)
      if (edge.from == place) return CUDA_ERROR_INVALID_VALUE;
    edges->push_back({place, false});
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return initialised(Entry::cuGraphCreate, [&](State& s) {
    if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
    *graph = s.graphs.insert(std::make_unique<Graph>());
    return CUDA_SUCCESS;
  });
}

// The parameters are copied now, and arguments that a launch would refuse are refused now.
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph handle, const CUgraphNode* after,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return in_context(Entry::cuGraphAddKernelNode_v2, [&](State& s, Context& current) {
    Graph* graph = s.graphs.find(handle);
    if (!graph || !node || !params) return CUDA_ERROR_INVALID_VALUE;
    Context* context = params->ctx ? s.contexts.find(params->ctx) : &current;
    if (!context || context->destroyed) return CUDA_ERROR_INVALID_CONTEXT;
    GraphNode made;
    if (CUresult r = find_nodes(*graph, after, count, &made.after)) return r;
    ReadyLaunch ready;
    if (CUresult r = prepare_launch(s, *context, arguments_of(*params), &ready)) return r;
    made.handle = reinterpret_cast<CUgraphNode>(next_handle());
    made.type = CU_GRAPH_NODE_TYPE_KERNEL;
    made.context = context->handle;
    made.work = [ready](State& later, const std::vector<Accessed>& beside) {
      return run_in_graph(later, ready, beside);
    };
    *node = made.handle;
    graph->nodes.push_back(std::move(made));
    return CUDA_SUCCESS;
  });
}
