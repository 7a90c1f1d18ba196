// SPDX-License-Identifier: MIT
// build/nvfp4: what is here, one multiplication with its verdict, one matrix quantised.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/emulate.h"

using nvfp4_tool::ExplainOptions;
using nvfp4_tool::InfoOptions;
using nvfp4_tool::QuantizeOptions;
using nvfp4_tool::RunOptions;

namespace {

CLI::App* add_info(CLI::App& app, InfoOptions& options) {
  CLI::App* info =
      app.add_subcommand("info", "library, driver, devices and what would run on them");
  info->add_flag("--require-device", options.require_device,
                 "exit with 1 unless device 0 can run the kernels");
  return info;
}

// What describes a problem but for its data: options of run and explain, as in a replay line.
std::vector<CLI::Option*> add_problem(CLI::App& app, RunOptions& options) {
  const CLI::Range sizes(int64_t(1), int64_t(0x7FFFFFFF));
  return {
      app.add_option("--m", options.shape.m, "rows of A and D")->check(sizes),
      app.add_option("--n", options.shape.n, "rows of B, columns of D")->check(sizes),
      app.add_option("--k", options.shape.k, "columns of A and B")->check(sizes),
      app.add_option("--l", options.shape.l, "batches")->check(sizes),
      app.add_option("--a-ld", options.a_ld, "leading dimension of A, elements")->check(sizes),
      app.add_option("--b-ld", options.b_ld, "leading dimension of B, elements")->check(sizes),
      app.add_option("--d-ld", options.d_ld, "leading dimension of D, elements")->check(sizes),
      app.add_option("--a-batch-stride", options.a_batch_stride, "batches of A, elements apart"),
      app.add_option("--b-batch-stride", options.b_batch_stride, "batches of B, elements apart"),
      app.add_option("--d-batch-stride", options.d_batch_stride, "batches of D, elements apart"),
      app.add_option("--pdl", options.pdl, "programmatic launch: 0 off, 1 on, 2 static weights")
          ->check(CLI::Range(0, 2)),
  };
}

CLI::App* add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* explain = app.add_subcommand("explain", "which kernel would run, and why; no driver");
  add_problem(*explain, options.problem);
  explain->add_option("--alpha", options.problem.alpha, "multiplier");
  explain->add_option("--variant", options.problem.variant, "force a kernel variant by name");
  explain->add_option("--compute-capability", options.compute_capability, "100 is 10.0, a B200");
  explain->add_option("--sms", options.sms, "SMs of the device")->check(CLI::PositiveNumber);
  return explain;
}

CLI::App* add_quantize(CLI::App& app, QuantizeOptions& options) {
  CLI::App* quantize = app.add_subcommand("quantize",
                                          "a matrix to NVFP4: PREFIX.codes.npy, .scales.npy, "
                                          ".tensor_scale.npy; no driver");
  quantize->add_option("matrix", options.path, "a .npy file, fp32 or fp16 [rows, K]")
      ->required()
      ->check(CLI::ExistingFile);
  quantize->add_option("--out", options.out, "PREFIX of the files that are written")->required();
  const std::map<std::string, int32_t> layouts = {{"128x4", NVFP4_SCALE_LAYOUT_128X4},
                                                  {"linear", NVFP4_SCALE_LAYOUT_LINEAR}};
  quantize->add_option("--layout", options.layout, "of the scales: 128x4 (default) or linear")
      ->transform(CLI::CheckedTransformer(layouts));
  quantize->add_option("--tensor-scale", options.tensor_scale,
                       "the multiplier, instead of the largest magnitude / 2688");
  return quantize;
}

CLI::App* add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand("run", "multiply, verify against the reference, print a row");
  const std::vector<CLI::Option*> problem = add_problem(*run, options);
  const std::map<std::string, support::Data> sets = {{"gpumode", support::Data::gpumode},
                                                     {"random", support::Data::random},
                                                     {"exact", support::Data::exact}};
  CLI::Option* data = run->add_option("--data", options.data, "gpumode, random or exact")
                          ->transform(CLI::CheckedTransformer(sets));
  CLI::Option* seed = run->add_option("--seed", options.seed, "seed of the data");
  CLI::Option* alpha =
      run->add_option("--alpha", options.alpha, "multiplier, instead of the data's");
  CLI::Option* a =
      run->add_option("--a", options.a_path, "A from a .npy file, fp32 or fp16 [M, K], quantised")
          ->check(CLI::ExistingFile);
  CLI::Option* b =
      run->add_option("--b", options.b_path, "B from a .npy file, fp32 or fp16 [N, K], quantised")
          ->check(CLI::ExistingFile);
  CLI::Option* out = run->add_option("--out", options.out_path, "write D to a .npy file, as fp32");
  CLI::Option* variant =
      run->add_option("--variant", options.variant, "force a kernel variant by name");
  run->add_option("--device", options.device, "device ordinal")->check(CLI::NonNegativeNumber);
  CLI::Option* headline = run->add_flag(
      "--headline", options.headline,
      "the three shapes of the GPU MODE nvfp4_gemm task, on its data and on random scales");
  CLI::Option* trace = run->add_option(
      "--trace", options.trace_path,
      "in the emulator: write the launch's time line for ui.perfetto.dev, print its counters");
  CLI::Option* counters =
      run->add_flag("--counters", options.counters, "in the emulator: print the launch's counters");
  a->needs(b);
  b->needs(a);
  for (CLI::Option* option : problem) {
    a->excludes(option);
    headline->excludes(option);
  }
  for (CLI::Option* option : {data, seed}) a->excludes(option);
  for (CLI::Option* option : {data, alpha, a, out, variant, trace, counters})
    headline->excludes(option);
  return run;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--emulate") == 0) return nvfp4_tool::emulate(argv);
  CLI::App app("NVFP4 matrix multiplication with libnvfp4gemm", "nvfp4");
  bool emulated = false;  // only for --help: it was seen above
  app.add_flag("--emulate", emulated,
               "before the subcommand: in the emulator, whatever GPU there is");
  app.require_subcommand(1);
  InfoOptions info_options;
  RunOptions run_options;
  ExplainOptions explain_options;
  QuantizeOptions quantize_options;
  const CLI::App* info = add_info(app, info_options);
  const CLI::App* explain = add_explain(app, explain_options);
  const CLI::App* quantize = add_quantize(app, quantize_options);
  add_run(app, run_options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "nvfp4: %s\n", error.what());
    return nvfp4_tool::kBadArguments;
  }
  try {
    if (info->parsed()) return nvfp4_tool::info(info_options);
    if (explain->parsed()) return nvfp4_tool::explain(explain_options);
    if (quantize->parsed()) return nvfp4_tool::quantize(quantize_options);
    return nvfp4_tool::run(run_options);
  } catch (const nvfp4_tool::UsageError& error) {
    std::fprintf(stderr, "nvfp4: %s\n", error.what());
    return nvfp4_tool::kBadArguments;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nvfp4: %s\n", error.what());
    return nvfp4_tool::kFailed;
  }
}
