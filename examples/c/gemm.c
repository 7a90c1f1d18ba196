/* SPDX-License-Identifier: MIT
 *
 * gemm.c: D = A * B^T + bias with NVFP4 operands, from fp32 to bf16, in one C99 program: what a
 * layer of a model computes. Scalars are read from device memory, and the scales of A are linear,
 * one row after the other, as a quantizer of activations may leave them.
 *
 *     cc -std=c99 -Iinclude examples/c/gemm.c -o gemm -Lbuild -lnvfp4gemm -ldl -lm
 *
 * Quantizes on the host, runs on the first GPU, and compares with the library's CPU reference.
 * Without a driver it says so and computes the reference alone. No CUDA header or library is needed
 * to build it; a program that uses CUDA anyway has its context and buffers already.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvfp4_gemm.h"

static int64_t M = 100, N = 200, K = 256; /* or as the program's arguments */

/* ---- A matrix in NVFP4 -------------------------------------------------------------------------
 */

typedef struct {
  void *codes, *scales;
  size_t code_bytes, scale_bytes;
  float tensor_scale; /* value = code * scale * tensor_scale */
  int32_t layout;     /* of the scales */
} matrix;

static void check(nvfp4_status status) {
  if (status == NVFP4_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", nvfp4_status_name(status), nvfp4_last_error());
  exit(1);
}

/* Zeroed, and 16-byte aligned as malloc is on 64-bit systems. */
static void* allocate(size_t bytes) {
  void* memory = calloc(bytes, 1);
  if (memory == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

static matrix quantize(const float* x, int64_t rows, int64_t k, int32_t layout) {
  float amax = 0;
  for (int64_t i = 0; i < rows * k; ++i) amax = fmaxf(amax, fabsf(x[i]));
  matrix q;
  q.tensor_scale = amax / 2688.0f; /* the largest scale 448 times the largest element 6 */
  q.code_bytes = (size_t)(rows * k / 2);
  q.layout = layout;
  q.scale_bytes = nvfp4_scale_bytes(rows, k, layout);
  q.codes = allocate(q.code_bytes);
  q.scales = allocate(q.scale_bytes);
  check(nvfp4_quantize_host(x, k, rows, k, q.tensor_scale, q.codes, k, q.scales, layout));
  return q;
}

static float* random_values(int64_t count) {
  float* x = allocate((size_t)count * sizeof *x);
  for (int64_t i = 0; i < count; ++i) x[i] = 2.0f * (float)rand() / (float)RAND_MAX - 1.0f;
  return x;
}

static matrix random_matrix(int64_t rows, int64_t k, int32_t layout) {
  float* x = random_values(rows * k);
  matrix q = quantize(x, rows, k, layout);
  free(x);
  return q;
}

/* ---- The few driver functions that this program needs ------------------------------------------
 */

typedef unsigned long long device_pointer;

static struct {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*alloc)(device_pointer*, size_t);
  int (*to_device)(device_pointer, const void*, size_t);
  int (*to_host)(void*, device_pointer, size_t);
  int (*synchronize)(void);
  int (*attribute)(int*, int, int);
} cu;

static int find(void* library, const char* name, void* function) {
  *(void**)function = dlsym(library, name);
  return *(void**)function != NULL;
}

/* 0 if there is no driver or no device. */
static int open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
  return library != NULL && find(library, "cuInit", &cu.init) &&
         find(library, "cuDevicePrimaryCtxRetain", &cu.retain) &&
         find(library, "cuCtxSetCurrent", &cu.set_current) &&
         find(library, "cuMemAlloc_v2", &cu.alloc) &&
         find(library, "cuMemcpyHtoD_v2", &cu.to_device) &&
         find(library, "cuMemcpyDtoH_v2", &cu.to_host) &&
         find(library, "cuCtxSynchronize", &cu.synchronize) &&
         find(library, "cuDeviceGetAttribute", &cu.attribute) && cu.init(0) == 0 &&
         cu.retain(&context, 0) == 0 && cu.set_current(context) == 0;
}

static void require(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "%s failed with driver error %d\n", what, failed);
  exit(1);
}

static void* allocate_on_device(size_t bytes) {
  device_pointer pointer = 0;
  require(cu.alloc(&pointer, bytes), "allocating on the device");
  return (void*)(uintptr_t)pointer;
}

static void* copy_to_device(const void* host, size_t bytes) {
  void* pointer = allocate_on_device(bytes);
  require(cu.to_device((device_pointer)(uintptr_t)pointer, host, bytes), "copying to the device");
  return pointer;
}

/* 10 * major + minor of the first device. */
static int32_t compute_capability(void) {
  enum { MAJOR = 75, MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* */
  int major = 0, minor = 0;
  require(cu.attribute(&major, MAJOR, 0), "asking for the compute capability");
  require(cu.attribute(&minor, MINOR, 0), "asking for the compute capability");
  return 10 * major + minor;
}

/* ---- The product --------------------------------------------------------------------------------
 */

static const float one = 1.0f;

/* In host memory, for the reference. */
static nvfp4_gemm_desc describe(const matrix* a, const matrix* b, const float* bias) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = M, g.n = N, g.k = K;
  g.a = a->codes, g.a_ld = K, g.a_scales = a->scales;
  g.b = b->codes, g.b_ld = K, g.b_scales = b->scales;
  g.a_scale_layout = a->layout, g.b_scale_layout = b->layout;
  g.a_tensor_scale = &a->tensor_scale, g.b_tensor_scale = &b->tensor_scale;
  g.bias = bias, g.bias_type = NVFP4_TYPE_F32; /* a value for each column of D */
  g.scalar_mode = NVFP4_SCALARS_DEVICE, g.alpha_device = &one;
  g.d_ld = N, g.d_type = NVFP4_TYPE_BF16;
  return g;
}

static nvfp4_status run_on_device(nvfp4_gemm_desc g, const matrix* a, const matrix* b,
                                  uint16_t* d) {
  const size_t d_bytes = sizeof *d * (size_t)(M * N);
  g.a = copy_to_device(a->codes, a->code_bytes);
  g.a_scales = copy_to_device(a->scales, a->scale_bytes);
  g.b = copy_to_device(b->codes, b->code_bytes);
  g.b_scales = copy_to_device(b->scales, b->scale_bytes);
  g.a_tensor_scale = copy_to_device(g.a_tensor_scale, sizeof(float));
  g.b_tensor_scale = copy_to_device(g.b_tensor_scale, sizeof(float));
  g.alpha_device = copy_to_device(g.alpha_device, sizeof(float));
  g.bias = copy_to_device(g.bias, (size_t)N * sizeof(float));
  g.d = copy_to_device(d, d_bytes);
  /* On Hopper many tokens need a workspace, and linear scales on Blackwell. */
  nvfp4_status status = nvfp4_gemm_workspace_bytes(&g, compute_capability(), &g.workspace_bytes);
  if (status != NVFP4_SUCCESS) return status;
  if (g.workspace_bytes > 0) g.workspace = allocate_on_device(g.workspace_bytes);
  status = nvfp4_gemm_run(&g, NULL); /* the default stream */
  if (status != NVFP4_SUCCESS) return status;
  require(cu.synchronize(), "the product");
  require(cu.to_host(d, (device_pointer)(uintptr_t)g.d, d_bytes), "copying D back");
  return NVFP4_SUCCESS;
}

static double value_of_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

int main(int argc, char** argv) {
  if (argc == 4) M = atoll(argv[1]), N = atoll(argv[2]), K = atoll(argv[3]);
  const matrix a = random_matrix(M, K, NVFP4_SCALE_LAYOUT_LINEAR);
  const matrix b = random_matrix(N, K, NVFP4_SCALE_LAYOUT_128X4);
  const float* bias = random_values(N);
  const size_t elements = (size_t)(M * N);
  uint16_t *expected = allocate(sizeof *expected * elements), *d = allocate(sizeof *d * elements);
  nvfp4_gemm_desc g = describe(&a, &b, bias);
  g.d = expected;
  check(nvfp4_gemm_reference(&g));
  printf("%s\nreference: D[0][0] = %g\n", nvfp4_build_info(), value_of_bf16(expected[0]));

  if (!open_driver()) {
    printf("no CUDA driver or device here: only the CPU reference was computed\n");
    return 0;
  }
  const nvfp4_status status = run_on_device(g, &a, &b, d);
  if (status == NVFP4_STATUS_UNSUPPORTED_ARCH) {
    printf("%s: only the CPU reference was computed\n", nvfp4_last_error());
    return 0;
  }
  check(status);
  double worst = 0;
  for (size_t i = 0; i < elements; ++i) {
    /* A sum that the tensor core rounds otherwise may come to lie in the next number of bf16. */
    const double want = value_of_bf16(expected[i]);
    worst = fmax(worst, fabs(value_of_bf16(d[i]) - want) / fmax(fabs(want), 1.0));
  }
  printf("device:    D[0][0] = %g, largest relative difference to the reference %g\n",
         value_of_bf16(d[0]), worst);
  return worst <= 1.0 / 128 ? 0 : 1;
}
