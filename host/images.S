// SPDX-License-Identifier: MIT
// The kernel images, read-only in the library. Rows of images.def; files from kernel/kernel.mk.

#define IMAGE_FILE(symbol, file)                \
        .balign 64;                             \
        .globl nvfp4_image_##symbol;            \
        .hidden nvfp4_image_##symbol;           \
        .type nvfp4_image_##symbol, %object;    \
nvfp4_image_##symbol:                           \
        .incbin file;                           \
        .byte 0; /* PTX is a C string */        \
        .size nvfp4_image_##symbol, . - nvfp4_image_##symbol

        .section .rodata.nvfp4_images, "a", %progbits
IMAGE_FILE(sm_100a, "gemm_sm100.sm_100a.cubin")
IMAGE_FILE(sm_103a, "gemm_sm100.sm_103a.cubin")
IMAGE_FILE(sm_100f, "gemm_sm100.sm_100f.cubin")
IMAGE_FILE(compute_100f, "gemm_sm100.ptx")
IMAGE_FILE(sm_90a, "gemm_sm90.sm_90a.cubin")
IMAGE_FILE(compute_90a, "gemm_sm90.ptx")

        .section .note.GNU-stack, "", %progbits
