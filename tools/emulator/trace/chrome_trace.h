// SPDX-License-Identifier: MIT
// Time lines as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON object
// of Chrome's trace event format. A block is a process; its warps and units are threads; a unit
// that has several things under way has several rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/emulator/trace/timeline.h"

namespace emu {

// Adds a launch after what this process has written to `path` before; the file is whole after
// every call. One microsecond of the file is one instruction. False with a sentence when the file
// cannot be written.
bool write_chrome_trace(const std::string& path, const Launch& launch,
                        const std::vector<std::shared_ptr<Timeline>>& timelines,
                        std::string* error);

}  // namespace emu
