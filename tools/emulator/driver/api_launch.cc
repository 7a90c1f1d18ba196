// SPDX-License-Identifier: MIT
// Launches. Wrong arguments are answered at once; what goes wrong while the grid runs is answered
// by the next call, as on hardware, although the grid has ended by then (state.h).
#include "tools/emulator/driver/call.h"
#include "tools/emulator/driver/launch.h"

using namespace emu::driver;

namespace {

CUresult launch(Entry entry, const LaunchArguments& arguments) {
  State& s = state();
  std::lock_guard running(s.execution);
  ReadyLaunch ready;
  CUresult r = in_context(entry, [&](State&, Context& context) {
    if (CUresult p = prepare_launch(s, context, arguments, &ready)) return p;
    const bool programmatic = ready.programmatic;
    auto run = [ready](State& later, const std::vector<Accessed>& beside) {
      return run_in_graph(later, ready, beside);
    };
    const auto noted = capture_work(s, context, arguments.stream, CU_GRAPH_NODE_TYPE_KERNEL,
                                    std::move(run), programmatic);
    if (noted) ready.code = nullptr;  // the node has it; nothing runs now
    return noted.value_or(CUDA_SUCCESS);
  });
  if (r == CUDA_SUCCESS && ready.code) run_in_stream(s, ready);
  return r;
}

LaunchArguments arguments(CUfunction function, emu::Dim3 grid, emu::Dim3 block,
                          unsigned dynamic_shared, CUstream stream, void** params) {
  LaunchArguments a;
  a.function = function;
  a.grid = grid;
  a.block = block;
  a.dynamic_shared = dynamic_shared;
  a.stream = stream;
  a.params = params;
  return a;
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int dynamic_shared, CUstream stream,
                        void** params, void** extra) {
  LaunchArguments a = arguments(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                dynamic_shared, stream, params);
  a.extra = extra;
  return launch(Entry::cuLaunchKernel, a);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int dynamic_shared,
                                   CUstream stream, void** params) {
  LaunchArguments a = arguments(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z},
                                dynamic_shared, stream, params);
  a.cooperative = true;
  return launch(Entry::cuLaunchCooperativeKernel, a);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                          void** extra) {
  if (!config)
    return in_context(Entry::cuLaunchKernelEx,
                      [](State&, Context&) { return CUDA_ERROR_INVALID_VALUE; });
  LaunchArguments a;
  a.function = function;
  a.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  a.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  a.dynamic_shared = config->sharedMemBytes;
  a.stream = config->hStream;
  a.attributes = config->attrs;
  a.attribute_count = config->numAttrs;
  a.params = params;
  a.extra = extra;
  return launch(Entry::cuLaunchKernelEx, a);
}
