// SPDX-License-Identifier: MIT
// From a checked problem to one launch: driver, context, device, plan, image, tensor maps, launch.
#include "host/launch.h"

#include <cinttypes>

#include "host/driver.h"
#include "host/formats.h"
#include "host/image.h"
#include "host/log.h"
#include "host/plan.h"
#include "host/tensor_map.h"
#include "kernel/gemm_params.h"

namespace nvfp4 {

namespace {

// What the library remembers of a device: immutable facts, so threads that race store the same.
constexpr int kRememberedDevices = 64;
int32_t capability_of_device[kRememberedDevices];  // 0 = not asked yet
uint64_t prepared_devices[kVariantCount];          // bit d: shared memory of the kernel is set

nvfp4_status current_device(const Driver& driver, CUdevice* device) {
  CUcontext context = nullptr;
  CUresult result = driver.cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuCtxGetCurrent", result);
  if (context == nullptr) {
    return fail(
        NVFP4_STATUS_NO_CONTEXT,
        "no CUDA context is current on this thread; make one current before nvfp4_gemm_run");
  }
  result = driver.cuCtxGetDevice(device);
  return result == CUDA_SUCCESS ? NVFP4_SUCCESS : driver_failure(driver, "cuCtxGetDevice", result);
}

nvfp4_status attribute(const Driver& driver, CUdevice_attribute which, CUdevice device,
                       int* value) {
  const CUresult result = driver.cuDeviceGetAttribute(value, which, device);
  if (result == CUDA_SUCCESS) return NVFP4_SUCCESS;
  return driver_failure(driver, "cuDeviceGetAttribute", result);
}

nvfp4_status compute_capability(const Driver& driver, CUdevice device, int32_t* capability) {
  const bool remembered = device >= 0 && device < kRememberedDevices;
  if (remembered) {
    *capability = __atomic_load_n(&capability_of_device[device], __ATOMIC_RELAXED);
    if (*capability != 0) return NVFP4_SUCCESS;
  }
  int major, minor;
  NVFP4_TRY(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, &major));
  NVFP4_TRY(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, &minor));
  *capability = 10 * major + minor;
  if (remembered) __atomic_store_n(&capability_of_device[device], *capability, __ATOMIC_RELAXED);
  return NVFP4_SUCCESS;
}

// More than 48 KB of dynamic shared memory has to be asked for, once per kernel and device.
nvfp4_status allow_shared_memory(const Driver& driver, const Plan& plan, CUdevice device,
                                 CUkernel kernel) {
  const bool remembered = device >= 0 && device < kRememberedDevices;
  const uint64_t bit = remembered ? uint64_t{1} << device : 0;
  uint64_t* prepared = &prepared_devices[plan.variant_index];
  if ((__atomic_load_n(prepared, __ATOMIC_ACQUIRE) & bit) != 0) return NVFP4_SUCCESS;
  const CUresult result =
      driver.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                  static_cast<int>(plan.variant->shared_bytes), kernel, device);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuKernelSetAttribute", result);
  __atomic_fetch_or(prepared, bit, __ATOMIC_RELEASE);
  return NVFP4_SUCCESS;
}

nvfp4_status make_params(const Driver& driver, const nvfp4_gemm_desc& g, const Plan& plan,
                         GemmParams* p) {
  NVFP4_TRY(encode_tensor_map(driver, "b", g.b, g.n, g.k, g.l, g.b_ld, g.b_batch_stride,
                              plan.variant->tile_weights, &p->weights));
  NVFP4_TRY(encode_tensor_map(driver, "a", g.a, g.m, g.k, g.l, g.a_ld, g.a_batch_stride,
                              plan.variant->tile_tokens, &p->tokens));
  p->weight_scales = static_cast<const uint8_t*>(g.b_scales);
  p->token_scales = static_cast<const uint8_t*>(g.a_scales);
  const bool batches = g.l > 1;  // else the strides were not looked at and may hold anything
  p->weight_scales_batch_bytes = batches ? g.b_scales_batch_stride_bytes : 0;
  p->token_scales_batch_bytes = batches ? g.a_scales_batch_stride_bytes : 0;
  p->d = g.d;
  p->d_ld = g.d_ld;
  p->d_batch_stride = batches ? g.d_batch_stride : 0;
  p->m = static_cast<uint32_t>(g.m);
  p->n = static_cast<uint32_t>(g.n);
  p->k = static_cast<uint32_t>(g.k);
  p->tiles_m = plan.tiles_m;
  p->tiles_n = plan.tiles_n;
  p->alpha = g.alpha;
  return NVFP4_SUCCESS;
}

nvfp4_status enqueue(const Driver& driver, const Plan& plan, CUkernel kernel, GemmParams* params,
                     CUstream stream) {
  CUlaunchConfig config{};
  config.gridDimX = plan.grid;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = plan.variant->threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = plan.variant->shared_bytes;
  config.hStream = stream;
  void* arguments[] = {params};
  // A CUkernel stands for its CUfunction in the current context (cuLaunchKernelEx, driver API).
  const CUresult result =
      driver.cuLaunchKernelEx(&config, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
  return result == CUDA_SUCCESS ? NVFP4_SUCCESS
                                : driver_failure(driver, "cuLaunchKernelEx", result);
}

// K = 0: every element is round(alpha * 0), which alpha = infinity or NaN makes NaN. No tensor map
// has an empty dimension, so this is a fill and not a launch: one for all batches if they lie behind
// each other without a gap.
nvfp4_status enqueue_empty_sum(const Driver& driver, const nvfp4_gemm_desc& g, CUstream stream) {
  const uint16_t value = f16_from_f32(f32_multiply(f32_bits(g.alpha), f32_bits(0.0f)));
  const bool gapless = g.l == 1 || g.d_batch_stride == g.m * g.d_ld;
  const int64_t fills = gapless ? 1 : g.l;
  const size_t rows = static_cast<size_t>(gapless ? g.m * g.l : g.m);
  for (int64_t fill = 0; fill < fills; ++fill) {
    const CUdeviceptr first =
        reinterpret_cast<CUdeviceptr>(g.d) + 2 * static_cast<uint64_t>(fill * g.d_batch_stride);
    const CUresult result = driver.cuMemsetD2D16Async(first, 2 * static_cast<size_t>(g.d_ld), value,
                                                      static_cast<size_t>(g.n), rows, stream);
    if (result != CUDA_SUCCESS) return driver_failure(driver, "cuMemsetD2D16Async", result);
  }
  return NVFP4_SUCCESS;
}

void log_call(const nvfp4_gemm_desc& g, const char* image, const char* variant, uint32_t grid) {
  log_line(LogLevel::call,
           "gemm m=%" PRId64 " n=%" PRId64 " k=%" PRId64 " l=%" PRId64
           " image=\"%s\" variant=%s grid=%" PRIu32,
           g.m, g.n, g.k, g.l, image, variant, grid);
}

}  // namespace

nvfp4_status launch_gemm(const nvfp4_gemm_desc& g, void* stream) {
  const Driver* driver;
  CUdevice device;
  int32_t capability;
  Plan plan;
  NVFP4_TRY(open_driver(&driver));
  NVFP4_TRY(current_device(*driver, &device));
  NVFP4_TRY(compute_capability(*driver, device, &capability));
  NVFP4_TRY(make_plan(g, capability, &plan));
  if (g.k == 0) {
    log_call(g, "none", "fill", 0);
    return enqueue_empty_sum(*driver, g, static_cast<CUstream>(stream));
  }
  LoadedKernel loaded;
  GemmParams params{};
  NVFP4_TRY(load_kernel(*driver, plan, &loaded));
  NVFP4_TRY(allow_shared_memory(*driver, plan, device, loaded.kernel));
  NVFP4_TRY(make_params(*driver, g, plan, &params));
  NVFP4_TRY(enqueue(*driver, plan, loaded.kernel, &params, static_cast<CUstream>(stream)));
  log_call(g, loaded.image, plan.variant->name, plan.grid);
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
