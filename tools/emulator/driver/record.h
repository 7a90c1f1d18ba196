// SPDX-License-Identifier: MIT
// The record of driver calls and the one planned failure (nvfp4emu.h).
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/emulator/driver/entries.h"

namespace emu::driver {

class Record {
 public:
  // Records a call. Returns a status only if this is the call that is planned to fail.
  std::optional<CUresult> note(Entry entry);

  std::string text() const;  // base names, one per line
  void reset();
  void plan(std::string entry, uint64_t nth, CUresult status);
  bool pending() const;

 private:
  mutable std::mutex lock_;
  std::vector<Entry> calls_;
  std::string planned_;
  uint64_t countdown_ = 0;  // calls of it until the planned one; 0 = no plan
  CUresult status_ = CUDA_SUCCESS;
};

}  // namespace emu::driver
