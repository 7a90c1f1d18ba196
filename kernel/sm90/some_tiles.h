// SPDX-License-Identifier: MIT
// Builds only some tiles, for mutants and for tests that launch one or two: each tile of the kernel
// takes a second or two to compile. With
//
//   -DNVFP4_SM90_ONLY -DNVFP4_SM90_ONLY_64x4 -DNVFP4_SM90_ONLY_f16_64x16
//
// NVFP4_SM90_IF_WANTED(tile, text) is the text for those two tiles and nothing for any other.
// Without NVFP4_SM90_ONLY it is the text for every tile. sm90_only in kernel/kernel.mk writes the
// options.
#pragma once

#ifdef NVFP4_SM90_ONLY
// The option defines the tile's macro as 1, and NVFP4_SM90_WANTED_1 expands to a comma. So TAKE is
// the second of the arguments, which is LEAVE otherwise.
#define NVFP4_SM90_IF_WANTED(tile, ...) NVFP4_SM90_CHOOSE(NVFP4_SM90_ONLY_##tile)(__VA_ARGS__)
#define NVFP4_SM90_CHOOSE(value) NVFP4_SM90_CHOOSE_BY(value)
#define NVFP4_SM90_CHOOSE_BY(value) NVFP4_SM90_SECOND(NVFP4_SM90_WANTED_##value, NVFP4_SM90_LEAVE, )
#define NVFP4_SM90_WANTED_1 0, NVFP4_SM90_TAKE
#define NVFP4_SM90_SECOND(...) NVFP4_SM90_SECOND_OF(__VA_ARGS__)
#define NVFP4_SM90_SECOND_OF(first, second, ...) second
#define NVFP4_SM90_TAKE(...) __VA_ARGS__
#define NVFP4_SM90_LEAVE(...)
#else
#define NVFP4_SM90_IF_WANTED(tile, ...) __VA_ARGS__
#endif
