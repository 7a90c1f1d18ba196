// SPDX-License-Identifier: MIT
// The driver's state: one device, its memory, and every live object.
//
// Execution is eager: a launch runs to its end inside the call, so work in a stream is finished
// when the call that enqueued it returns, streams are trivially ordered, and events are complete
// once recorded. An asynchronous error is still reported as hardware does: by the next call. On
// hardware it ends the whole process; here it ends its context, so that one test program can
// provoke several.
//
// Two locks. `execution` is held while device memory is used or changed: by a running grid, by
// copies, by whatever frees. `lock` guards everything else and is never held while a grid runs, so
// queries from other threads do not wait for it. Order: execution before lock.
#pragma once

#include "tools/emulator/driver/cuda_api.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/emulator/driver/device.h"
#include "tools/emulator/driver/known_code.h"
#include "tools/emulator/driver/linker.h"
#include "tools/emulator/driver/objects.h"
#include "tools/emulator/driver/pool.h"
#include "tools/emulator/driver/record.h"
#include "tools/emulator/machine/machine.h"
#include "tools/emulator/memory/global_memory.h"

namespace emu::driver {

struct State {
  std::mutex execution, lock;
  Record record;  // has a lock of its own
  bool initialised = false;
  const DeviceRow* device = nullptr;
  std::unique_ptr<GlobalMemory> memory;
  Counters counters;     // of the last launch
  std::string findings;  // of the last launch
  std::map<std::string, uint64_t> findings_by_rule;
  uint64_t grids = 0;
  KnownCode known_code;
  // What the last grid of each stream has accessed, until the host or the stream has waited for it:
  // on hardware the grid could still run.
  std::map<CUstream, Accessed> unfinished;

  CUcontext primary = nullptr;  // always the same handle, as a real driver's
  unsigned primary_retained = 0;

  Table<CUcontext, Context> contexts;
  Table<CUstream, Stream> streams;
  Table<CUevent, Event> events;
  Table<CUmodule, Module> modules;
  Table<CUfunction, Function> functions;
  Table<CUlibrary, Library> libraries;
  Table<CUkernel, Kernel> kernels;
  Table<CUgraph, Graph> graphs;
  Table<CUgraphExec, std::shared_ptr<const Graph>> graph_instances;
  std::vector<std::shared_ptr<Capture>> captures;  // under way
  cuuint64_t captures_begun = 0;
  std::map<CUdeviceptr, CUcontext> allocations;  // who owns the memory at an address
  std::map<uintptr_t, HostBlock> host_blocks;
  Table<CUmemoryPool, MemoryPool> pools;
  CUmemoryPool default_pool = nullptr, current_pool = nullptr;  // of the device
  std::map<CUdeviceptr, CUmemoryPool> pool_of;                  // allocations from pools
  Table<CUlinkState, Linker> linkers;

  int driver_version() const;           // EMU_DRIVER_VERSION
  CUresult initialise();                // cuInit
  CUcontext current_handle() const;     // of the calling thread, nullptr: none
  CUresult current(Context** context);  // 201 (none), 709 (destroyed) or its sticky error
  bool holds(CUstream stream) const;    // a created stream or one of the three built-in ones

  CUdeviceptr allocate(CUcontext owner, uint64_t bytes, std::string label);  // 0: out of memory
  void release(CUdeviceptr address);
  void unload_module(CUmodule module);
  void forget_stream(CUstream stream);
  void release_objects(CUcontext context);  // all that lives in it
};

State& state();

// The calling thread's stack of contexts; its top is current.
struct ThreadContexts {
  static constexpr int depth = 64;
  CUcontext stack[depth];
  int count;
};
ThreadContexts& thread_contexts();

}  // namespace emu::driver
