// SPDX-License-Identifier: MIT
// Graphs, as capture or api_graph_build.cc made them: looked at, instantiated and launched. A graph
// runs to its end inside cuGraphLaunch (state.h). Updating an instance is not there.
#include "tools/emulator/driver/call.h"

using namespace emu::driver;

namespace {

template <class Body>
CUresult on_graph(Entry entry, CUgraph handle, Body&& body) {
  return initialised(entry, [&](State& s) {
    Graph* graph = s.graphs.find(handle);
    return graph ? body(s, *graph) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace

// Writes the first `*count` handles. Without an array it writes only their number.
CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return on_graph(Entry::cuGraphGetNodes, handle, [&](State&, Graph& graph) {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    const size_t there = graph.nodes.size();
    for (size_t i = 0; nodes && i < *count; ++i)
      nodes[i] = i < there ? graph.nodes[i].handle : nullptr;
    if (!nodes || *count > there) *count = there;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  return on_graph(Entry::cuGraphGetEdges_v2, handle, [&](State&, Graph& graph) {
    if (!count || !from != !to) return CUDA_ERROR_INVALID_VALUE;
    size_t edges = 0;
    for (const GraphNode& node : graph.nodes) {
      for (const GraphEdge& edge : node.after) {
        const size_t at = edges++;
        if (!from || at >= *count) continue;
        from[at] = graph.nodes[edge.from].handle;
        to[at] = node.handle;
        if (data) data[at] = {};
        if (data && edge.programmatic) {
          data[at].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
          data[at].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
        }
        // The caller gave no array for edge data. If an edge has data that are not all zero, the
        // manual calls the query lossy.
        if (!data && edge.programmatic) return CUDA_ERROR_LOSSY_QUERY;
      }
    }
    if (!from || *count > edges) *count = edges;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return initialised(Entry::cuGraphNodeGetType, [&](State& s) {
    if (!type) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& [key, graph] : s.graphs)
      for (const GraphNode& node : graph->nodes)
        if (node.handle == handle) return *type = node.type, CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
  });
}

// Two flags are accepted and change nothing: there are no memory nodes that AUTO_FREE_ON_LAUNCH
// could free, and nodes have no priorities.
CUresult cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph handle,
                                     unsigned long long flags) {
  return on_graph(Entry::cuGraphInstantiateWithFlags, handle, [&](State& s, Graph& graph) {
    constexpr unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                         CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (!instance || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
    *instance = s.graph_instances.insert(
        std::make_unique<std::shared_ptr<const Graph>>(std::make_shared<const Graph>(graph)));
    return CUDA_SUCCESS;
  });
}

namespace {

// Whether an instance may go into a stream now.
CUresult find_instance(State& s, const Context& context, CUgraphExec handle, CUstream stream,
                       std::shared_ptr<const Graph>* graph) {
  const auto* instance = s.graph_instances.find(handle);
  if (!instance) return CUDA_ERROR_INVALID_VALUE;
  if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const Stream* created = s.streams.find(stream);
  if (created && created->point.active()) return CUDA_ERROR_NOT_SUPPORTED;  // a graph in a graph
  if (auto answer = capture_work(s, context, stream, CU_GRAPH_NODE_TYPE_GRAPH, {})) return *answer;
  *graph = *instance;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  State& s = state();
  std::lock_guard running(s.execution);
  std::shared_ptr<const Graph> graph;
  const CUresult r = in_context(Entry::cuGraphLaunch, [&](State&, Context& context) {
    return find_instance(s, context, handle, stream, &graph);
  });
  if (r == CUDA_SUCCESS) run_graph(s, *graph);
  return r;
}

// Nothing is left to do: an instance is host memory.
CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  return in_context(Entry::cuGraphUpload, [&](State& s, Context& context) {
    std::shared_ptr<const Graph> graph;
    return find_instance(s, context, handle, stream, &graph);
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return initialised(Entry::cuGraphExecDestroy, [&](State& s) {
    return s.graph_instances.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return initialised(Entry::cuGraphDestroy, [&](State& s) {
    return s.graphs.erase(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
