// SPDX-License-Identifier: MIT
#include "host/selftest.h"

#include <cinttypes>
#include <cstdlib>
#include <cstring>

#include "host/check/check.h"
#include "host/enqueue.h"
#include "host/formats.h"
#include "host/launch.h"
#include "host/plan/plan.h"
#include "host/reference.h"
#include "host/scale_layout.h"
#include "host/size.h"

namespace nvfp4 {

namespace {

// Five stages, the last with one step of 64; two tiles of 128 weights; rests in M and N. Every group
// of consumer warps has a stage, and a split has parts to share out.
constexpr int64_t kM = 72, kN = 136, kK = 1088;
constexpr float kAlpha = 0.5f;
constexpr uint64_t kAlignment = 256;

constexpr uint64_t up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

constexpr uint64_t scale_tiles(int64_t rows) {
  return static_cast<uint64_t>(ceil_div(rows, int64_t{kScaleTileRows}) * (kK / kScaleTileK));
}

// Where everything lies in the workspace, and up to `image` in host memory, too.
constexpr uint64_t kDBytes = up(kM * kN * sizeof(uint16_t));
constexpr uint64_t kA = 0;
constexpr uint64_t kAScales = kA + up(kM * kK / 2);
constexpr uint64_t kB = kAScales + up(scale_tiles(kM) * kScaleTileBytes);
constexpr uint64_t kBScales = kB + up(kN * kK / 2);
constexpr uint64_t kD = kBScales + up(scale_tiles(kN) * kScaleTileBytes);
constexpr uint64_t kImageBytes = kD + kVariantCount * kDBytes;  // then the product's own workspace

nvfp4_gemm_desc describe(uint8_t* base, uint64_t d) {
  nvfp4_gemm_desc g{};
  g.struct_size = sizeof g;
  g.m = kM, g.n = kN, g.k = kK, g.l = 1;
  const auto at = [base](uint64_t offset) {  // of no base, too
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base) + offset);
  };
  g.a = at(kA), g.b = at(kB);
  g.a_ld = g.b_ld = kK;
  g.a_scales = at(kAScales), g.b_scales = at(kBScales);
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = at(d);
  g.d_ld = kN;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = kAlpha;
  return g;
}

// Any code under a scale of 1/2, 1 or 2: sums of 1,088 products are then exact in every order
// (docs/numerics.md), so that each variant has to give the reference's bits. D is 0xFF, which no
// product is.
void fill_image(uint8_t* image) {
  uint32_t state = 1;
  for (uint64_t i = 0; i < kD; ++i) {
    state = state * 1664525 + 1013904223;  // a full period of 2^32
    const uint32_t random = state >> 16;
    const bool scales = (i >= kAScales && i < kB) || i >= kBScales;
    image[i] = static_cast<uint8_t>(scales ? 0x30 + random % 3 * 8 : random);
  }
  memset(image + kD, 0xFF, kImageBytes - kD);
}

struct HostMemory {
  uint8_t* bytes;
  explicit HostMemory(size_t size) : bytes(static_cast<uint8_t*>(malloc(size))) {}
  ~HostMemory() { free(bytes); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

// The product has quantized tokens.
bool is_tested(const Variant& variant, const Architecture& arch) {
  return serves(variant, arch) && variant.a_type == NVFP4_TYPE_NONE;
}

nvfp4_status plan_for(const Variant& variant, int32_t capability, Plan* plan) {
  nvfp4_gemm_desc g = describe(nullptr, 0);
  g.variant = variant.name;
  const CheckedGemm checked{&g, &variant, false, true};
  return make_plan(checked, capability, plan);
}

nvfp4_status refuse_capture(const Site& site, CUstream stream) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = site.driver->cuStreamIsCapturing(stream, &capture);
  if (result != CUDA_SUCCESS) return driver_failure(*site.driver, "cuStreamIsCapturing", result);
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "stream = %p is being captured, and nvfp4_selftest waits for it",
              static_cast<void*>(stream));
}

nvfp4_status enqueue_product(const Site& site, const Variant& variant, uint8_t* base,
                             uint64_t workspace_bytes, CUstream stream) {
  nvfp4_gemm_desc g = describe(base, kD + index_of(variant) * kDBytes);
  g.variant = variant.name;
  g.workspace = base + kImageBytes;
  g.workspace_bytes = workspace_bytes - kImageBytes;
  CheckedGemm checked;
  PreparedGemm prepared{};
  NVFP4_TRY(check_gemm(&g, Caller::run, &checked));
  NVFP4_TRY(prepare_gemm(site, checked, &prepared));
  return enqueue_gemm(site, prepared, prepared.desc, prepared.params, stream);
}

nvfp4_status enqueue_products(const Site& site, const Architecture& arch, uint8_t* base,
                              uint64_t workspace_bytes, CUstream stream) {
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& variant = variant_at(i);
    if (!is_tested(variant, arch)) continue;
    NVFP4_TRY(enqueue_product(site, variant, base, workspace_bytes, stream));
  }
  return NVFP4_SUCCESS;
}

// Operands up, products, results down; nothing of the host memory is in use when it returns.
nvfp4_status compute(const Site& site, const Architecture& arch, uint8_t* image, void* workspace,
                     uint64_t workspace_bytes, CUstream stream) {
  const Driver& driver = *site.driver;
  const CUdeviceptr base = reinterpret_cast<CUdeviceptr>(workspace);
  CUresult result = driver.cuMemcpyHtoDAsync(base, image, kImageBytes, stream);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuMemcpyHtoDAsync", result);
  nvfp4_status status =
      enqueue_products(site, arch, static_cast<uint8_t*>(workspace), workspace_bytes, stream);
  if (status == NVFP4_SUCCESS) {
    result = driver.cuMemcpyDtoHAsync(image + kD, base + kD, kImageBytes - kD, stream);
    if (result != CUDA_SUCCESS) status = driver_failure(driver, "cuMemcpyDtoHAsync", result);
  }
  result = driver.cuStreamSynchronize(stream);
  if (status != NVFP4_SUCCESS || result == CUDA_SUCCESS) return status;
  return driver_failure(driver, "cuStreamSynchronize", result);
}

nvfp4_status compare(const Variant& variant, const uint8_t* d, const uint8_t* expected) {
  for (int64_t i = 0; i < kM * kN; ++i) {
    uint16_t got, want;
    memcpy(&got, d + 2 * i, sizeof got);
    memcpy(&want, expected + 2 * i, sizeof want);
    if (got == want) continue;
    return fail(NVFP4_STATUS_WRONG_RESULT,
                "variant %s computes 0x%04X in row %" PRId64 ", column %" PRId64
                " of the self test's product, which is 0x%04X",
                variant.name, got, i / kN, i % kN, want);
  }
  return NVFP4_SUCCESS;
}

}  // namespace

uint64_t selftest_bytes(int32_t capability) {
  uint64_t most = 0;
  bool served = false;
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    for (const Architecture& arch : kArchitectures) {
      Plan plan;
      if (arch.capability != capability || !is_tested(variant_at(i), arch)) continue;
      if (plan_for(variant_at(i), capability, &plan) != NVFP4_SUCCESS) continue;
      served = true;
      if (plan.workspace_bytes > most) most = plan.workspace_bytes;
    }
  }
  return served ? kImageBytes + most : 0;
}

nvfp4_status run_selftest(void* workspace, uint64_t workspace_bytes, void* stream) {
  Site site;
  uint32_t arch;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(find_architecture(site.capability, &arch));
  const uint64_t bytes = selftest_bytes(site.capability);
  if (workspace_bytes < bytes) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                " that nvfp4_selftest_bytes() says",
                workspace_bytes, bytes);
  }
  const CUstream queue = static_cast<CUstream>(stream);
  NVFP4_TRY(check_stream(site, queue));
  NVFP4_TRY(refuse_capture(site, queue));
  const HostMemory memory(kImageBytes + kDBytes);
  if (memory.bytes == nullptr) {
    return fail(NVFP4_STATUS_OUT_OF_MEMORY, "no %" PRIu64 " bytes of host memory for the self test",
                kImageBytes + kDBytes);
  }
  fill_image(memory.bytes);
  uint8_t* expected = memory.bytes + kImageBytes;
  reference_gemm(describe(memory.bytes, kImageBytes));
  NVFP4_TRY(compute(site, kArchitectures[arch], memory.bytes, workspace, workspace_bytes, queue));
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    if (!is_tested(variant_at(i), kArchitectures[arch])) continue;
    NVFP4_TRY(compare(variant_at(i), memory.bytes + kD + i * kDBytes, expected));
  }
  return NVFP4_SUCCESS;
}

}  // namespace nvfp4
