// SPDX-License-Identifier: MIT
// The kernel images, read-only in the library: fat binaries, which tell their own length.

#define IMAGE(name, file, label)              \
        .balign 64;                           \
        .globl nvfp4_image_##name;            \
        .hidden nvfp4_image_##name;           \
        .type nvfp4_image_##name, %object;    \
        nvfp4_image_##name: .incbin file;     \
        .size nvfp4_image_##name, . - nvfp4_image_##name;

        .section .rodata.nvfp4_images, "a", %progbits
#include "host/images.def"
#define QUANTIZER_IMAGE(name, file, label, capability) IMAGE(name, file, label)
#include "host/quantizer_images.def"

        .section .note.GNU-stack, "", %progbits
