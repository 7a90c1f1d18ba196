/* SPDX-License-Identifier: MIT
 *
 * A program of somebody else: finds the installed header and library, multiplies 2 x 2 x 16 on the
 * CPU and compares all four elements. 0 = right.
 */
#include <nvfp4_gemm.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  static const uint8_t scales_a[2] = {0x38, 0x38};                      /* 1, 1 */
  static const uint8_t scales_b[2] = {0x38, 0x30};                      /* 1, 1/2 */
  static const uint16_t expected[4] = {0x4C00, 0x4800, 0x5000, 0x4C00}; /* 16 8 / 32 16 in fp16 */
  uint8_t a[32] = {0}, b[32] = {0}; /* rows of 16 elements at a distance of 32 */
  uint16_t d[4] = {0};
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  memset(a, 0x22, 8);      /* 1 */
  memset(a + 16, 0x44, 8); /* 2 */
  memset(b, 0x22, 8);
  memset(b + 16, 0x22, 8);
  g.m = g.n = 2, g.k = 16, g.l = 1;
  g.a = a, g.a_ld = 32, g.a_scales = scales_a, g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.b = b, g.b_ld = 32, g.b_scales = scales_b, g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.d = d, g.d_ld = 2, g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  if (nvfp4_gemm_reference(&g) != NVFP4_SUCCESS) {
    fprintf(stderr, "%s\n", nvfp4_last_error());
    return 1;
  }
  if (nvfp4_version() != NVFP4_VERSION || memcmp(d, expected, sizeof d) != 0) {
    fprintf(stderr, "version %d, D = %04x %04x %04x %04x\n", (int)nvfp4_version(), (unsigned)d[0],
            (unsigned)d[1], (unsigned)d[2], (unsigned)d[3]);
    return 1;
  }
  return 0;
}
