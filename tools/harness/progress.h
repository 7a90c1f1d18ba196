// SPDX-License-Identifier: MIT
// What is going on, on a terminal: one line on stderr that the next one replaces.
#pragma once

#include <functional>
#include <string>

namespace support {

void progress(const std::string& text);
void progress_done();

// For work that says how far it is, from any thread: "text 42 %, 3 s left".
std::function<void(double)> progress_of(const std::string& text);

}  // namespace support
