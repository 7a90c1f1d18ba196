// SPDX-License-Identifier: MIT
// A launch from its arguments to the machine's Launch: what the driver checks before anything runs.
#pragma once

#include "tools/emulator/driver/state.h"

namespace emu::driver {

// What cuLaunchKernel and cuLaunchKernelEx have in common.
struct LaunchArguments {
  CUfunction function = nullptr;  // or a CUkernel
  Dim3 grid, block;
  unsigned dynamic_shared = 0;
  CUstream stream = nullptr;
  const CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
  void** params = nullptr;
  void** extra = nullptr;
  bool cooperative = false;  // all blocks run at once and may wait for each other
};

// A launch that passed the checks, with what has to live until it has ended.
struct ReadyLaunch {
  Launch launch;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  std::shared_ptr<ptx::Module> code;
  bool programmatic = false;  // may start before the kernel ahead of it has ended
};

CUresult prepare_launch(State& s, Context& context, const LaunchArguments& arguments,
                        ReadyLaunch* ready);

// Runs the grid to its end. A fault is printed and becomes the context's sticky error.
void run_in_stream(State& s, const ReadyLaunch& ready);

// The same for a launch in a graph, which may run many times or come too late for its context.
Accessed run_in_graph(State& s, ReadyLaunch ready, const std::vector<Accessed>& beside);

}  // namespace emu::driver
