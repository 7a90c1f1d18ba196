// SPDX-License-Identifier: MIT
// Bulk asynchronous copies: one wrapper per PTX instruction (PTX ISA 9.7.9.25). One thread issues.
// What comes into shared memory is counted in bytes on an mbarrier of the same CTA, or of its
// pair, always those of the full box, outside parts (written as zero) included; what leaves it is
// in groups that the thread waits for.
#pragma once

#include <cstdint>

namespace nvfp4::ptx {

// L2 eviction priorities as 64-bit cache policies: what createpolicy.fractional writes for
// fraction 1.0, read back from the hardware; CUTLASS's TMA::CacheHintSm90 uses the same two.
constexpr uint64_t kEvictFirst = 0x12F0000000000000;
constexpr uint64_t kEvictLast = 0x14F0000000000000;

// prefetch.tensormap  [map];                                                      PTX 8.0, sm_90
__device__ inline void prefetch_tensormap(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [map, {c0, c1, c2}], [bar], policy;                                  PTX 8.6, sm_90
// dst: 128-byte aligned. c0 * element size: a multiple of 16 bytes.
__device__ inline void cp_async_bulk_tensor_3d(uint32_t dst, const void* map, int32_t c0,
                                               int32_t c1, int32_t c2, uint32_t bar,
                                               uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "l"(policy)
      : "memory");
}

// The same for a map of four dimensions.
__device__ inline void cp_async_bulk_tensor_4d(uint32_t dst, const void* map, int32_t c0,
                                               int32_t c1, int32_t c2, int32_t c3, uint32_t bar,
                                               uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(dst),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(bar), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2
//     .L2::cache_hint  [dst], [map, {c0, c1, c2}], [bar], policy;                 PTX 8.6, sm_100a
// dst in this CTA; bar, a shared::cluster address, in this CTA or the other of its pair.
__device__ inline void cp_async_bulk_tensor_3d_of_pair(uint32_t dst, const void* map, int32_t c0,
                                                       int32_t c1, int32_t c2, uint32_t bar,
                                                       uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".cta_group::2.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(dst),
      "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(bar), "l"(policy)
      : "memory");
}

// cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint
//     [dst], [src], bytes, [bar], policy;                                         PTX 8.6, sm_90
// dst, src: 16-byte aligned, bytes a multiple of 16 (else it never completes).
__device__ inline void cp_async_bulk(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar,
                                     uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(bar), "l"(policy)
      : "memory");
}

// cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group
//     [map, {c0, c1, c2}], [src];                                                 PTX 8.0, sm_90
// src: 128-byte aligned. Nothing is written outside the map's sizes, in whole pieces of 16 bytes
// along the first one. Generic writes of the box come before it only after fence.proxy.async.
__device__ inline void cp_async_bulk_tensor_3d_store(const void* map, int32_t c0, int32_t c1,
                                                     int32_t c2, uint32_t src) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
          map),
      "r"(c0), "r"(c1), "r"(c2), "r"(src)
      : "memory");
}

// cp.async.bulk.commit_group;                                                     PTX 8.0, sm_90
__device__ inline void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// cp.async.bulk.wait_group.read  n;                                               PTX 8.0, sm_90
// All but this thread's last n groups have read their shared memory.
template <uint32_t kGroups>
__device__ inline void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}

// cp.async.bulk.prefetch.L2.global  [a], bytes;                                   PTX 8.0, sm_90
// a: 16-byte aligned, bytes a multiple of 16. Nothing waits for it.
__device__ inline void cp_async_bulk_prefetch_l2(const void* address, uint32_t bytes) {
  asm volatile(
      "cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(address)),
      "r"(bytes)
      : "memory");
}

}  // namespace nvfp4::ptx
