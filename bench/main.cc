// SPDX-License-Identifier: MIT
// build/nvfp4_bench: what a call takes, on the host and on a GPU.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>

#include "bench/commands.h"
#include "tools/harness/validators.h"

namespace {

constexpr int64_t kMostSize = 0x7FFFFFFF;

void add_a_type(CLI::App* command, int32_t& a_type) {
  command->add_option("--a-type", a_type, "f16 or bf16: activations that are not quantized")
      ->transform(CLI::Transformer(
          std::map<std::string, int32_t>{{"f16", NVFP4_TYPE_F16}, {"bf16", NVFP4_TYPE_BF16}}));
}

void add_replays(CLI::App* command, int& replays, int least = 3) {
  command->add_option("--replays", replays, "number of samples per figure")
      ->check(support::wholes(least, 1000));
}

void add_turns(CLI::App* command, bench::TurnsOptions& o) {
  support::add_list(*command, "--shape", o.shapes, "MxNxK, several");
  add_a_type(command, o.a_type);
  add_replays(command, o.replays);
}

void add_gpu(CLI::App* gpu, bench::GpuOptions& o) {
  support::add_list(*gpu, "--shape", o.shapes,
                    "MxNxK, several; by default those of the committed table");
  gpu->add_option(
         "--layers", o.layers,
         "a file such as bench/layers.csv: time each distinct (n, k) with each of --tokens")
      ->check(CLI::ExistingFile);
  support::add_list(*gpu, "--tokens", o.tokens, "numbers of tokens for --layers, several", 1,
                    kMostSize);
  gpu->add_option("--slice", o.slice,
                  "which slice of --layers, of how many (1 4: every fourth layer)");
  support::add_list(*gpu, "--variant", o.variants, "names of kernel variants, a row each");
  add_a_type(gpu, o.a_type);
  CLI::Option* a16 = gpu->add_flag("--a16", o.a16, "also time fp16 and bf16 tokens (9.0)");
  gpu->add_option(
         "--peer", o.peer,
         "a library with the kernel of another program (bench/peer_library.h), interleaved "
         "with ours for bf16 tokens; needs --a16")
      ->check(CLI::ExistingFile)
      ->needs(a16);
  gpu->add_option("--json", o.json, "a file that also receives the head and the rows");
  add_replays(gpu, o.replays);
  gpu->add_option("--candidates", o.candidates,
                  "number of algorithms of cuBLASLt to try; the best one counts")
      ->check(support::wholes(1, 64));
  gpu->add_flag("--batch-invariant", o.batch_invariant,
                "time our products with batch_invariant = 1");
  gpu->add_flag("--no-cublas", o.no_cublas, "do not time cuBLASLt");
  gpu->add_flag("--gpumode", o.gpumode,
                "also time by the GPU MODE protocol of 50 launches (always on on a Blackwell)");
}

void add_quantize(CLI::App* quantize, bench::QuantizeOptions& o) {
  support::add_list(*quantize, "--shape", o.shapes, "ROWSxK, several; by default six matrices");
  quantize
      ->add_option("--values", o.values,
                   "number of random values of each type to compare; 1e8 takes 20 s")
      ->check(CLI::Validator(
          [](std::string& text) {
            const std::string wrong = support::complaint_of_number(text);
            const double value = wrong.empty() ? std::stod(text) : 0;
            return wrong.empty() && !(value >= 0 && value <= 1e10)
                       ? text + " is not within 0 to 1e10"
                       : wrong;
          },
          ""));
  add_replays(quantize, o.replays);
}

void add_layer(CLI::App* layer, bench::LayerOptions& o) {
  add_replays(layer, o.replays);
  layer->add_option("--candidates", o.candidates, "number of algorithms of cuBLASLt to try")
      ->check(support::wholes(1, 64));
}

void add_clocks(CLI::App* clocks, bench::ClocksOptions& o) {
  support::add_list(*clocks, "--shape", o.shapes, "MxNxK, several")->required();
  clocks->add_option("--variant", o.variant, "name of a kernel variant");
  add_replays(clocks, o.replays, 1);
  clocks->add_flag("--pdl", o.pdl, "launch with NVFP4_PDL_ON_STATIC_WEIGHTS");
}

void add_scaled_d(CLI::App* scaled_d, bench::TurnsOptions& o) {
  add_turns(scaled_d, o);
  scaled_d->add_option("--d-type", o.d_type, "nvfp4 or mxfp4")
      ->transform(CLI::Transformer(std::map<std::string, int32_t>{{"nvfp4", NVFP4_TYPE_NVFP4},
                                                                  {"mxfp4", NVFP4_TYPE_MXFP4}}));
}

void add_packed(CLI::App* packed, bench::TurnsOptions& o) {
  add_turns(packed, o);
  packed->add_flag("--every", o.every, "also time other variants and splits with packed weights");
  support::add_list(*packed, "--variant", o.variants, "also time these, both ways");
}

void add_plans(CLI::App* plans, bench::TurnsOptions& o) {
  support::add_list(*plans, "--shape", o.shapes, "MxNxK, several");
  add_replays(plans, o.replays);
  plans->add_flag("--predicted", o.predicted,
                  "time nothing: choices and predictions of this planner, on any machine");
}

void add_peers(CLI::App* peers, bench::PeersOptions& o) {
  peers->add_option("--layers", o.layers, "a file such as bench/drawn.csv")
      ->check(CLI::ExistingFile);
  support::add_list(*peers, "--tokens", o.tokens, "numbers of tokens, several", 1, kMostSize);
  peers
      ->add_option("--peer", o.peers,
                   "a library with the kernel of another program (bench/peer_library.h), several")
      ->check(CLI::ExistingFile);
  add_replays(peers, o.replays);
  peers->add_option("--candidates", o.candidates, "number of algorithms of cuBLASLt to try")
      ->check(support::wholes(1, 64));
}

void add_grouped(CLI::App* grouped, bench::GroupedOptions& o) {
  grouped->add_option("--layer", o.layer,
                      "time only layers whose name contains this, for example eight or deepseek");
  support::add_list(*grouped, "--shape", o.shapes, "EXPERTSxNxK, several, in place of the layers");
  support::add_list(*grouped, "--rows", o.rows, "mean rows of a group, several", 1, kMostSize);
  grouped->add_option("--routing", o.routings, "how rows are divided, several; all where none is")
      ->check(CLI::IsMember({"even", "skewed", "half-empty"}));
  add_a_type(grouped, o.a_type);
  grouped->add_flag("--packed", o.packed, "in turns with the same weights, packed; packed_us");
  grouped->add_option("--variant", o.variant, "of the grouped products, not the planner's");
  add_replays(grouped, o.replays);
}

std::string command_line(int argc, char** argv) {
  std::string line = "nvfp4_bench";
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  return line;
}

// Subcommands, of which one is run.
class Commands {
 public:
  Commands(CLI::App& app, int argc, char** argv) : app_(app), line_(command_line(argc, argv)) {}

  void add(const char* name, const char* help, std::function<int()> command) {
    app_.add_subcommand(name, help);
    commands_.emplace_back(name, std::move(command));
  }
  // `add_options` binds those of the command line to members of `options`.
  template <typename Options>
  void add(const char* name, const char* help, void (*add_options)(CLI::App*, Options&),
           int (*time)(const Options&), Options options = {}) {
    const auto kept = std::make_shared<Options>(std::move(options));
    kept->command = line_;
    add(name, help, [kept, time] { return time(*kept); });
    add_options(app_.get_subcommand(name), *kept);
  }
  int run() const {
    for (const auto& [name, command] : commands_)
      if (app_.got_subcommand(name)) return command();
    return 2;
  }

 private:
  CLI::App& app_;
  std::string line_;
  std::vector<std::pair<std::string, std::function<int()>>> commands_;
};

void add_all(Commands& commands) {
  commands.add("verify", "compare the problems of the host benchmark with the reference",
               [] { return bench::verify() ? 0 : 1; });
  commands.add("host", "time host calls on a driver that does nothing; CSV",
               [] { return bench::time_host(), 0; });
  commands.add(
      "emulator",
      "time the shapes of the GPU MODE task in the emulator, which must be the driver; CSV",
      [] { return bench::time_emulator() ? 0 : 1; });
  commands.add("gpu", "time products beside cuBLASLt; CSV to stdout", add_gpu, bench::time_gpu);
  commands.add("clocks",
               "print when CTAs reach the points of kernel/common/clocks.def; needs a build with "
               "CLOCKS=1; CSV",
               add_clocks, bench::time_clocks);
  commands.add(
      "quantize",
      "compare the quantizers on the device with the host, time them beside a copy; CSV to stdout",
      add_quantize, bench::time_quantize);
  commands.add(
      "layer",
      "time decoder layers of public models, each as one graph, beside cuBLASLt; CSV to stdout",
      add_layer, bench::time_layers);
  commands.add(
      "scaled-d",
      "time D with scales beside D in bf16, with and without nvfp4_quantize; CSV to stdout",
      add_scaled_d, bench::time_scaled_d,
      {{"128x7168x2048", "128x4096x7168", "4096x4096x4096", "4096x4096x7168"}});
  commands.add("grouped",
               "time grouped products of public models beside a loop of products; CSV to stdout",
               add_grouped, bench::time_grouped);
  commands.add("gated",
               "time gated products beside one product of both matrices and the kernels after it; "
               "CSV to stdout",
               add_turns, bench::time_gated, {{"16x28672x8192", "128x28672x8192"}});
  commands.add("packed",
               "time packed weights beside the same in a checkpoint's order and beside cuBLASLt; "
               "CSV to stdout",
               add_packed, bench::time_packed, {{"16x4096x7168"}, NVFP4_TYPE_BF16});
  commands.add("plans",
               "time every plan of products with bf16 and NVFP4 tokens, for bench/planner.py; CSV "
               "to stdout",
               add_plans, bench::time_plans, {{"16x4096x7168"}});
  commands.add("peers",
               "time layers with packed weights and with NVFP4 tokens beside kernels of other "
               "programs and cuBLASLt; CSV to stdout",
               add_peers, bench::time_peers);
  commands.add("fields",
               "time fields of the descriptor against the product without them; CSV to stdout",
               add_turns, bench::time_fields, {{"1x4096x7168", "512x4096x7168"}});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times libnvfp4gemm, after verifying its results", "nvfp4_bench");
  app.require_subcommand(1);
  Commands commands(app, argc, argv);
  add_all(commands);
  support::refuse_empty(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "nvfp4_bench: %s\n", error.what());
    return 2;
  }
  try {
    return commands.run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nvfp4_bench: %s\n", error.what());
    return 1;
  }
}
