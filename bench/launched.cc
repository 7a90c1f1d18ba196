// SPDX-License-Identifier: MIT
#include "bench/launched.h"

#include <stdexcept>
#include <vector>

namespace bench {
namespace {

// By the name of the symbol, version and all.
template <class Function>
Function* find(const support::Driver& driver, Function*, const char* name) {
  auto* function = reinterpret_cast<Function*>(driver.extension(name));
  if (!function) throw std::runtime_error(std::string("the driver has no ") + name);
  return function;
}

#define NVFP4_FIND(driver, name) find(driver, &::name, #name)

CUgraph record(const support::Driver& driver, CUstream stream, const std::function<void()>& call) {
  CUgraph graph = nullptr;
  driver.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
               "cuStreamBeginCapture");
  call();
  driver.check(driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

// A node names a function, or a kernel of a library.
CUfunction function_of(const support::Driver& driver, CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS params{};
  const auto get = find(driver, &::cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2");
  driver.check(get(node, &params), "cuGraphKernelNodeGetParams");
  CUfunction function = params.func;
  if (!function)
    driver.check(NVFP4_FIND(driver, cuKernelGetFunction)(&function, params.kern),
                 "cuKernelGetFunction");
  return function;
}

CUfunction last_kernel(const support::Driver& driver, CUgraph graph) {
  size_t count = 0;
  driver.check(driver.cuGraphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  std::vector<CUgraphNode> nodes(count);
  driver.check(driver.cuGraphGetNodes(graph, nodes.data(), &count), "cuGraphGetNodes");
  CUfunction function = nullptr;
  for (const CUgraphNode node : nodes) {  // recorded on one stream, they lie in order
    CUgraphNodeType type{};
    driver.check(NVFP4_FIND(driver, cuGraphNodeGetType)(node, &type), "cuGraphNodeGetType");
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) function = function_of(driver, node);
  }
  if (!function) throw std::runtime_error("the call launches no kernel");
  return function;
}

}  // namespace

Launched::Launched(const support::Driver& driver, CUstream stream,
                   const std::function<void()>& call)
    : driver_(driver) {
  const CUgraph graph = record(driver, stream, call);
  function_ = last_kernel(driver, graph);
  const char* name = nullptr;
  driver.check(NVFP4_FIND(driver, cuFuncGetName)(&name, function_), "cuFuncGetName");
  name_ = name;
  driver.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
}

support::Global Launched::global(const char* name) const {
  CUmodule module = nullptr;
  driver_.check(NVFP4_FIND(driver_, cuFuncGetModule)(&module, function_), "cuFuncGetModule");
  return support::global_of(driver_, module, name);
}

}  // namespace bench
