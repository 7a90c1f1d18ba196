// SPDX-License-Identifier: MIT
// The record of driver calls and the one planned failure.
#include "tools/emulator/driver/record.h"

namespace emu::driver {

std::optional<CUresult> Record::note(Entry entry) {
  std::lock_guard guard(lock_);
  calls_.push_back(entry);
  if (countdown_ == 0 || planned_ != base_name(entry)) return std::nullopt;
  if (--countdown_ > 0) return std::nullopt;
  return status_;
}

std::string Record::text() const {
  std::lock_guard guard(lock_);
  std::string all;
  for (Entry entry : calls_) all.append(base_name(entry)).append("\n");
  return all;
}

void Record::reset() {
  std::lock_guard guard(lock_);
  calls_.clear();
}

void Record::plan(std::string entry, uint64_t nth, CUresult status) {
  std::lock_guard guard(lock_);
  planned_ = std::move(entry);
  countdown_ = nth;
  status_ = status;
}

bool Record::pending() const {
  std::lock_guard guard(lock_);
  return countdown_ > 0;
}

}  // namespace emu::driver
