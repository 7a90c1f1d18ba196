// SPDX-License-Identifier: MIT
#include "host/run/device.h"

#include <algorithm>

#include "host/plan/family.h"

namespace nvfp4 {

namespace {

// Facts that the library remembers about devices. They never change, so racing threads store the
// same.
constexpr int kRememberedDevices = 64;
int32_t capability_of_device[kRememberedDevices];               // 0 = not queried yet
int32_t sm_count_of_device[kRememberedDevices];                 // stored before the capability
uint32_t row_of_device[kRememberedDevices];                     // stored before the capability
uint64_t prepared_devices[kVariantCount];                       // bit d: set_attributes was called
int32_t clusters_of_device[kVariantCount][kRememberedDevices];  // stored before that bit

nvfp4_status current_device(const Driver& driver, CUcontext* context, CUdevice* device) {
  *context = nullptr;
  CUresult result = driver.cuCtxGetCurrent(context);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuCtxGetCurrent", result);
  if (*context == nullptr) {
    return fail(NVFP4_STATUS_NO_CONTEXT,
                "no CUDA context is current on this thread; make one current before the call");
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

uint32_t row_of(const Driver& driver, int32_t capability) {
  uint32_t first = kArchitectureCount;
  for (uint32_t i = 0; i < kArchitectureCount; ++i) {
    if (kArchitectures[i].capability != capability) continue;
    if (driver.version >= driver_for_row(kArchitectures[i])) return i;
    first = std::min(first, i);
  }
  return first;
}

nvfp4_status find_facts(Site* site) {
  const CUdevice device = site->device;
  const bool remembered = device >= 0 && device < kRememberedDevices;
  if (remembered) {
    site->capability = __atomic_load_n(&capability_of_device[device], __ATOMIC_ACQUIRE);
    site->sm_count = __atomic_load_n(&sm_count_of_device[device], __ATOMIC_RELAXED);
    site->arch_index = __atomic_load_n(&row_of_device[device], __ATOMIC_RELAXED);
    if (site->capability != 0) return NVFP4_SUCCESS;
  }
  const Driver& driver = *site->driver;
  int major, minor, count;
  NVFP4_TRY(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device, &major));
  NVFP4_TRY(attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device, &minor));
  NVFP4_TRY(attribute(driver, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device, &count));
  site->capability = 10 * major + minor;
  site->sm_count = count;
  site->arch_index = row_of(driver, site->capability);
  if (remembered) {
    __atomic_store_n(&sm_count_of_device[device], site->sm_count, __ATOMIC_RELAXED);
    __atomic_store_n(&row_of_device[device], site->arch_index, __ATOMIC_RELAXED);
    __atomic_store_n(&capability_of_device[device], site->capability, __ATOMIC_RELEASE);
  }
  return NVFP4_SUCCESS;
}

nvfp4_status set_attribute(const Site& site, CUkernel kernel, CUfunction_attribute attribute,
                           int value) {
  const CUresult result = site.driver->cuKernelSetAttribute(attribute, value, kernel, site.device);
  return result == CUDA_SUCCESS ? NVFP4_SUCCESS
                                : driver_failure(*site.driver, "cuKernelSetAttribute", result);
}

// Whether the clusters of a variant take one tile after the other, so that its grid should have as
// many of them as run at once.
bool walks_in_clusters(const Variant& v) { return v.several_tiles && v.tile_ctas > 1; }

// Asks the driver how many clusters of a variant run at once. A GPU may have fewer than its SMs
// allow, since all CTAs of a cluster lie in one group of SMs. Every driver that the library accepts
// has this function: it came with CUDA 11.7.
nvfp4_status count_clusters(const Site& site, const Variant& v, CUkernel kernel, int32_t* count) {
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim = {v.tile_ctas, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = v.tile_ctas;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = v.threads;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = v.shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  const CUresult result = site.driver->cuOccupancyMaxActiveClusters(
      count, reinterpret_cast<CUfunction>(kernel), &config);
  if (result == CUDA_SUCCESS) return NVFP4_SUCCESS;
  return driver_failure(*site.driver, "cuOccupancyMaxActiveClusters", result);
}

// Called once per kernel and device. More than 48 KB of dynamic shared memory has to be requested.
// The pre-pass that decodes tokens requests the GEMM's division of the SM's memory, so that a GEMM
// CTA can start beside the last CTA that decodes (kernel/sm90/tile.h). With another division it
// would wait for an empty SM.
nvfp4_status set_attributes(const Site& site, const Plan& plan, const LoadedKernel& loaded) {
  const Variant& variant = *plan.variant;
  const bool remembered = site.device >= 0 && site.device < kRememberedDevices;
  const uint64_t bit = remembered ? uint64_t{1} << site.device : 0;
  uint64_t* prepared = &prepared_devices[index_of(variant)];
  if ((__atomic_load_n(prepared, __ATOMIC_ACQUIRE) & bit) != 0) return NVFP4_SUCCESS;
  const auto most = variant.family->most_shared_bytes;
  for (uint32_t i = 0; i < kOperationCount; ++i) {
    if (loaded.kernels[i] == nullptr) continue;
    const uint32_t bytes =
        most == nullptr ? variant.entries[i].shared_bytes : most(plan.arch(), variant);
    NVFP4_TRY(set_attribute(site, loaded.kernels[i],
                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                            static_cast<int>(bytes)));
  }
  for (const CUkernel tokens : {loaded.tokens, loaded.group_tokens}) {
    if (tokens == nullptr) continue;
    NVFP4_TRY(set_attribute(site, tokens, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                            CU_SHAREDMEM_CARVEOUT_MAX_SHARED));
  }
  if (walks_in_clusters(variant) && remembered) {
    int32_t clusters = 0;
    NVFP4_TRY(count_clusters(site, variant, loaded.kernels[kOperation_any], &clusters));
    __atomic_store_n(&clusters_of_device[index_of(variant)][site.device], clusters,
                     __ATOMIC_RELAXED);
  }
  __atomic_fetch_or(prepared, bit, __ATOMIC_RELEASE);
  return NVFP4_SUCCESS;
}

}  // namespace

nvfp4_status load_into_context(const Driver& driver, CUkernel kernel) {
  CUfunction function = nullptr;
  CUresult result = driver.cuKernelGetFunction(&function, kernel);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuKernelGetFunction", result);
  result = driver.cuFuncLoad(function);
  return result == CUDA_SUCCESS ? NVFP4_SUCCESS : driver_failure(driver, "cuFuncLoad", result);
}

nvfp4_status find_site(Site* site) {
  NVFP4_TRY(open_driver(oldest_driver, &site->driver));
  NVFP4_TRY(current_device(*site->driver, &site->context, &site->device));
  return find_facts(site);
}

nvfp4_status site_architecture(const Site& site, uint32_t* index) {
  NVFP4_TRY(find_architecture(site.capability, index));
  *index = site.arch_index;
  return NVFP4_SUCCESS;
}

nvfp4_status ready_kernel(const Site& site, const Plan& plan, LoadedKernel* loaded) {
  NVFP4_TRY(load_kernel(*site.driver, plan, loaded));
  return set_attributes(site, plan, *loaded);
}

int32_t sms_at_once(const Site& site, const Plan& plan) {
  const Variant& v = *plan.variant;
  if (!walks_in_clusters(v) || site.device < 0 || site.device >= kRememberedDevices) {
    return site.sm_count;
  }
  const int32_t clusters =
      __atomic_load_n(&clusters_of_device[index_of(v)][site.device], __ATOMIC_RELAXED);
  // If the driver answers that none can run, the launch itself reports the reason.
  return std::min(site.sm_count, std::max(clusters, 1) * static_cast<int32_t>(v.tile_ctas));
}

nvfp4_status ready_all_kernels(const Site& site) {
  Plan plan{};
  NVFP4_TRY(site_architecture(site, &plan.arch_index));
  if (!has_image_for(plan.arch(), plan.arch().family)) return refuse_gpu(site.capability);
  const RelaxedCapture relaxed(*site.driver);
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    LoadedKernel loaded{};
    plan.variant = &variant_at(i);
    if (!serves(*plan.variant, plan.arch())) continue;
    if (!has_image_for(plan.arch(), plan.variant->family)) continue;  // see GPUS in kernel.mk
    NVFP4_TRY(ready_kernel(site, plan, &loaded));
    for (const CUkernel kernel : loaded.kernels) {
      if (kernel != nullptr) NVFP4_TRY(load_into_context(*site.driver, kernel));
    }
    for (const CUkernel beside : {loaded.tokens, loaded.group_tokens, loaded.add}) {
      if (beside != nullptr) NVFP4_TRY(load_into_context(*site.driver, beside));
    }
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
