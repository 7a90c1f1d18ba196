// SPDX-License-Identifier: MIT
// build/nvfp4_bench: what a call takes, on the host and on a GPU.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>

#include "bench/commands.h"

namespace {

void add_a_type(CLI::App* command, int32_t& a_type) {
  command->add_option("--a-type", a_type, "f16 or bf16: activations that are not quantized")
      ->transform(CLI::Transformer(
          std::map<std::string, int32_t>{{"f16", NVFP4_TYPE_F16}, {"bf16", NVFP4_TYPE_BF16}}));
}

void add_gpu(CLI::App& app, bench::GpuOptions& o) {
  CLI::App* gpu = app.add_subcommand("gpu", "time products beside cuBLASLt; CSV to stdout");
  gpu->add_option("--shape", o.shapes, "MxNxK, several; by default those of the committed table")
      ->delimiter(',');
  gpu->add_option(
         "--layers", o.layers,
         "a file such as bench/layers.csv: time each distinct (n, k) with each of --tokens")
      ->check(CLI::ExistingFile);
  gpu->add_option("--tokens", o.tokens, "numbers of tokens for --layers, several")->delimiter(',');
  gpu->add_option("--slice", o.slice,
                  "which slice of --layers, of how many (1 4: every fourth layer)");
  gpu->add_option("--variant", o.variants, "names of kernel variants, a row each")->delimiter(',');
  add_a_type(gpu, o.a_type);
  CLI::Option* a16 = gpu->add_flag("--a16", o.a16, "also time fp16 and bf16 tokens (9.0)");
  gpu->add_option(
         "--peer", o.peer,
         "a library with the kernel of another program (bench/peer_library.h), interleaved "
         "with ours for bf16 tokens; needs --a16")
      ->check(CLI::ExistingFile)
      ->needs(a16);
  gpu->add_option("--json", o.json, "a file that also receives the head and the rows");
  gpu->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
  gpu->add_option("--candidates", o.candidates,
                  "number of algorithms of cuBLASLt to try; the best one counts")
      ->check(CLI::Range(1, 64));
  gpu->add_flag("--batch-invariant", o.batch_invariant,
                "time our products with batch_invariant = 1");
  gpu->add_flag("--no-cublas", o.no_cublas, "do not time cuBLASLt");
  gpu->add_flag("--gpumode", o.gpumode,
                "also time by the GPU MODE protocol of 50 launches (always on on a Blackwell)");
}

void add_quantize(CLI::App& app, bench::QuantizeOptions& o) {
  CLI::App* quantize = app.add_subcommand(
      "quantize",
      "compare the quantizers on the device with the host, time them beside a copy; CSV to stdout");
  quantize->add_option("--shape", o.shapes, "ROWSxK, several; by default six matrices")
      ->delimiter(',');
  quantize
      ->add_option("--values", o.values,
                   "number of random values of each type to compare; 1e8 takes 20 s")
      ->check(CLI::Range(0.0, 1e10));
  quantize->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
}

void add_layer(CLI::App& app, bench::LayerOptions& o) {
  CLI::App* layer = app.add_subcommand(
      "layer",
      "time decoder layers of public models, each as one graph, beside cuBLASLt; CSV to stdout");
  layer->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
  layer->add_option("--candidates", o.candidates, "number of algorithms of cuBLASLt to try")
      ->check(CLI::Range(1, 64));
}

void add_clocks(CLI::App& app, bench::ClocksOptions& o) {
  CLI::App* clocks =
      app.add_subcommand("clocks",
                         "print when CTAs reach the points of kernel/common/clocks.def; needs a "
                         "build with CLOCKS=1; CSV");
  clocks->add_option("--shape", o.shapes, "MxNxK, several")->delimiter(',')->required();
  clocks->add_option("--variant", o.variant, "name of a kernel variant");
  clocks->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(1, 1000));
  clocks->add_flag("--pdl", o.pdl, "launch with NVFP4_PDL_ON_STATIC_WEIGHTS");
}

void add_gated(CLI::App& app, bench::GatedOptions& o) {
  CLI::App* gated = app.add_subcommand("gated",
                                       "time gated products beside one product of both matrices "
                                       "and the kernels after it; CSV to stdout");
  gated->add_option("--shape", o.shapes, "MxNxK, several")->delimiter(',');
  add_a_type(gated, o.a_type);
  gated->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
}

void add_fields(CLI::App& app, bench::FieldsOptions& o) {
  CLI::App* fields = app.add_subcommand(
      "fields", "time fields of the descriptor against the product without them; CSV to stdout");
  fields->add_option("--shape", o.shapes, "MxNxK, several")->delimiter(',');
  add_a_type(fields, o.a_type);
  fields->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
}

void add_scaled_d(CLI::App& app, bench::ScaledDOptions& o) {
  CLI::App* scaled_d = app.add_subcommand(
      "scaled-d",
      "time D with scales beside D in bf16, with and without nvfp4_quantize; CSV to stdout");
  scaled_d->add_option("--shape", o.shapes, "MxNxK, several")->delimiter(',');
  add_a_type(scaled_d, o.a_type);
  scaled_d->add_option("--d-type", o.d_type, "nvfp4 or mxfp4")
      ->transform(CLI::Transformer(std::map<std::string, int32_t>{{"nvfp4", NVFP4_TYPE_NVFP4},
                                                                  {"mxfp4", NVFP4_TYPE_MXFP4}}));
  scaled_d->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
}

void add_grouped(CLI::App& app, bench::GroupedOptions& o) {
  CLI::App* grouped = app.add_subcommand(
      "grouped", "time grouped products of public models beside a loop of products; CSV to stdout");
  grouped->add_option("--layer", o.layer,
                      "time only layers whose name contains this, for example eight or deepseek");
  grouped->add_option("--rows", o.rows, "mean rows of a group, several")->delimiter(',');
  add_a_type(grouped, o.a_type);
  grouped->add_option("--replays", o.replays, "number of samples per figure")
      ->check(CLI::Range(3, 1000));
}

std::string command_line(int argc, char** argv) {
  std::string line = "nvfp4_bench";
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times libnvfp4gemm, after verifying its results", "nvfp4_bench");
  app.require_subcommand(1);
  bench::GpuOptions gpu_options;
  bench::QuantizeOptions quantize_options;
  const CLI::App* verify =
      app.add_subcommand("verify", "compare the problems of the host benchmark with the reference");
  const CLI::App* host =
      app.add_subcommand("host", "time host calls on a driver that does nothing; CSV");
  const CLI::App* emulator = app.add_subcommand(
      "emulator",
      "time the shapes of the GPU MODE task in the emulator, which must be the driver; CSV");
  add_gpu(app, gpu_options);
  bench::ClocksOptions clocks_options;
  add_clocks(app, clocks_options);
  add_quantize(app, quantize_options);
  bench::LayerOptions layer_options;
  add_layer(app, layer_options);
  bench::ScaledDOptions scaled_d_options;
  add_scaled_d(app, scaled_d_options);
  scaled_d_options.command = command_line(argc, argv);
  bench::GroupedOptions grouped_options;
  add_grouped(app, grouped_options);
  grouped_options.command = command_line(argc, argv);
  bench::GatedOptions gated_options;
  add_gated(app, gated_options);
  gated_options.command = command_line(argc, argv);
  bench::FieldsOptions fields_options;
  add_fields(app, fields_options);
  fields_options.command = command_line(argc, argv);
  gpu_options.command = layer_options.command = clocks_options.command = quantize_options.command =
      command_line(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "nvfp4_bench: %s\n", error.what());
    return 2;
  }
  try {
    if (verify->parsed()) return bench::verify() ? 0 : 1;
    if (emulator->parsed()) return bench::time_emulator() ? 0 : 1;
    if (host->parsed()) return bench::time_host(), 0;
    if (app.got_subcommand("clocks")) return bench::time_clocks(clocks_options);
    if (app.got_subcommand("scaled-d")) return bench::time_scaled_d(scaled_d_options);
    if (app.got_subcommand("grouped")) return bench::time_grouped(grouped_options);
    if (app.got_subcommand("fields")) return bench::time_fields(fields_options);
    if (app.got_subcommand("gated")) return bench::time_gated(gated_options);
    if (app.got_subcommand("layer")) return bench::time_layers(layer_options);
    if (app.got_subcommand("quantize")) return bench::time_quantize(quantize_options);
    return bench::time_gpu(gpu_options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nvfp4_bench: %s\n", error.what());
    return 1;
  }
}
