// SPDX-License-Identifier: MIT
// The lines above a table: what was measured, where and by which build.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

// Name and text of each line.
using Head = std::vector<std::pair<std::string, std::string>>;

std::string formatted(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string today();
std::string driver_release();  // "580.159.04, " where the kernel module says so
std::string build_id();        // of the library that is measured, "" where its file has none
std::string as_comments(const Head& head);

}  // namespace bench
