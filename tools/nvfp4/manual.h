// SPDX-License-Identifier: MIT
// The man page and the completion for bash, from the same words as --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nvfp4_tool {

// "man" or "bash", on standard output.
int generate(const CLI::App& app, const std::string& what);

}  // namespace nvfp4_tool
