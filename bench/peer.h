// SPDX-License-Identifier: MIT
// A kernel of another program beside ours; bench/peer_library.h says what its library exports.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/device.h"
#include "tools/harness/problem.h"

namespace bench {

class PeerLibrary;

// On the host, as bench/peer_library.h has them.
struct PeerOperands {
  const uint8_t *codes, *scales;
  const uint16_t* tokens;
};

// One product of bf16 tokens by a peer, on copies of its operands that take turns.
class PeerGemm {
 public:
  PeerGemm(const Gpu& gpu, const PeerLibrary& library, const support::Shape& shape,
           const PeerOperands& operands);
  ~PeerGemm();
  PeerGemm(const PeerGemm&) = delete;
  PeerGemm& operator=(const PeerGemm&) = delete;
  std::string name() const;
  bool available() const { return product_ != nullptr; }
  // Runs it once; throws unless its D differs from ours, in bf16, by at most 0.03 of the
  // norm: a peer may round its operands and its partial sums.
  void require_near(const std::vector<uint16_t>& ours) const;
  Series series() const;

 private:
  const PeerLibrary& library_;
  support::Shape shape_;
  int copies_;
  void* product_;
};

class PeerLibrary {
 public:
  explicit PeerLibrary(const std::string& path);  // throws if it does not export all of it
  ~PeerLibrary();
  PeerLibrary(const PeerLibrary&) = delete;
  PeerLibrary& operator=(const PeerLibrary&) = delete;
  std::string name() const { return name_(); }

 private:
  friend class PeerGemm;
  void* handle_;
  const char* (*name_)();
  void* (*create_)(int64_t, int64_t, int64_t, const uint8_t*, const uint8_t*, const uint16_t*, int);
  int (*launch_)(void*, int, void*);
  int (*result_)(void*, int, uint16_t*);
  void (*destroy_)(void*);
};

}  // namespace bench
