// SPDX-License-Identifier: MIT
// Every driver call that the library makes fails in each public function, at its first, second and
// last time; with each status that it documents in the first function that makes it. With
// NVFP4_LONG at every time with each, in every function. Each time: the right status and a sentence
// that names the call, D untouched, nothing left behind, and the next call works. The driver is the
// emulator, in a process of its own that has not used one before.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "host/cuda/driver.h"
#include "host/plan/variant.h"
#include "nvfp4emu.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

// The PTX among the images that an emulated 10.0 is offered.
extern "C" const unsigned char nvfp4_image_compute_100f[], nvfp4_image_quantize_compute_100f[],
    nvfp4_image_quantize_compute_90[], nvfp4_image_mma_compute_80[];

namespace {

// ---- what is expected ---------------------------------------------------------------------------

struct Fault {
  std::string entry;
  int nth;
  int code;
};

// Errors that an earlier launch leaves in its context.
bool is_sticky(int code) {
  for (int sticky : {700, 702, 714, 715, 716, 717, 718, 719, 721})
    if (code == sticky) return true;
  return false;
}

nvfp4_status expected(const Fault& f) {
  if (is_sticky(f.code)) return NVFP4_STATUS_PRIOR_ERROR;
  if (f.entry == "cuGetProcAddress")
    return f.code == 34 ? NVFP4_STATUS_NO_DRIVER : NVFP4_STATUS_DRIVER_TOO_OLD;
  if (f.entry == "cuDriverGetVersion") return NVFP4_STATUS_NO_DRIVER;
  if (f.code == CUDA_ERROR_OUT_OF_MEMORY) return NVFP4_STATUS_OUT_OF_MEMORY;
  if (f.code == CUDA_ERROR_NO_DEVICE) return NVFP4_STATUS_NO_DEVICE;
  if (f.code == CUDA_ERROR_STUB_LIBRARY) return NVFP4_STATUS_NO_DRIVER;
  if (f.code == CUDA_ERROR_INVALID_CONTEXT || f.code == CUDA_ERROR_CONTEXT_IS_DESTROYED)
    return NVFP4_STATUS_NO_CONTEXT;
  if (f.entry == "cuInit") return NVFP4_STATUS_NO_DRIVER;
  if (f.entry.rfind("cuLibrary", 0) == 0) return NVFP4_STATUS_IMAGE_LOAD;
  return NVFP4_STATUS_DRIVER_ERROR;
}

// What the library can do without: another image follows one that is not for the device; unloading
// and the capture mode are attempts.
bool may_be_survived(const Fault& f) {
  return f.entry == "cuLibraryUnload" || f.entry == "cuThreadExchangeStreamCaptureMode" ||
         f.code == CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// The statuses that the driver API manual lists for each call, those of earlier work (700 and the
// like) where it says so, and one number that no driver has.
struct Documented {
  const char* entry;
  std::vector<int> codes;
};
const std::vector<Documented>& documented() {
  static const std::vector<Documented> rows = {
      {"cuGetProcAddress", {1, 34, 801}},
      {"cuDriverGetVersion", {1}},
      {"cuInit", {1, 34, 100, 101, 304, 803, 804, 999}},
      {"cuDeviceGetCount", {1, 3, 4, 201}},
      {"cuCtxGetCurrent", {3, 4, 12345}},
      {"cuCtxGetDevice", {1, 3, 4, 201, 709}},
      {"cuDeviceGetAttribute", {1, 3, 4, 101}},
      {"cuThreadExchangeStreamCaptureMode", {1, 3}},
      {"cuLibraryLoadData", {1, 2, 200, 209, 218, 221, 222, 302, 700}},
      {"cuLibraryGetKernel", {1, 4, 201, 209, 400, 500}},
      {"cuLibraryUnload", {1, 4}},
      {"cuKernelSetAttribute", {1, 2, 201, 400}},
      {"cuKernelGetFunction", {1, 201, 400, 2}},
      {"cuFuncLoad", {1, 2, 700}},
      {"cuOccupancyMaxActiveClusters", {1, 4, 201}},
      {"cuTensorMapEncodeTiled", {1, 3, 201}},
      {"cuLaunchKernelEx", {1, 2, 4, 200, 201, 303, 400, 700, 701, 702, 703, 716, 719, 720, 900}},
      {"cuMemsetD2D16Async", {1, 201, 700, 719, 900}},
      {"cuMemcpyHtoDAsync", {1, 201, 700}},
      {"cuMemcpyDtoHAsync", {1, 201, 700}},
      {"cuStreamIsCapturing", {1, 201, 700}},
      {"cuStreamSynchronize", {1, 201, 700}},
  };
  return rows;
}

// ---- in the child -------------------------------------------------------------------------------

template <class F>
void find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, name));
  if (*function == nullptr) _exit(3);
}

constexpr int64_t kM = 3, kN = 5, kK = 64;

// One small problem on the emulator.
class Scene {
 public:
  Scene() {
    setenv("EMU_WORKERS", "1", 1);
    // Its soname is then what the library's dlopen("libcuda.so.1") finds.
    void* library =
        dlopen(host_test::built("emulator/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) _exit(3);
    find(library, "cuInit", &init_);
    find(library, "cuCtxCreate_v2", &create_);
    find(library, "cuCtxDestroy_v2", &destroy_);
    find(library, "cuMemAlloc_v2", &allocate_);
    find(library, "cuMemcpyHtoD_v2", &upload_);
    find(library, "cuMemcpyDtoH_v2", &download_);
    find(library, "nvfp4emu_fail", &fail);
    find(library, "nvfp4emu_fail_pending", &pending);
    find(library, "nvfp4emu_ledger", &ledger_);
    find(library, "nvfp4emu_calls", &calls_);
    find(library, "nvfp4emu_reset_calls", &forget_calls);
    init_(0);
    enter();
  }

  void enter() {
    create_(&context_, 0, 0);
    const std::vector<uint8_t> codes(kN * kK / 2, 0x22), scales(512, 0x38), d(2 * kM * kN, 0xFF);
    desc = NVFP4_GEMM_DESC_INIT;
    desc.m = kM, desc.n = kN, desc.k = kK, desc.l = 1;
    desc.a = desc.b = put(codes), desc.a_ld = desc.b_ld = kK;
    desc.a_scales = desc.b_scales = put(scales);
    desc.a_scale_layout = desc.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    desc.d = put(d), desc.d_ld = kN, desc.d_type = NVFP4_TYPE_F16;
    desc.alpha = 0.5f;
    // 5 x 16 of fp16; the search for its tensor scale is one kernel, the rest another.
    quantize = nvfp4_quantize_desc{};
    quantize.struct_size = sizeof quantize;
    quantize.rows = kN, quantize.k = quantize.x_ld = quantize.codes_ld = 16;
    quantize.x = const_cast<void*>(desc.a), quantize.x_type = NVFP4_TYPE_F16;
    quantize.codes = put(codes), quantize.scales = put(scales);
    quantize.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    quantize.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX;
    quantize.tensor_scale_device = static_cast<float*>(put(scales));
    space = put(std::vector<uint8_t>(space_bytes));
    quantize.workspace = put(scales), quantize.workspace_bytes = scales.size();
    pack = NVFP4_PACK_DESC_INIT;
    pack.n = kN, pack.k = pack.codes_ld = kK;
    pack.codes = put(codes), pack.scales = put(scales);
    pack.scale_layout = NVFP4_SCALE_LAYOUT_128X4, pack.packing = NVFP4_PACKING_SM90_1;
    pack.packed = put(std::vector<uint8_t>(
        nvfp4_packed_bytes(kN, kK, NVFP4_PACKING_SM90_1, NVFP4_OPERAND_FORMAT_NVFP4)));
  }
  // A new context in place of one that carries an error.
  void renew() {
    destroy_(context_);
    enter();
  }

  // 64 products of 1 * 1, halved.
  bool d_is(uint16_t element) const {
    std::vector<uint16_t> d(kM * kN);
    if (download_(d.data(), reinterpret_cast<CUdeviceptr>(desc.d), 2 * d.size())) return false;
    for (uint16_t x : d)
      if (x != element) return false;
    return true;
  }
  nvfp4emu_counts alive() const {
    nvfp4emu_counts counts;
    ledger_(&counts);
    return counts;
  }

  nvfp4_gemm_desc desc;
  nvfp4_quantize_desc quantize;
  nvfp4_pack_desc pack;
  void* space;  // of the self test
  uint64_t space_bytes = nvfp4_selftest_bytes(100);
  decltype(&nvfp4emu_fail) fail;
  decltype(&nvfp4emu_fail_pending) pending;
  decltype(&nvfp4emu_reset_calls) forget_calls;

  // A line for each since they were forgotten.
  std::string calls() const {
    std::string text(calls_(nullptr, 0), '\0');
    calls_(text.data(), text.size());
    text.pop_back();  // the NUL
    return text;
  }

 private:
  void* put(const std::vector<uint8_t>& content) {
    CUdeviceptr address = 0;
    if (allocate_(&address, content.size()) || upload_(address, content.data(), content.size()))
      _exit(3);
    return reinterpret_cast<void*>(address);
  }

  CUcontext context_ = nullptr;
  CUresult (*init_)(unsigned);
  CUresult (*create_)(CUcontext*, unsigned, CUdevice);
  CUresult (*destroy_)(CUcontext);
  CUresult (*allocate_)(CUdeviceptr*, size_t);
  CUresult (*upload_)(CUdeviceptr, const void*, size_t);
  CUresult (*download_)(void*, CUdeviceptr, size_t);
  decltype(&nvfp4emu_ledger) ledger_;
  decltype(&nvfp4emu_calls) calls_;
};

constexpr uint16_t kHalfOf64 = 0x5000;  // 32 as fp16
constexpr uint16_t kZero = 0, kUntouched = 0xFFFF;

struct Function {
  const char* name;
  nvfp4_status (*call)(Scene&);
  uint16_t d;  // what D holds after success
  uint64_t libraries = 1;
  // Takes seconds: of its calls only these fail, which no other function makes, at their first turn
  // and in one way; the call that works afterwards is a product. Except for NVFP4_LONG.
  std::vector<const char*> alone = {};
};

nvfp4_status create_and_destroy(Scene& scene) {
  nvfp4_gemm_plan* plan = nullptr;
  const nvfp4_status status = nvfp4_gemm_plan_create(&scene.desc, &plan);
  if ((plan != nullptr) != (status == NVFP4_SUCCESS)) return NVFP4_STATUS_INTERNAL;
  nvfp4_gemm_plan_destroy(plan);
  return status;
}

// The plan is made without a fault, so only plan_run's own calls fail. Other addresses: both maps.
nvfp4_gemm_plan* the_plan;
nvfp4_status run_plan(Scene& scene) {
  nvfp4_gemm_addresses x{};
  x.struct_size = sizeof x;
  x.a = scene.desc.a, x.a_scales = scene.desc.a_scales;
  x.b = scene.desc.b, x.b_scales = scene.desc.b_scales, x.d = scene.desc.d;
  return nvfp4_gemm_plan_run(the_plan, &x, nullptr);
}
nvfp4_status fill(Scene& scene) {
  nvfp4_gemm_desc g = scene.desc;
  g.k = 0;
  return nvfp4_gemm_run(&g, nullptr);
}

const Function functions[] = {
    {"nvfp4_gemm_run", [](Scene& s) { return nvfp4_gemm_run(&s.desc, nullptr); }, kHalfOf64},
    {"nvfp4_gemm_run with K = 0", fill, kZero},
    {"nvfp4_gemm_plan_create", create_and_destroy, kUntouched},
    {"nvfp4_gemm_plan_run", run_plan, kHalfOf64},
    // A quantizer's image that refuses once leaves that entry to the next image.
    {"nvfp4_prepare", [](Scene&) { return nvfp4_prepare(); }, kUntouched, 3},
    {"nvfp4_quantize", [](Scene& s) { return nvfp4_quantize(&s.quantize, nullptr); }, kUntouched,
     2},
    {"nvfp4_pack_weights", [](Scene& s) { return nvfp4_pack_weights(&s.pack, nullptr); },
     kUntouched, 2},
    {"nvfp4_unpack_weights", [](Scene& s) { return nvfp4_unpack_weights(&s.pack, nullptr); },
     kUntouched, 2},
    {"nvfp4_selftest",
     [](Scene& s) { return nvfp4_selftest(s.space, s.space_bytes, nullptr); },
     kUntouched,
     3,
     {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamIsCapturing", "cuStreamSynchronize"}},
};

bool everything() { return getenv("NVFP4_LONG") != nullptr; }

bool same_counts(const nvfp4emu_counts& a, const nvfp4emu_counts& b) {
  return a.allocations == b.allocations && a.allocated_bytes == b.allocated_bytes &&
         a.modules == b.modules && a.streams == b.streams && a.events == b.events;
}

// Ends the child: 0 = as it should be, 1 = the fault never came, 2 = wrong, said on stderr.
[[noreturn]] void wrong(const char* what) {
  fprintf(stderr, "%s; last error: %s\n", what, nvfp4_last_error());
  _exit(2);
}

// What the function finds made.
void prepare(const Function& function, Scene& scene) {
  if (function.call != run_plan) return;
  nvfp4_gemm_desc other = scene.desc;
  other.a = other.b = reinterpret_cast<void*>(1ull << 40);
  if (nvfp4_gemm_plan_create(&other, &the_plan) != NVFP4_SUCCESS) wrong("no plan");
}

// Where nothing fails: the calls that it makes, on stdout.
void tell_calls(const Function& function) {
  Scene scene;
  prepare(function, scene);
  scene.forget_calls();
  if (function.call(scene) != NVFP4_SUCCESS) wrong("it fails by itself");
  printf("%s", scene.calls().c_str());
}

void play(const Function& function, const Fault& fault) {
  Scene scene;
  prepare(function, scene);
  const nvfp4emu_counts before = scene.alive();
  scene.fail(fault.entry.c_str(), static_cast<uint64_t>(fault.nth), fault.code);
  const nvfp4_status status = function.call(scene);
  if (scene.pending()) _exit(status == NVFP4_SUCCESS ? 1 : 2);
  const bool survived = status == NVFP4_SUCCESS && may_be_survived(fault);
  if (!survived && status != expected(fault)) wrong(nvfp4_status_name(status));
  if (!survived && strstr(nvfp4_last_error(), fault.entry.c_str()) == nullptr &&
      fault.entry != "cuGetProcAddress")
    wrong("the sentence does not name the call");
  if (!survived && !is_sticky(fault.code)) {
    if (!scene.d_is(kUntouched)) wrong("D was written");
    if (!same_counts(before, scene.alive())) wrong("something is left behind");
  }
  if (is_sticky(fault.code)) {
    if (function.call(scene) != NVFP4_STATUS_PRIOR_ERROR) wrong("the sticky error is gone");
    scene.renew();
  }
  const Function& next = function.alone.empty() || everything() ? function : functions[0];
  if (next.call(scene) != NVFP4_SUCCESS) wrong("the next call fails");
  if (!scene.d_is(next.d)) wrong("the next call's D is wrong");
  const uint64_t libraries = function.libraries + (fault.entry == "cuLibraryUnload");
  if (scene.alive().libraries > libraries) wrong("a library is left behind");
}

// Its exit code, 2 if it was killed, and what it wrote to that stream.
int in_child(const std::function<void()>& body, int stream, std::string* told) {
  int ends[2];
  if (pipe(ends) != 0) return 2;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], stream);
    close(ends[0]);
    close(ends[1]);
    body();
    fflush(stdout);
    _exit(0);
  }
  close(ends[1]);
  char buffer[1024];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) told->append(buffer, size_t(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

// The names of all kernels, whatever image has them.
std::vector<const char*> kernel_names() {
  std::vector<const char*> names = {
#define QUANTIZER_ENTRY(name) "nvfp4_" #name,
#include "host/run/quantizer_entries.def"
#undef QUANTIZER_ENTRY
  };
  for (uint32_t i = 0; i < nvfp4::kVariantCount; ++i)
    for (const nvfp4::Entry& entry : nvfp4::variant_at(i).entries)
      if (entry.name != nullptr) names.push_back(entry.name);
  return names;
}

// The emulator parses the library's PTX here, once, and the children know it: it reads a kernel's
// body when somebody sets an attribute of it. The library has done nothing yet.
void read_images() {
  setenv("EMU_WORKERS", "1", 1);
  void* emulator = dlopen(host_test::built("emulator/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (emulator == nullptr) _exit(3);
  decltype(&cuInit) init;
  decltype(&cuLibraryLoadData) load;
  decltype(&cuLibraryUnload) unload;
  decltype(&cuLibraryGetKernel) get;
  decltype(&cuKernelSetAttribute) set;
  find(emulator, "cuInit", &init);
  find(emulator, "cuLibraryLoadData", &load);
  find(emulator, "cuLibraryUnload", &unload);
  find(emulator, "cuLibraryGetKernel", &get);
  find(emulator, "cuKernelSetAttribute", &set);
  init(0);
  for (const unsigned char* image : {nvfp4_image_compute_100f, nvfp4_image_quantize_compute_100f,
                                     nvfp4_image_quantize_compute_90, nvfp4_image_mma_compute_80}) {
    CUlibrary library = nullptr;
    if (load(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0)) _exit(3);
    for (const char* name : kernel_names()) {
      CUkernel kernel = nullptr;
      if (get(&kernel, library, name) == CUDA_SUCCESS &&
          set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, kernel, 0))
        _exit(3);
    }
    if (unload(library)) _exit(3);
  }
}

// Each status at the first turn of the first function that makes the call, later another one at
// each, except for NVFP4_LONG.
std::vector<int> codes_of(const Documented& row, int nth) {
  static std::set<std::string> met;
  if (everything() || (nth == 1 && met.insert(row.entry).second)) return row.codes;
  return {row.codes[size_t(nth - 1) % row.codes.size()]};
}

// The first turn, the second and the last of so many; all, and the one that never comes, with
// NVFP4_LONG.
std::vector<int> turns_of(int count) {
  std::vector<int> turns;
  for (int nth = 1; nth <= count + everything(); ++nth) {
    if (nth <= 2 || nth >= count || everything()) turns.push_back(nth);
  }
  return turns;
}

// How often each entry point is called; ends the process where it cannot be told.
std::map<std::string, int> count_calls(const Function& function) {
  std::string told;
  if (in_child([&] { tell_calls(function); }, STDOUT_FILENO, &told) != 0) {
    printf("%s: %s", function.name, told.c_str());
    fflush(stdout);
    _exit(2);
  }
  std::map<std::string, int> counts;
  std::istringstream lines(told);
  for (std::string entry; std::getline(lines, entry);) ++counts[entry];
  return counts;
}

// How it ended: 0 = as it should, 1 = the call never came. Ends the process where it goes wrong.
int play_alone(const Function& function, const Fault& fault) {
  const auto turn = [&] {
    alarm(60);
    play(function, fault);
  };
  std::string told;
  const int ended = in_child(turn, STDERR_FILENO, &told);
  if (ended <= 1) return ended;
  printf("%s, where %s fails the %d. time, with %d: %s", function.name, fault.entry.c_str(),
         fault.nth, fault.code, told.c_str());
  fflush(stdout);
  _exit(2);
}

// How many were played.
int play_all(const Function& function) {
  const bool all = everything() || function.alone.empty();
  std::map<std::string, int> counts;
  if (all) counts = count_calls(function);
  if (!all)
    for (const char* entry : function.alone) counts[entry] = 1;
  int played = 0;
  for (const Documented& row : documented()) {
    const int count = counts[row.entry];
    for (const int nth : turns_of(count)) {
      for (const int code : all ? codes_of(row, nth) : std::vector<int>{row.codes.front()}) {
        const bool never = play_alone(function, {row.entry, nth, code}) == 1;
        if (never != (nth > count)) wrong("a call comes more or less often than without a fault");
        played += !never;
      }
    }
  }
  return played;
}

}  // namespace

TEST_CASE("Each driver call fails at several turns and with each status in each function") {
  if (!host_test::emulator_is_built()) SKIP_TEST("the emulator is not built");
  std::string told;
  const auto play_functions = [] {
    read_images();
    int played = 0;
    for (const Function& function : functions) played += play_all(function);
    printf("%d", played);
  };
  const int ended = in_child(play_functions, STDOUT_FILENO, &told);
  INFO(told);
  REQUIRE(ended == 0);
  std::printf("faults: %s played\n", told.c_str());
  CHECK(std::stoi(told) > (everything() ? 300 : 100));
}
