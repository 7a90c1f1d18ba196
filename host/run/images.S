// SPDX-License-Identifier: MIT
// The kernel images, read-only in the library: fat binaries, and how many bytes each has. The file
// of an image that this library does not have is empty (kernel/images.sh).

#define IMAGE(family, name, file, label)      \
        .balign 64;                           \
        .globl nvfp4_image_##name;            \
        .hidden nvfp4_image_##name;           \
        .type nvfp4_image_##name, %object;    \
        nvfp4_image_##name: .incbin file;     \
        .Lend_##name:                         \
        .size nvfp4_image_##name, . - nvfp4_image_##name;

// Whoever compiles says which bytes these are: compiler caches compare this text after its macros,
// and some take files that .incbin names for part of nothing.
        .set nvfp4_images_sum, IMAGES_SUM

        .section .rodata.nvfp4_images, "a", %progbits
#include "host/plan/images.def"
#define QUANTIZER_IMAGE(family, major, name, file, label) IMAGE(family, name, file, label)
#include "host/plan/quantizer_images.def"
#undef IMAGE
#undef QUANTIZER_IMAGE

#define DATA(name) .globl name; .hidden name; .type name, %object; name:
        .balign 8
        DATA(nvfp4_image_bytes)
#define IMAGE(family, name, file, label) .quad .Lend_##name - nvfp4_image_##name;
#include "host/plan/images.def"
#define QUANTIZER_IMAGE(family, major, name, file, label) IMAGE(family, name, file, label)
#include "host/plan/quantizer_images.def"
        .size nvfp4_image_bytes, . - nvfp4_image_bytes
        DATA(nvfp4_image_gpus)
        .incbin "gpus.txt"
        .byte 0
        .size nvfp4_image_gpus, . - nvfp4_image_gpus
        DATA(nvfp4_image_compiler)
        .incbin "compiler.txt"
        .byte 0
        .size nvfp4_image_compiler, . - nvfp4_image_compiler

        .section .note.GNU-stack, "", %progbits
