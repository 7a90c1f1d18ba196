// SPDX-License-Identifier: MIT
// A launch from its arguments to the machine's Launch. Limits and statuses were measured on an H200
// (driver 580), call by call.
#include "tools/emulator/driver/launch.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/base/tell.h"
#include "tools/emulator/driver/module.h"
#include "tools/emulator/driver/watch.h"
#include "tools/emulator/machine/report.h"
#include "tools/emulator/order/global_order.h"

namespace emu::driver {
namespace {

constexpr uint32_t max_grid_x = 0x7FFFFFFF, max_grid_yz = 65535;
constexpr uint32_t max_block_xy = 1024, max_block_z = 64;
constexpr uint32_t portable_cluster = 8, largest_cluster = 16;
constexpr uint8_t unset_parameter = 0xFF;

bool within(Dim3 d, uint32_t x, uint32_t y, uint32_t z) {
  return d.x >= 1 && d.x <= x && d.y >= 1 && d.y <= y && d.z >= 1 && d.z <= z;
}

// .reqntid is exact in every dimension; .maxntid bounds the product.
bool block_fits(const ptx::Function& f, Dim3 block) {
  if (!within(block, max_block_xy, max_block_xy, max_block_z)) return false;
  uint32_t threads = block.x * block.y * block.z;
  if (threads > uint32_t(threads_per_block)) return false;
  auto or_1 = [](uint32_t n) { return n ? n : 1; };
  const uint32_t *r = f.reqntid, *m = f.maxntid;
  if (r[0] && (block.x != r[0] || block.y != or_1(r[1]) || block.z != or_1(r[2]))) return false;
  return !m[0] || threads <= m[0] * or_1(m[1]) * or_1(m[2]);
}

// Programmatic stream serialisation allows a grid to start early; the emulator never starts one
// early. Attributes that would change results or need hardware are refused as not supported.
CUresult read_attributes(const LaunchArguments& a, const CUlaunchAttribute** cluster,
                         const CUlaunchAttribute** preferred, bool* programmatic,
                         bool* cooperative) {
  if (a.attribute_count && !a.attributes) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < a.attribute_count; ++i) {
    switch (a.attributes[i].id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE: break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        *programmatic = a.attributes[i].value.programmaticStreamSerializationAllowed != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        *cooperative = a.attributes[i].value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: *cluster = &a.attributes[i]; break;
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: *preferred = &a.attributes[i]; break;
      default:
        return unsigned(a.attributes[i].id) < CU_LAUNCH_ATTRIBUTE_MAX ? CUDA_ERROR_NOT_SUPPORTED
                                                                      : CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

// The cluster's shape, from the attribute or from .reqnctapercluster; both have to agree.
CUresult cluster_shape(const State& s, const ptx::Function& f, const CUlaunchAttribute* given,
                       bool non_portable, Dim3 grid, Dim3* shape) {
  auto or_1 = [](uint32_t n) { return n ? n : 1; };
  const uint32_t* required = f.reqnctapercluster;
  if (required[0]) *shape = {required[0], or_1(required[1]), or_1(required[2])};
  if (given) {
    const auto& d = given->value.clusterDim;
    if (required[0] && (d.x != shape->x || d.y != shape->y || d.z != shape->z))
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    *shape = {d.x, d.y, d.z};
  } else if (f.explicit_cluster && !required[0]) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  uint32_t most = non_portable ? largest_cluster : portable_cluster;
  if (!s.device->clusters()) most = 1;
  if (!within(*shape, most, most, most) || shape->x * shape->y * shape->z > most)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  bool divides = grid.x % shape->x == 0 && grid.y % shape->y == 0 && grid.z % shape->z == 0;
  return divides ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

CUresult preferred_shape(const State& s, const CUlaunchAttribute* given, bool non_portable,
                         Dim3 cluster, Dim3* shape) {
  *shape = cluster;
  if (!given) return CUDA_SUCCESS;
  const auto& p = given->value.preferredClusterDim;
  const auto fits = [](uint32_t n, uint32_t least) { return n && n % least == 0; };
  if (!fits(p.x, cluster.x) || !fits(p.y, cluster.y) || !fits(p.z, cluster.z))
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  const uint32_t most = !s.device->clusters() ? 1
                        : non_portable        ? largest_cluster
                                              : portable_cluster;
  if (!within({p.x, p.y, p.z}, most, most, most) || p.x * p.y * p.z > most)
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *shape = {p.x, p.y, p.z};
  return CUDA_SUCCESS;
}

// With .blocksareclusters the grid of a launch counts clusters. CUDA then passes a block of 1 x 1 x
// 1, and .reqntid is the block (PTX ISA 11.8.1; CUDA programming guide, __block_size__).
void count_in_blocks(const ptx::Function& f, Dim3* grid, Dim3* block) {
  if (!f.counts_clusters) return;
  const uint32_t *c = f.reqnctapercluster, *b = f.reqntid;
  const auto times = [](uint32_t n, uint32_t m) {
    return uint32_t(std::min<uint64_t>(uint64_t(n) * m, ~0u));  // beyond every limit
  };
  *grid = {times(grid->x, c[0]), times(grid->y, c[1]), times(grid->z, c[2])};
  if (block->x == 1 && block->y == 1 && block->z == 1) *block = {b[0], b[1], b[2]};
}

CUresult pack_pointers(const ptx::Function& f, void** params, std::vector<uint8_t>& block) {
  if (f.params.empty()) return CUDA_SUCCESS;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < f.params.size(); ++i) {
    if (!params[i]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(block.data() + f.params[i].offset, params[i], f.params[i].bytes);
  }
  return CUDA_SUCCESS;
}

// A buffer shorter than the parameters is accepted, a longer one is 701 (both measured).
CUresult pack_buffer(void** extra, std::vector<uint8_t>& block) {
  const void* buffer = nullptr;
  const size_t* bytes = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = static_cast<const size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (!buffer || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (*bytes > block.size()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  memcpy(block.data(), buffer, *bytes);
  return CUDA_SUCCESS;
}

CUresult pack(const ptx::Function& f, const LaunchArguments& a, std::vector<uint8_t>& block) {
  if (a.params && a.extra) return CUDA_ERROR_INVALID_VALUE;
  block.assign(f.param_bytes, unset_parameter);
  return a.extra ? pack_buffer(a.extra, block) : pack_pointers(f, a.params, block);
}

CUresult stream_fits(const State& s, const Context& context, CUstream stream) {
  if (!s.holds(stream)) return CUDA_ERROR_INVALID_HANDLE;
  const Stream* created = s.streams.find(stream);
  return created && created->context != context.handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

// A kernel belongs to no context: it runs in the stream's, whichever is current (measured).
CUresult context_of(State& s, CUstream stream, Context** context) {
  const Stream* created = s.streams.find(stream);
  if (!created) return CUDA_SUCCESS;
  Context* its = s.contexts.find(created->context);
  if (!its || its->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (its->sticky) return its->sticky;
  *context = its;
  return CUDA_SUCCESS;
}

// Blocks of a cooperative grid wait for each other, so a launch is refused unless the device has
// room for all of them at once.
bool all_fit(const State& s, const Function& f, Dim3 grid, Dim3 block, unsigned dynamic_shared) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  const uint64_t room =
      uint64_t(s.device->sms) * uint64_t(blocks_per_sm(s, f, int(threads), dynamic_shared));
  return uint64_t(grid.x) * grid.y * grid.z <= room;
}

CUresult status_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::illegal_address: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned_address: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::illegal_instruction: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    // CUDA has no other status for tensor memory.
    case FaultKind::tensor_memory: return CUDA_ERROR_TENSOR_MEMORY_LEAK;
    case FaultKind::failed_assert: return CUDA_ERROR_ASSERT;
    case FaultKind::deadlock:
    case FaultKind::watchdog: return CUDA_ERROR_LAUNCH_TIMEOUT;
    // trap and brkpt are 719 on hardware; it has no status at all for what only an emulator sees.
    case FaultKind::assertion:
    case FaultKind::uninitialised:
    case FaultKind::barrier_misuse:
    case FaultKind::ordering: return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

}  // namespace

CUresult prepare_launch(State& s, Context& context, const LaunchArguments& a, ReadyLaunch* ready) {
  CUfunction handle = a.function;
  CUkernel kernel = reinterpret_cast<CUkernel>(handle);
  Context* home = &context;
  if (s.kernels.find(kernel)) {
    if (CUresult r = context_of(s, a.stream, &home)) return r;
    if (CUresult r = kernel_function(s, *home, kernel, &handle)) return r;
  }
  const Function* function = s.functions.find(handle);
  if (!function || function->context != home->handle) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult r = stream_fits(s, *home, a.stream)) return r;

  const ptx::Function& f = function->code->whole(*function->entry);
  if (!within(a.grid, max_grid_x, max_grid_yz, max_grid_yz)) return CUDA_ERROR_INVALID_VALUE;
  Dim3 grid = a.grid, block = a.block;
  count_in_blocks(f, &grid, &block);
  if (!within(grid, max_grid_x, max_grid_yz, max_grid_yz)) return CUDA_ERROR_INVALID_VALUE;
  if (!block_fits(f, block)) return CUDA_ERROR_INVALID_VALUE;
  EffectiveAttributes now = effective(s, f, &function->attributes, function->kernel);
  if (a.dynamic_shared > unsigned(now.dynamic_shared)) return CUDA_ERROR_INVALID_VALUE;

  const CUlaunchAttribute *cluster = nullptr, *preferred = nullptr;
  Launch& launch = ready->launch;
  launch.cooperative = a.cooperative;
  if (CUresult r =
          read_attributes(a, &cluster, &preferred, &ready->programmatic, &launch.cooperative))
    return r;
  if (CUresult r = cluster_shape(s, f, cluster, now.non_portable, grid, &launch.cluster)) return r;
  if (CUresult r =
          preferred_shape(s, preferred, now.non_portable, launch.cluster, &launch.preferred))
    return r;
  if (launch.cooperative && !all_fit(s, *function, grid, block, a.dynamic_shared))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  if (CUresult r = pack(f, a, launch.params)) return r;

  launch.module = function->code.get();
  launch.function = &f;
  launch.grid = grid;
  launch.block = block;
  launch.dynamic_shared_bytes = a.dynamic_shared;
  launch.memory = s.memory.get();
  launch.sm_count = uint32_t(s.device->sms);
  launch.compute_capability = s.device->capability;
  launch.grid_id = ++s.grids;
  ready->context = home->handle;
  ready->stream = a.stream;
  ready->code = function->code;
  return CUDA_SUCCESS;
}

namespace {

// A stream keeps the accesses of at most this many grids. It has more than one only while grids
// launch their dependents without waiting for the grid before them.
constexpr size_t most_accessed = 3;

// The workspace of a cooperative grid, at the address in %envreg1 and %envreg2. Cooperative groups
// read two words there: the size of the workspace, and the counter of the grid's barrier.
class GridWorkspace {
 public:
  GridWorkspace(Launch& launch, GlobalMemory& memory) : memory_(memory) {
    if (!launch.cooperative) return;
    constexpr uint32_t words[2] = {sizeof(uint32_t[2]), 0};
    address_ = memory_.allocate(sizeof words, "the workspace of the grid");
    if (!address_) throw std::bad_alloc();
    memcpy(memory_.at(address_, sizeof words, 4, "initialisation"), words, sizeof words);
    launch.grid_workspace = address_;
  }
  ~GridWorkspace() {
    if (address_) memory_.free(address_);
  }
  GridWorkspace(const GridWorkspace&) = delete;
  GridWorkspace& operator=(const GridWorkspace&) = delete;

 private:
  GlobalMemory& memory_;
  uint64_t address_ = 0;
};

// Returns the accesses of the grid; none if it faulted.
Accessed run(State& s, const ReadyLaunch& ready, const std::vector<Accessed>& ahead) {
  CUresult sticky = CUDA_SUCCESS;
  Counters counters;
  Findings findings(report::kernel_name(ready.launch.function->name));
  Launch launch = ready.launch;
  launch.findings = &findings;
  const auto order = std::make_shared<GlobalOrder>();
  std::vector<GlobalOrder*> earlier;
  for (const Accessed& grids : ahead)
    for (const auto& grid : grids) earlier.push_back(grid.get());
  try {
    const GridWorkspace workspace(launch, *s.memory);
    counters = run_watched(launch, order.get(), earlier);
  } catch (const Finding& finding) {
    sticky = status_of(finding.kind);
    tell(finding.text, {name_of(finding.severity), finding.rule});
  } catch (const Fault& fault) {
    sticky = status_of(fault.kind);
    tell(fault.text, {name_of(Severity::error), report::rule(fault.kind)});
  } catch (const std::bad_alloc&) {
    sticky = CUDA_ERROR_LAUNCH_FAILED;
    tell("this machine has too little memory for the grid");
  }
  s.memory->drop_freed();
  findings.tell_the_rest();
  std::lock_guard guard(s.lock);
  s.findings = findings.text();
  s.findings_by_rule = findings.by_rule();
  if (sticky == CUDA_SUCCESS) {
    s.counters = counters;
    Accessed accessed = {order};
    if (order->dependents_launched && !order->waited_first)
      for (const Accessed& grids : ahead)
        accessed.insert(accessed.end(), grids.begin(), grids.end());
    accessed.resize(std::min(accessed.size(), most_accessed));
    return accessed;
  }
  if (Context* context = s.contexts.find(ready.context)) context->sticky = sticky;
  return {};
}

// Accesses of the grid ahead in the stream, if this one may begin before it has ended.
Accessed take_unfinished(State& s, const ReadyLaunch& ready) {
  std::lock_guard guard(s.lock);
  Accessed ahead = std::exchange(s.unfinished[ready.stream], {});
  return ready.programmatic ? ahead : Accessed{};
}

}  // namespace

void run_in_stream(State& s, const ReadyLaunch& ready) {
  const Accessed accessed = run(s, ready, {take_unfinished(s, ready)});
  std::lock_guard guard(s.lock);
  s.unfinished[ready.stream] = accessed;
}

Accessed run_in_graph(State& s, ReadyLaunch ready, const std::vector<Accessed>& beside) {
  {
    std::lock_guard guard(s.lock);
    const Context* context = s.contexts.find(ready.context);
    if (!context || context->destroyed || context->sticky) return {};
    ready.launch.grid_id = ++s.grids;
  }
  return run(s, ready, beside);
}

}  // namespace emu::driver
