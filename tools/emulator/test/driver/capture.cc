// SPDX-License-Identifier: MIT
// Stream capture and graphs. Statuses from the CUDA driver API manual; compared with no device.
#include <thread>

#include "tools/emulator/test/support/driver_session.h"

namespace {

// add: *p += 1. twice: *p *= 2. hasty: *p = *p, waits for no thread and lets dependents start.
const char* const kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 p) {
  .reg .u64 a; .reg .u32 v;
  griddepcontrol.wait;
  ld.param.u64 a, [p];
  ld.global.u32 v, [a];
  add.u32 v, v, 1;
  st.global.u32 [a], v;
  ret;
}
.visible .entry twice(.param .u64 p) {
  .reg .u64 a; .reg .u32 v;
  griddepcontrol.wait;
  ld.param.u64 a, [p];
  ld.global.u32 v, [a];
  add.u32 v, v, v;
  st.global.u32 [a], v;
  ret;
}
.visible .entry hasty(.param .u64 p) {
  .reg .u64 a; .reg .u32 v;
  griddepcontrol.launch_dependents;
  ld.param.u64 a, [p];
  ld.global.u32 v, [a];
  st.global.u32 [a], v;
  ret;
}
)";

struct World {
  Session& s;
  CUfunction add, twice, hasty;
  CUdeviceptr p = 0;
  CUstream stream = nullptr, other = nullptr;
  CUevent fork = nullptr, join = nullptr;
  CUgraph graph = nullptr;

  explicit World(Session& session) : s(session) {
    CUmodule module = s.load(kernels);
    add = s.function(module, "add");
    twice = s.function(module, "twice");
    hasty = s.function(module, "hasty");
    OK(s, s.cuMemAlloc(&p, 64));
    set(0);
    OK(s, s.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(s, s.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(s, s.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(s, s.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  }

  void set(uint32_t value) {
    for (int i = 0; i < 16; ++i) OK(s, s.cuMemcpyHtoD(p + 4 * i, &value, 4));
  }
  uint32_t value(int at = 0) {
    uint32_t v = 0;
    OK(s, s.cuMemcpyDtoH(&v, p + 4 * at, 4));
    return v;
  }
  CUresult launch(CUfunction f, CUstream where, CUdeviceptr argument, bool early = false) {
    void* params[] = {&argument};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{1, 1, 1, 1, 1, 1, 0, where, early ? &attribute : nullptr, early};
    return s.cuLaunchKernelEx(&config, f, params, nullptr);
  }
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    OK(s, s.cuStreamBeginCapture(stream, mode));
  }
  void end(CUresult wanted) { IS(s, s.cuStreamEndCapture(stream, &graph), wanted); }
  CUstreamCaptureStatus status(CUstream of) {
    auto seen = CUstreamCaptureStatus(77);
    OK(s, s.cuStreamIsCapturing(of, &seen));
    return seen;
  }
  void run(int times) {
    CUgraphExec instance = nullptr;
    OK(s, s.cuGraphInstantiateWithFlags(&instance, graph, 0));
    OK(s, s.cuGraphUpload(instance, other));
    for (int i = 0; i < times; ++i) OK(s, s.cuGraphLaunch(instance, other));
    OK(s, s.cuGraphExecDestroy(instance));
    IS(s, s.cuGraphLaunch(instance, other), CUDA_ERROR_INVALID_VALUE);
  }
};

}  // namespace

TEST_CASE("Captured work does not run and a graph runs it as often as it is launched") {
  in_child([](Session& s) {
    World w(s);
    w.begin();
    IS(s, w.status(w.stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    IS(s, w.status(w.other), CU_STREAM_CAPTURE_STATUS_NONE);
    OK(s, w.launch(w.add, w.stream, w.p));
    OK(s, w.launch(w.twice, w.stream, w.p));
    OK(s, s.cuMemcpyDtoDAsync(w.p + 4, w.p, 4, w.stream));
    OK(s, s.cuMemsetD8Async(w.p + 8, 7, 4, w.stream));
    w.end(CUDA_SUCCESS);
    IS(s, w.value(), 0);
    IS(s, w.status(w.stream), CU_STREAM_CAPTURE_STATUS_NONE);
    w.run(3);
    IS(s, w.value(), 14);  // ((0 + 1) * 2 + 1) * 2 + 1) * 2
    IS(s, w.value(1), 14);
    IS(s, w.value(2), 0x07070707);

    CUgraphNode nodes[4] = {};
    size_t count = 0;
    CUgraphNodeType type{};
    OK(s, s.cuGraphGetNodes(w.graph, nullptr, &count));
    IS(s, count, 4);
    OK(s, s.cuGraphGetNodes(w.graph, nodes, &count));
    const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                     CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET};
    for (int i = 0; i < 4; ++i) {
      OK(s, s.cuGraphNodeGetType(nodes[i], &type));
      IS(s, type, types[i]);
    }
    OK(s, s.cuGraphDestroy(w.graph));
    IS(s, s.cuGraphDestroy(w.graph), CUDA_ERROR_INVALID_VALUE);
    auto ledger = s.extension<decltype(&nvfp4emu_ledger)>("nvfp4emu_ledger");
    nvfp4emu_counts alive;
    ledger(&alive);
    IS(s, alive.graphs + alive.graph_instances, 0);
  });
}

TEST_CASE(
    "A programmatic launch becomes a programmatic edge after a kernel and after nothing else") {
  in_child([](Session& s) {
    World w(s);
    w.begin();
    OK(s, w.launch(w.add, w.stream, w.p, true));
    OK(s, w.launch(w.twice, w.stream, w.p, true));
    OK(s, s.cuMemsetD8Async(w.p + 8, 7, 4, w.stream));
    OK(s, w.launch(w.add, w.stream, w.p, true));
    OK(s, w.launch(w.add, w.stream, w.p, false));
    w.end(CUDA_SUCCESS);
    CUgraphNode from[8], to[8];
    CUgraphEdgeData data[8] = {};
    size_t count = 0;
    OK(s, s.cuGraphGetEdges(w.graph, nullptr, nullptr, nullptr, &count));
    IS(s, count, 4);
    OK(s, s.cuGraphGetEdges(w.graph, from, to, data, &count));
    const int types[] = {CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 0, 0, 0};
    for (int i = 0; i < 4; ++i) {
      IS(s, data[i].type, types[i]);
      IS(s, data[i].from_port, types[i] ? CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC : 0);
    }
    IS(s, s.cuGraphGetEdges(w.graph, from, to, nullptr, &count), CUDA_ERROR_LOSSY_QUERY);
    w.run(1);
    IS(s, w.value(), 4);
  });
}

// The hazards of a graph's last kernel: what it shares with one that may still run.
TEST_CASE("A kernel after a programmatic edge is compared with the kernel ahead in each replay") {
  in_child({{"EMU_HAZARDS", "report"}}, [](Session& s) {
    World w(s);
    auto counters = s.extension<decltype(&nvfp4emu_counters)>("nvfp4emu_counters");
    auto found = [&](auto capture, int replays = 1) {
      w.begin();
      capture();
      w.end(CUDA_SUCCESS);
      w.run(replays);
      uint64_t hazards = 0;
      IS(s, counters("hazards", &hazards), 0);
      return hazards;
    };
    auto launch = [&](CUfunction f, CUdeviceptr at, bool programmatic, CUstream stream) {
      OK(s, w.launch(f, stream, at, programmatic));
    };
    auto two = [&](CUfunction f, CUdeviceptr at, bool programmatic) {
      return [=, &w] {
        launch(w.hasty, w.p, true, w.stream);
        launch(f, at, programmatic, w.stream);
      };
    };
    IS(s, found(two(w.hasty, w.p, true)) > 0, true);
    IS(s, found(two(w.hasty, w.p, true), 3) > 0, true);
    IS(s, found(two(w.hasty, w.p, false)), 0);
    IS(s, found(two(w.hasty, w.p + 4, true)), 0);
    IS(s, found(two(w.add, w.p, true)), 0);  // waits
    IS(s, found([&] { launch(w.hasty, w.p, true, w.stream); }, 3), 0);
    IS(s, found([&] {
         launch(w.hasty, w.p, true, w.stream);
         OK(s, s.cuMemsetD8Async(w.p + 8, 7, 4, w.stream));
         launch(w.hasty, w.p, true, w.stream);
       }),
       0);
    // Two kernels ahead on two streams: the second, then the first.
    for (int shared : {0, 1, 2}) {
      const uint64_t hazards = found([&] {
        launch(w.hasty, w.p + 12, true, w.stream);
        OK(s, s.cuEventRecord(w.fork, w.stream));
        OK(s, s.cuStreamWaitEvent(w.other, w.fork, 0));
        launch(w.hasty, w.p, false, w.stream);
        launch(w.hasty, w.p + 4, false, w.other);
        OK(s, s.cuEventRecord(w.join, w.other));
        OK(s, s.cuStreamWaitEvent(w.stream, w.join, 0));
        launch(w.hasty, w.p + 4 * shared, true, w.stream);
      });
      IS(s, hazards > 0, shared < 2);
    }
  });
}

TEST_CASE("Events fork a capture into a second stream and join it again") {
  in_child({{"EMU_ORDER", "latest"}}, [](Session& s) {
    World w(s);
    w.begin();
    OK(s, w.launch(w.add, w.stream, w.p));
    OK(s, s.cuEventRecord(w.fork, w.stream));
    OK(s, s.cuStreamWaitEvent(w.other, w.fork, 0));
    IS(s, w.status(w.other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(s, w.launch(w.twice, w.stream, w.p));
    OK(s, w.launch(w.add, w.other, w.p + 4));
    OK(s, s.cuEventRecord(w.join, w.other));
    OK(s, s.cuStreamWaitEvent(w.stream, w.join, 0));
    OK(s, s.cuMemcpyDtoDAsync(w.p + 8, w.p + 4, 4, w.stream));
    w.end(CUDA_SUCCESS);
    IS(s, w.status(w.other), CU_STREAM_CAPTURE_STATUS_NONE);
    size_t edges = 0;
    OK(s, s.cuGraphGetEdges(w.graph, nullptr, nullptr, nullptr, &edges));
    IS(s, edges, 4);  // add -> twice, add -> add, both -> copy
    w.run(2);
    IS(s, w.value(), 6);
    IS(s, w.value(2), 2);
    // The event's record happened in the capture only.
    IS(s, s.cuEventQuery(w.fork), CUDA_ERROR_CAPTURED_EVENT);
    OK(s, s.cuEventRecord(w.fork, w.stream));
    OK(s, s.cuEventQuery(w.fork));
  });
}

// Two branches without an edge: only an order that is not promised gives 2 and not 1.
TEST_CASE("A graph's independent branches run in an order that the seed chooses") {
  for (const char* order : {"soonest", "latest"}) {
    in_child({{"EMU_ORDER", order}}, [&](Session& s) {
      World w(s);
      w.begin();
      OK(s, s.cuEventRecord(w.fork, w.stream));
      OK(s, s.cuStreamWaitEvent(w.other, w.fork, 0));
      OK(s, w.launch(w.add, w.stream, w.p));
      OK(s, w.launch(w.twice, w.other, w.p));
      OK(s, s.cuEventRecord(w.join, w.other));
      OK(s, s.cuStreamWaitEvent(w.stream, w.join, 0));
      w.end(CUDA_SUCCESS);
      w.run(1);
      IS(s, w.value(), std::string(order) == "soonest" ? 2 : 1);
    });
  }
}

TEST_CASE("A capture that was never begun or has a fork that is not joined gives no graph") {
  in_child([](Session& s) {
    World w(s);
    w.end(CUDA_ERROR_ILLEGAL_STATE);
    w.begin();
    IS(s, s.cuStreamBeginCapture(w.stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
       CUDA_ERROR_ILLEGAL_STATE);
    OK(s, s.cuEventRecord(w.fork, w.stream));
    OK(s, s.cuStreamWaitEvent(w.other, w.fork, 0));
    OK(s, w.launch(w.add, w.other, w.p));
    w.graph = reinterpret_cast<CUgraph>(1);
    w.end(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    IS(s, w.graph == nullptr, 1);
    IS(s, w.status(w.other), CU_STREAM_CAPTURE_STATUS_NONE);
    IS(s, s.cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    IS(s, s.cuStreamBeginCapture(w.stream, CUstreamCaptureMode(3)), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST_CASE("A call that waits or allocates is refused while a capture forbids it and ends it") {
  struct Row {
    const char* name;
    CUresult (*call)(World&);
  };
  static const Row rows[] = {
      {"cuMemAlloc",
       [](World& w) {
         CUdeviceptr q;
         return w.s.cuMemAlloc(&q, 16);
       }},
      {"cuMemFree", [](World& w) { return w.s.cuMemFree(w.p); }},
      {"cuMemcpyHtoD",
       [](World& w) {
         int x = 0;
         return w.s.cuMemcpyHtoD(w.p, &x, 4);
       }},
      {"cuMemsetD8", [](World& w) { return w.s.cuMemsetD8(w.p, 0, 4); }},
      {"cuModuleLoadData",
       [](World& w) {
         CUmodule m;
         return w.s.cuModuleLoadData(&m, kernels);
       }},
      {"cuLibraryLoadData",
       [](World& w) {
         CUlibrary l;
         return w.s.cuLibraryLoadData(&l, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0);
       }},
      {"cuCtxSynchronize", [](World& w) { return w.s.cuCtxSynchronize(); }},
      {"cuStreamSynchronize", [](World& w) { return w.s.cuStreamSynchronize(w.stream); }},
      {"cuStreamQuery", [](World& w) { return w.s.cuStreamQuery(w.stream); }},
      {"cuEventQuery", [](World& w) { return w.s.cuEventQuery(w.fork); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    in_child([&](Session& s) {
      World w(s);
      w.begin();
      IS(s, row.call(w), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
      IS(s, w.status(w.stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
      IS(s, w.launch(w.add, w.stream, w.p), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      w.end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
      IS(s, w.graph == nullptr, 1);
      OK(s, row.call(w));
    });
  }
}

TEST_CASE("The mode of the capture and of the thread decide who may make unsafe calls") {
  struct Row {
    CUstreamCaptureMode capture, thread;
    bool own_thread;
    CUresult answer;
  };
  constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
  constexpr auto local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  constexpr auto refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  for (const Row& row :
       {Row{global, global, true, refused}, Row{global, global, false, refused},
        Row{global, local, true, refused}, Row{global, local, false, CUDA_SUCCESS},
        Row{global, relaxed, true, CUDA_SUCCESS}, Row{global, relaxed, false, CUDA_SUCCESS},
        Row{local, global, true, refused}, Row{local, global, false, CUDA_SUCCESS},
        Row{relaxed, global, true, CUDA_SUCCESS}, Row{relaxed, global, false, CUDA_SUCCESS}}) {
    CAPTURE(row.capture, row.thread, row.own_thread);
    in_child([&](Session& s) {
      World w(s);
      CUcontext context = nullptr;
      OK(s, s.cuCtxGetCurrent(&context));
      w.begin(row.capture);
      const auto call = [&] {
        CUstreamCaptureMode mode = row.thread;
        CUdeviceptr q = 0;
        OK(s, s.cuCtxSetCurrent(context));
        OK(s, s.cuThreadExchangeStreamCaptureMode(&mode));
        IS(s, mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
        IS(s, s.cuMemAlloc(&q, 16), row.answer);
        OK(s, s.cuThreadExchangeStreamCaptureMode(&mode));
        IS(s, mode, row.thread);
      };
      if (row.own_thread) call();
      if (!row.own_thread) std::thread(call).join();
      w.end(row.answer ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
    });
  }
}

TEST_CASE("What would tie a capture to work outside it ends the capture") {
  constexpr auto invalidated = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  in_child([](Session& s) {  // an event recorded before the capture
    World w(s);
    OK(s, s.cuEventRecord(w.fork, w.other));
    w.begin();
    IS(s, s.cuStreamWaitEvent(w.stream, w.fork, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    IS(s, w.status(w.stream), invalidated);
  });
  in_child([](Session& s) {  // the legacy stream beside a blocking one
    World w(s);
    CUstream blocking = nullptr;
    OK(s, s.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(s, s.cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    IS(s, w.launch(w.add, nullptr, w.p), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    IS(s, w.status(blocking), invalidated);
    OK(s, w.launch(w.add, w.other, w.p));
  });
  in_child([](Session& s) {  // the legacy stream beside one that does not wait for it
    World w(s);
    w.begin();
    OK(s, w.launch(w.add, nullptr, w.p));
    w.end(CUDA_SUCCESS);
    IS(s, w.value(), 1);
  });
  in_child([](Session& s) {  // two captures
    World w(s);
    w.begin();
    OK(s, s.cuStreamBeginCapture(w.other, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(s, s.cuEventRecord(w.fork, w.other));
    IS(s, s.cuStreamWaitEvent(w.stream, w.fork, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    IS(s, w.status(w.stream), invalidated);
    IS(s, w.status(w.other), invalidated);
  });
}

TEST_CASE("A capture ends where it began: same stream and same thread unless it is relaxed") {
  in_child([](Session& s) {
    World w(s);
    CUcontext context = nullptr;
    CUgraph graph = nullptr;
    OK(s, s.cuCtxGetCurrent(&context));
    w.begin();
    std::thread([&] {
      OK(s, s.cuCtxSetCurrent(context));
      IS(s, s.cuStreamEndCapture(w.stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    OK(s, s.cuEventRecord(w.fork, w.stream));
    OK(s, s.cuStreamWaitEvent(w.other, w.fork, 0));
    IS(s, s.cuStreamEndCapture(w.other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    w.end(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    w.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    std::thread([&] {
      OK(s, s.cuCtxSetCurrent(context));
      OK(s, s.cuStreamEndCapture(w.stream, &graph));
    }).join();
    OK(s, s.cuStreamDestroy(w.stream));
  });
}

TEST_CASE("A bad address in a captured copy is found when the graph runs") {
  in_child([](Session& s) {
    World w(s);
    CUgraphExec instance = nullptr;
    w.begin();
    OK(s, s.cuMemsetD8Async(w.p + 60, 0, 8, w.stream));
    w.end(CUDA_SUCCESS);
    OK(s, s.cuGraphInstantiateWithFlags(&instance, w.graph, 0));
    OK(s, s.cuGraphLaunch(instance, w.stream));
    IS(s, s.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  });
}
