// SPDX-License-Identifier: MIT
// build/nvfp4: information, one verified multiplication, one quantized matrix, and the other
// commands.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "tools/harness/driver.h"
#include "tools/harness/progress.h"
#include "tools/nvfp4/call_log.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/emulator.h"
#include "tools/nvfp4/options.h"
#include "tools/nvfp4/report.h"

using nvfp4_tool::Options;

namespace {

int complain(int code, const std::string& text) {
  support::progress_done();
  std::fprintf(stderr, "nvfp4: %s\n", text.c_str());
  return code;
}

int bad_arguments(const std::string& text) { return complain(nvfp4_tool::kBadArguments, text); }

// Optimal string alignment distance.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// The word that needs the fewest letters inserted, left out, replaced or swapped with their
// neighbour; "" if that is more than two of them and more than a third.
std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  size_t least = std::max(word.size() / 3, size_t(2)) + 1;
  for (const std::string& candidate : words) {
    const size_t changes = distance(word, candidate);
    if (changes < least) least = changes, best = candidate;
  }
  return best;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& words) {
  const std::string near = nearest(word, words);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  return names;
}

// The error in the first word that is not an option; "" if the word is a command.
std::string check_command(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> names = commands_of(app);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind('-', 0) == 0) continue;
    for (const std::string& name : names) {
      if (word == name) return "";
    }
    return word + " is no command" + suggestion(word, names) + " There are " + list;
  }
  return argc > 1 ? "" : "which command? There are " + list + "; nvfp4 --help says more";
}

// CLI11 puts an unknown word after a colon.
std::string complaint_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what();
  const bool unknown = error.get_exit_code() == int(CLI::ExitCodes::ExtrasError);
  if (!unknown || app.get_subcommands().empty()) return text;
  const size_t first = text.find(": ") + 2;
  const std::string word = text.substr(first, text.find_first_of(" =", first) - first);
  return text + suggestion(word, options_of(*app.get_subcommands().front()));
}

// Without a driver the emulator helps.
std::string way_out(const support::DriverError& error) {
  return error.result == CUDA_ERROR_NOT_INITIALIZED ? "; nvfp4 --emulate COMMAND needs none" : "";
}

int dispatch(const CLI::App& app, const Options& options) {
  if (app.got_subcommand("info")) return nvfp4_tool::info(options.info);
  if (app.got_subcommand("explain")) return nvfp4_tool::explain(options.explain);
  if (app.got_subcommand("bench")) return nvfp4_tool::bench(options.bench);
  if (app.got_subcommand("tune")) return nvfp4_tool::tune(options.tune);
  if (app.got_subcommand("quantize")) return nvfp4_tool::quantize(options.quantize);
  if (app.got_subcommand("check")) return nvfp4_tool::check(options.check);
  if (app.got_subcommand("generate")) return nvfp4_tool::generate(app, options.generate);
  return nvfp4_tool::run(options.run);
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("NVFP4 matrix multiplication with libnvfp4gemm", "nvfp4");
  Options options;
  nvfp4_tool::define(app, options);
  const std::string wrong = check_command(app, argc, argv);
  if (!wrong.empty()) return bad_arguments(wrong);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return bad_arguments(complaint_of(app, error));
  }
  try {
    nvfp4_tool::watch_log();
    return dispatch(app, options);
  } catch (const nvfp4_tool::UsageError& error) {
    return bad_arguments(nvfp4_tool::shown(error.what()));
  } catch (const support::DriverError& error) {
    return complain(nvfp4_tool::kFailed, error.what() + way_out(error));
  } catch (const std::bad_alloc&) {
    return complain(nvfp4_tool::kFailed, "out of memory: this machine gave no more");
  } catch (const std::exception& error) {
    return complain(nvfp4_tool::kFailed, nvfp4_tool::shown(error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--emulate") == 0) return nvfp4_tool::emulate(argv);
  const int code = parse_and_run(argc, argv);
  // Output may still be buffered, and its device full.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return complain(nvfp4_tool::kFailed,
                  std::string("standard output cannot be written: ") + std::strerror(errno));
}
