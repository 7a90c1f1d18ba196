/* SPDX-License-Identifier: MIT
 *
 * first.c: the program of README. `make first` builds and runs it: on the GPU, or in the emulator
 * if there is none. gemm.c is the same for a layer of a model, with every step checked.
 */
/* clang-format off: README has the same lines */
#include <nvfp4_gemm.h>                       /* C99, needs no CUDA header */
#include <stdio.h>
int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuMemAllocManaged(void **, size_t, unsigned), cuCtxSynchronize(void);  /* 0 is success */
int main(void) {
  enum { M = 8, N = 8, K = 64, LAYOUT = NVFP4_SCALE_LAYOUT_128X4 };
  float x[M * K];                             /* D = x * x^T */
  for (int i = 0; i < M * K; ++i) x[i] = (float)(i % 7 - 3);
  void *context, *codes, *scales, *d;         /* memory that CPU and GPU share */
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuMemAllocManaged(&codes, M * K / 2, 1) || cuMemAllocManaged(&d, M * N * sizeof *x, 1) ||
      cuMemAllocManaged(&scales, nvfp4_scale_bytes(M, K, LAYOUT), 1))
    return puts("no GPU, or no memory on it"), 1;
  nvfp4_quantize_host(x, K, M, K, 1.0f, codes, K, scales, LAYOUT);
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = M; g.n = N; g.k = K; g.d = d; g.d_ld = N; g.d_type = NVFP4_TYPE_F32;
  g.a = codes; g.a_ld = K; g.a_scales = scales; g.a_scale_layout = LAYOUT;
  g.b = codes; g.b_ld = K; g.b_scales = scales; g.b_scale_layout = LAYOUT;
  if (nvfp4_gemm_run(&g, NULL) != NVFP4_SUCCESS) return puts(nvfp4_last_error()), 1;
  return cuCtxSynchronize() || printf("D[0][0] = %g\n", *(float *)d) < 0;
}
