// SPDX-License-Identifier: MIT
#include "bench/peer.h"

#include <dlfcn.h>

#include <cmath>
#include <stdexcept>

#include "bench/figures.h"
#include "bench/peer_library.h"
#include "tools/harness/formats.h"

namespace bench {
namespace {

constexpr double kMostDifference = 0.03;
constexpr size_t kCheckedElements = 1 << 21;

template <class Function>
void find(void* handle, const std::string& path, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(handle, name));
  if (!*out) throw std::runtime_error(path + " does not export " + name);
}

}  // namespace

PeerLibrary::PeerLibrary(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW)) {
  if (!handle_) throw std::runtime_error(std::string("no peer: ") + dlerror());
  find(handle_, path, "nvfp4_bench_peer_name", &name_);
  find(handle_, path, "nvfp4_bench_peer_create", &create_);
  find(handle_, path, "nvfp4_bench_peer_launch", &launch_);
  find(handle_, path, "nvfp4_bench_peer_result", &result_);
  find(handle_, path, "nvfp4_bench_peer_destroy", &destroy_);
}
PeerLibrary::~PeerLibrary() { dlclose(handle_); }

PeerGemm::PeerGemm(const Gpu& gpu, const PeerLibrary& library, const support::Shape& shape,
                   const PeerOperands& operands)
    : library_(library),
      shape_(shape),
      copies_(cold_copies(compulsory_bytes(shape_, kHalfBytes), gpu.l2_bytes)),
      product_(library.create_(shape_.m, shape_.n, shape_.k, operands.codes, operands.scales,
                               operands.tokens, copies_)) {}
PeerGemm::~PeerGemm() {
  if (product_) library_.destroy_(product_);
}

std::string PeerGemm::name() const { return library_.name(); }

void PeerGemm::require_near(const std::vector<uint16_t>& ours) const {
  std::vector<uint16_t> theirs(ours.size());
  if (library_.launch_(product_, 0, nullptr) || library_.result_(product_, 0, theirs.data()))
    throw std::runtime_error(to_string(shape_) + ": " + library_.name() + " failed");
  double difference = 0, norm = 0;
  const size_t step = ours.size() / kCheckedElements | 1;
  for (size_t i = 0; i < ours.size(); i += step) {
    const double want = support::bf16_value(ours[i]);
    const double error = support::bf16_value(theirs[i]) - want;
    difference += error * error, norm += want * want;
  }
  if (!(difference <= kMostDifference * kMostDifference * norm))
    throw std::runtime_error(to_string(shape_) + ": " + library_.name() + " differs from ours by " +
                             std::to_string(std::sqrt(difference / norm)) + " of the norm");
}

Series PeerGemm::series() const {
  const auto launch = [this](int i, CUstream stream) {
    if (library_.launch_(product_, i % copies_, stream))
      throw std::runtime_error(to_string(shape_) + ": " + library_.name() + " failed");
  };
  return {launch, copies_ * std::max(1, 20 / copies_)};
}

}  // namespace bench
