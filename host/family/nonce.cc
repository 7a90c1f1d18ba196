// SPDX-License-Identifier: MIT
#include "host/family/nonce.h"

#include <unistd.h>

#include <atomic>

namespace nvfp4 {

namespace {

std::atomic<uint64_t> drawn{0};

// The finaliser of splitmix64: each bit of x changes half of the bits.
uint64_t scatter(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// Another number in each process: the loader places the library at random.
uint64_t first_of_process() {
  const auto address = reinterpret_cast<uint64_t>(&drawn);
  return scatter(scatter(address) + static_cast<uint64_t>(getpid())) | 1;
}

}  // namespace

uint64_t draw_nonce() {
  uint64_t none = 0;
  if (drawn.load(std::memory_order_relaxed) == 0) {
    drawn.compare_exchange_strong(none, first_of_process(), std::memory_order_relaxed);
  }
  constexpr uint64_t kMask = (uint64_t{1} << kNonceBits) - 1;
  const uint64_t nonce = drawn.fetch_add(1, std::memory_order_relaxed) & kMask;
  return nonce != 0 ? nonce : draw_nonce();
}

}  // namespace nvfp4
