// SPDX-License-Identifier: MIT
// nvcc's division of unsigned __int128, which passes the carry from sub.cc to addc and from add.cc
// to subc. Built for plain sm_90, so that the same PTX runs on a Hopper GPU and in the emulator:
// tools/emulator/test/h200/carry_probe.cc.
#include <cstdint>

// `in` holds dividend and divisor, `out` gets quotient and remainder, two 128-bit words a thread.
extern "C" __global__ void carry_probe(const unsigned __int128* in, unsigned __int128* out,
                                       uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[2 * i] = in[2 * i] / in[2 * i + 1];
  out[2 * i + 1] = in[2 * i] % in[2 * i + 1];
}
