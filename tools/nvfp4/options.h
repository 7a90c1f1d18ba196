// SPDX-License-Identifier: MIT
// The command line's words.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

struct Options {
  InfoOptions info;
  RunOptions run;
  ExplainOptions explain;
  BenchOptions bench;
  TuneOptions tune;
  QuantizeOptions quantize;
  CheckOptions check;
  std::string generate;   // "man" or "bash"
  bool emulated = false;  // only for --help: main() acts on it before anything is parsed
};

// Sub-commands and their options, with defaults and examples; parsing fills `options`.
void define(CLI::App& app, Options& options);

// The man page or the completion for bash, from the same words as --help: "man" or "bash", on
// standard output.
int generate(const CLI::App& app, const std::string& what);

}  // namespace nvfp4_tool
