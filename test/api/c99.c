/* SPDX-License-Identifier: MIT
 *
 * A C99 program that includes the header alone and links the library: every function has its
 * symbol, and a small product by the reference is right. Needs no driver. */
#include "nvfp4_gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned passed, failed;

static void check(int ok, const char* what) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    printf("failed: %s\n", what);
  }
}

/* A 2 x 64 by 3 x 64 product of ones: every element is 64. */
static void reference(void) {
  unsigned char a[2 * 32], b[3 * 32], sfa[2 * 4], sfb[3 * 4], tiles[512];
  unsigned short d[6];
  float x[64];
  int i;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  memset(a, 0x22, sizeof a);
  memset(b, 0x22, sizeof b);
  memset(sfa, 0x38, sizeof sfa);
  memset(sfb, 0x38, sizeof sfb);
  memset(d, 0xFF, sizeof d);
  g.m = 2, g.n = 3, g.k = 64;
  g.a = a, g.a_ld = 64, g.a_scales = sfa, g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.b = b, g.b_ld = 64, g.b_scales = sfb, g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.d = d, g.d_ld = 3, g.d_type = NVFP4_TYPE_F16;
  check(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS, "the reference accepts a small product");
  for (i = 0; i < 6; ++i) check(d[i] == 0x5400, "an element is 64");

  check(nvfp4_scale_bytes(2, 64, NVFP4_SCALE_LAYOUT_128X4) == 512,
        "two rows of scales fill one tile");
  check(nvfp4_scale_convert_host(sfa, NVFP4_SCALE_LAYOUT_LINEAR, tiles, NVFP4_SCALE_LAYOUT_128X4, 2,
                                 64) == NVFP4_SUCCESS,
        "scales convert");
  check(tiles[0] == 0x38 && tiles[16] == 0x38 && tiles[32] == 0,
        "rows lie 16 bytes apart, then padding");
  check(nvfp4_dequantize_host(a, 64, sfa, NVFP4_SCALE_LAYOUT_LINEAR, 1, 64, 2.0f, x, 64) ==
                NVFP4_SUCCESS &&
            x[0] == 2.0f && x[63] == 2.0f,
        "dequantizing ones with tensor scale 2 gives twos");
  check(nvfp4_quantize_host(x, 64, 1, 64, 2.0f / 6, a, 64, sfa, NVFP4_SCALE_LAYOUT_LINEAR) ==
                NVFP4_SUCCESS &&
            a[0] == 0x77 && sfa[0] == 0x38,
        "quantizing them with tensor scale 2/6 gives code 6 and scale 1");
}

/* Of each struct: its size, and for the rest the bytes of a struct that was cleared. */
#define CHECK_INIT(type, macro, ...)                                         \
  do {                                                                       \
    type made = macro, wanted;                                               \
    memset(&wanted, 0, sizeof wanted);                                       \
    wanted.struct_size = sizeof wanted;                                      \
    __VA_ARGS__;                                                             \
    check(memcmp(&made, &wanted, sizeof made) == 0, #macro " sets no more"); \
  } while (0)

static void initialisers(void) {
  CHECK_INIT(nvfp4_gemm_desc, NVFP4_GEMM_DESC_INIT, wanted.l = 1, wanted.alpha = 1.0f);
  CHECK_INIT(nvfp4_gemm_addresses, NVFP4_GEMM_ADDRESSES_INIT, (void)0);
  CHECK_INIT(nvfp4_plan_info, NVFP4_PLAN_INFO_INIT, (void)0);
  CHECK_INIT(nvfp4_grouped_desc, NVFP4_GROUPED_DESC_INIT, (void)0);
  CHECK_INIT(nvfp4_quantize_desc, NVFP4_QUANTIZE_DESC_INIT, (void)0);
  CHECK_INIT(nvfp4_fused_quantize_desc, NVFP4_FUSED_QUANTIZE_DESC_INIT, (void)0);
}

static void errors(void) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  check(nvfp4_gemm_run(NULL, NULL) == NVFP4_STATUS_NULL_POINTER, "a null descriptor is refused");
  check(strlen(nvfp4_last_error()) > 0, "a refusal has a sentence");
  g.m = g.n = g.k = 64, g.l = 1;
  check(nvfp4_gemm_supported(&g, 100) != NVFP4_SUCCESS, "an empty descriptor is not supported");
  check(strcmp(nvfp4_status_name(NVFP4_STATUS_MISALIGNED), "NVFP4_STATUS_MISALIGNED") == 0,
        "a status has its name");
  check(strlen(nvfp4_status_string(NVFP4_STATUS_MISALIGNED)) > 0, "a status has its meaning");
  check(nvfp4_gemm_workspace_bytes(&g, 100, NULL) == NVFP4_STATUS_NULL_POINTER,
        "workspace_bytes needs a place for its answer");
  check(nvfp4_set_log_callback(NULL, NULL, 4) == NVFP4_STATUS_INVALID_VALUE, "there is no level 4");
  check(nvfp4_version() == NVFP4_VERSION, "the library is of the header's version");
  check(strlen(nvfp4_build_info()) > 0, "the build describes itself");
}

/* A plan of nothing needs no driver; nvfp4_prepare does, and answers with or without one. */
static void plans(void) {
  char text[2048];
  nvfp4_gemm_plan* plan = NULL;
  nvfp4_gemm_addresses addresses = NVFP4_GEMM_ADDRESSES_INIT;
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.k = 64;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  check(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS && plan != NULL, "a plan of nothing");
  check(nvfp4_gemm_plan_run(plan, &addresses, NULL) == NVFP4_SUCCESS, "which does nothing");
  nvfp4_gemm_plan_destroy(plan);
  check(nvfp4_gemm_explain(&g, 100, 148, text, sizeof text) == NVFP4_SUCCESS && strlen(text) > 0,
        "explain says so");
  nvfp4_plan_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  check(nvfp4_gemm_describe(&g, 100, 148, &info) == NVFP4_SUCCESS && info.variant == NULL &&
            info.variant_index == -1,
        "describe says so");
  check(nvfp4_prepare() != NVFP4_SUCCESS, "without a context nothing can be prepared");
}

int main(void) {
  const char* path = getenv("NVFP4_TALLY");
  FILE* out = stdout;
  reference();
  initialisers();
  errors();
  plans();
  if (path && !(out = fopen(path, "a"))) return 1;
  fprintf(out, "%u passed, %u failed, 0 skipped\n", passed, failed);
  return failed != 0;
}
