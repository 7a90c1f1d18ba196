// SPDX-License-Identifier: MIT
// The kernel images, read-only in the library: fat binaries, which tell their own length.

#define IMAGE(family, name, file, label)      \
        .balign 64;                           \
        .globl nvfp4_image_##name;            \
        .hidden nvfp4_image_##name;           \
        .type nvfp4_image_##name, %object;    \
        nvfp4_image_##name: .incbin file;     \
        .size nvfp4_image_##name, . - nvfp4_image_##name;

// Whoever compiles says which bytes these are: compiler caches compare this text after its macros,
// and some take files that .incbin names for part of nothing.
        .set nvfp4_images_sum, IMAGES_SUM

        .section .rodata.nvfp4_images, "a", %progbits
#include "host/plan/images.def"
#define QUANTIZER_IMAGE(family, major, name, file, label) IMAGE(family, name, file, label)
#include "host/plan/quantizer_images.def"

        .section .note.GNU-stack, "", %progbits
