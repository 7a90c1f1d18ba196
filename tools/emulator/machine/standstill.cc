// SPDX-License-Identifier: MIT
// See standstill.h.
#include "tools/emulator/machine/standstill.h"

namespace emu {

void Standstill::moved() {
  ++moves_;
  if (!waiting_) return;
  std::lock_guard guard(lock_);
  changed_.notify_all();
}

void Standstill::leave() {
  std::lock_guard guard(lock_);
  --running_;
  ++moves_;  // wakes the others: those left may all stand still
  changed_.notify_all();
}

void Standstill::stop() {
  std::lock_guard guard(lock_);
  stopped_ = true;
  changed_.notify_all();
}

bool Standstill::wait(uint64_t moves) {
  std::unique_lock guard(lock_);
  ++waiting_;
  const bool all = moves_ == moves && waiting_ == running_ && !stopped_;
  if (!all) changed_.wait(guard, [&] { return moves_ != moves || stopped_; });
  --waiting_;
  return all;
}

}  // namespace emu
