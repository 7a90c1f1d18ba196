/* SPDX-License-Identifier: MIT
   A kernel of another program, timed beside ours: nvfp4_bench gpu --peer FILE opens a shared
   library that exports these five functions. Weights are NVFP4, tokens and D are bf16; the product
   is D = A * B^T. Nothing of a peer is part of this project. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name and version of the program, for the head of the table. */
const char* nvfp4_bench_peer_name(void);

/* Operands of m tokens on the current context's device, `copies` times, so that a launch of one
   finds its weights cold. From host memory: codes [n][k/2], the even element in the low half of a
   byte; scales [n][k/16], UE4M3; tokens [m][k], bf16. NULL: the peer does not take this shape. */
void* nvfp4_bench_peer_create(int64_t m, int64_t n, int64_t k, const uint8_t* codes,
                              const uint8_t* scales, const uint16_t* tokens, int copies);

/* Enqueues one product on a CUstream, which may be captured; 0 if that went well. */
int nvfp4_bench_peer_launch(void* product, int copy, void* stream);

/* D [m][n] of the last launch of a copy, in bf16, to host memory; waits for it. 0: done. */
int nvfp4_bench_peer_result(void* product, int copy, uint16_t* d);

void nvfp4_bench_peer_destroy(void* product);

#ifdef __cplusplus
}
#endif
