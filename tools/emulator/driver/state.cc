// SPDX-License-Identifier: MIT
// The driver's state: start, current context, and what dies with what.
#include "tools/emulator/driver/state.h"

#include <atomic>
#include <cstring>

#include "tools/emulator/base/settings.h"
#include "tools/emulator/base/tell.h"

namespace emu::driver {

uintptr_t next_handle() {
  static std::atomic<uintptr_t> last{0x1000};
  return last += 0x10;
}

// Never destroyed: programs call the driver from atexit handlers and late threads.
State& state() {
  static State& the = *new State;
  return the;
}

ThreadContexts& thread_contexts() {
  thread_local ThreadContexts contexts = {};
  return contexts;
}

CUresult State::initialise() {
  if (initialised) return CUDA_SUCCESS;
  const Settings& s = settings();
  if (s.device == "none") return CUDA_ERROR_NO_DEVICE;
  const DeviceRow* row = find_device(s.device.c_str());
  if (!row) {
    tell("EMU_DEVICE=" + s.device + " is not one of " + device_keys() + ", none");
    return CUDA_ERROR_INVALID_DEVICE;
  }
  static DeviceRow identity;
  identity = *row;
  if (s.sms) identity.sms = int(s.sms);
  device = &identity;
  memory = std::make_unique<GlobalMemory>(device->memory_bytes());
  default_pool = current_pool = pools.insert(std::make_unique<MemoryPool>(memory->capacity()));
  auto context = std::make_unique<Context>();
  context->destroyed = true;
  Context& made = *context;
  primary = made.handle = contexts.insert(std::move(context));
  initialised = true;
  return CUDA_SUCCESS;
}

int State::driver_version() const { return int(settings().driver_version); }

CUcontext State::current_handle() const {
  const ThreadContexts& mine = thread_contexts();
  return mine.count ? mine.stack[mine.count - 1] : nullptr;
}

CUresult State::current(Context** context) {
  CUcontext handle = current_handle();
  if (!handle) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.find(handle);
  if (!*context || (*context)->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return (*context)->sticky;
}

bool State::holds(CUstream stream) const {
  return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
         streams.find(stream);
}

CUdeviceptr State::allocate(CUcontext owner, uint64_t bytes, std::string label) {
  CUdeviceptr address = memory->allocate(bytes, std::move(label));
  if (address) allocations.emplace(address, owner);
  return address;
}

void State::release(CUdeviceptr address) {
  if (const auto from = pool_of.find(address); from != pool_of.end()) {
    MemoryPool& pool = *pools.find(from->second);
    pool.give_back(memory->find(address)->bytes);
    if (pool.destroyed && pool.empty()) pools.erase(from->second);
    pool_of.erase(from);
  }
  memory->free(address);
  allocations.erase(address);
}

void State::unload_module(CUmodule handle) {
  Module* module = modules.find(handle);
  for (const ptx::Variable& v : module->code->variables) release(v.address);
  functions.erase_if([&](const Function& f) { return f.module == handle; });
  modules.erase(handle);
}

// A capture cannot go on without one of its streams, and not at all without its first.
void State::forget_stream(CUstream handle) {
  const CapturePoint point = streams.find(handle)->point;
  streams.erase(handle);
  if (!point.active()) return;
  point.capture->invalid = true;
  if (point.capture->origin != handle) return;
  point.capture->ended = true;
  std::erase(captures, point.capture);
}

void State::release_objects(CUcontext context) {
  for (auto& [handle, library] : libraries) library->modules.erase(context);
  for (auto it = modules.begin(); it != modules.end();) {
    auto [handle, module] = std::pair(it->first, it->second.get());
    ++it;
    if (module->context == context) unload_module(handle);
  }
  std::vector<CUstream> of_context;
  for (const auto& [handle, stream] : streams)
    if (stream->context == context) of_context.push_back(handle);
  for (CUstream stream : of_context) forget_stream(stream);
  events.erase_if([&](const Event& e) { return e.context == context; });
  std::erase_if(host_blocks, [&](const auto& item) { return item.second.context == context; });
  for (auto it = allocations.begin(); it != allocations.end();) {
    auto [address, owner] = *it++;
    if (owner == context) release(address);
  }
}

}  // namespace emu::driver
