// SPDX-License-Identifier: MIT
// JSON from an untrusted file: duplicate keys and deep nesting are refused.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace nvfp4_tool {

using StrictJson = nlohmann::json;

// Throws std::runtime_error.
StrictJson parse_strict(const std::string& text);

}  // namespace nvfp4_tool
