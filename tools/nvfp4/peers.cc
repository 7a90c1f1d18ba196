// SPDX-License-Identifier: MIT
#include "tools/nvfp4/peers.h"

#include "tools/harness/cublas_operands.h"
#include "tools/harness/progress.h"

namespace nvfp4_tool {

using support::CublasLt;
using support::GemmType;

Peers::Peers(const support::Driver& driver, const support::DeviceInfo& device)
    : driver_(driver), types_({GemmType::f16}) {
  if (device.compute_capability() >= 89) types_.push_back(GemmType::e4m3);
  if (device.compute_capability() >= 100) types_.push_back(GemmType::nvfp4);
  library_ = CublasLt::open(&why_not_);
}

std::string Peers::names() const {
  return library_ ? "cuBLASLt " + std::to_string(library_->version()) : why_not_;
}

std::optional<Times> Peers::time(GemmType type, const support::Shape& s) const {
  constexpr int kProposals = 8;
  constexpr size_t kWorkspace = size_t(32) << 20;
  const support::CublasOperands operands(driver_, type, s.m, s.n, s.k);
  const support::DeviceBuffer workspace(driver_, kWorkspace);
  const auto plan = library_->plan({type, s.m, s.n, s.k}, operands.addresses(), kProposals,
                                   workspace.address(), workspace.bytes());
  const auto times = [&](int candidate) {
    return time_on_device(driver_, [&] { plan->run(candidate, operands.addresses(), nullptr); });
  };
  if (plan->candidates() == 0) return {};
  int best = 0;
  double fastest = 0;
  for (int i = 0; i < plan->candidates(); ++i) {
    const double seconds = times(i).median;
    if (i == 0 || seconds < fastest) best = i, fastest = seconds;
  }
  return times(best);
}

// cuBLASLt's batches would not be ours.
std::vector<Peers::Row> Peers::time(const support::Shape& shape) const {
  std::vector<Row> rows;
  for (const GemmType type : types_) {
    support::progress(to_string(shape) + ": cuBLASLt " + to_string(type));
    rows.push_back({type, library_ && shape.l == 1 ? time(type, shape) : std::nullopt});
  }
  support::progress_done();
  return rows;
}

}  // namespace nvfp4_tool
