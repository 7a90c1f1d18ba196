// SPDX-License-Identifier: MIT
#include "tools/nvfp4/options.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/harness/validators.h"
#include "tools/nvfp4/gpus.h"

namespace nvfp4_tool {

namespace {

// Help without mutual exclusions: errors mention them, and the list would hide the options. CLI11
// 2.5 and later fill paragraphs, which would join an example to the next one, and leave out
// "Usage".
class Help : public CLI::Formatter {
 public:
  Help() {
#if CLI11_VERSION_MAJOR > 2 || (CLI11_VERSION_MAJOR == 2 && CLI11_VERSION_MINOR >= 5)
    enable_footer_formatting(false);
#endif
  }

 private:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    const size_t at = usage.find_first_not_of('\n');
    if (at != std::string::npos && usage.compare(at, 5, "Usage") != 0) usage.insert(at, "Usage: ");
    return usage;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected() == 0) return "";
    std::string type = option->get_type_name();
    if (type.rfind(':', 0) == 0) type.erase(0, 1);
    return " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string first = option->get_default_str();
    return option->get_description() + (first.empty() ? "" : " [" + first + "]");
  }
};

template <typename Value>
using Choices = std::map<std::string, Value>;

// A value chosen by name.
template <typename Value>
CLI::Option* add_choice(CLI::App& app, const std::string& name, Value& value,
                        const Choices<Value>& choices, const std::string& first,
                        const std::string& text) {
  std::vector<std::string> names;
  for (const auto& [word, meaning] : choices) names.push_back(word);
  const auto set = [&value, choices](const std::string& word) { value = choices.at(word); };
  return app.add_option_function<std::string>(name, set, text)
      ->check(CLI::IsMember(names))
      ->type_name("")
      ->default_str(first);
}

constexpr int64_t kMostSize = 0x7FFFFFFF;

CLI::Validator sizes(int64_t least) { return support::wholes(least, kMostSize); }

// The library has the rule, which depends on other options.
CLI::Validator any_whole() { return support::wholes<int64_t>(INT64_MIN, INT64_MAX); }

// `Value` is float or an optional one.
template <typename Value>
CLI::Option* add_number(CLI::App& app, const std::string& name, Value& value,
                        const std::string& text) {
  return app.add_option(name, value, text)->check(support::numbers());
}

CLI::Validator existing_file() {
  CLI::Validator file = CLI::ExistingFile;
  return file.description("");
}

CLI::Option* add_json(CLI::App& app, bool& json) {
  return app.add_flag("--json", json, "for programs: one JSON object on standard output");
}

void add_info(CLI::App& app, InfoOptions& options) {
  CLI::App* info = app.add_subcommand(
      "info", "print the library, the driver, the devices, and whether the kernels run there");
  info->add_flag("--require-device", options.require_device,
                 "exit with 1 unless device 0 runs the kernels");
  add_json(*info, options.json);
  info->footer(
      "Example:\n"
      "  nvfp4 info --json\n"
      "Exit code: 0 if the driver answered, 1 if no driver was found or it did not answer, 2 for "
      "bad arguments.");
}

CLI::Option* add_stride(CLI::App& app, const std::string& name, std::optional<int64_t>& value,
                        const std::string& text) {
  return app.add_option(name, value, text)->check(any_whole())->type_name("INT");
}

CLI::Option* add_layout(CLI::App& app, const std::string& name, int32_t& layout,
                        const std::string& of) {
  return add_choice<int32_t>(
      app, name, layout,
      {{"128x4", NVFP4_SCALE_LAYOUT_128X4}, {"linear", NVFP4_SCALE_LAYOUT_LINEAR}}, "128x4",
      "layout of the scales " + of);
}

template <typename T>
CLI::Option* add_array(CLI::App& app, const std::string& name, T*& address,
                       const std::string& text) {
  return app.add_flag_function(
      name, [&address](int64_t) { address = support::kGiven; }, text);
}

// The epilogue, as in a replay line.
void add_epilogue(CLI::App& app, RunOptions& options, std::vector<CLI::Option*>& all) {
  support::Fields& f = options.epilogue;
  const Choices<int32_t> types = {
      {"f16", NVFP4_TYPE_F16}, {"bf16", NVFP4_TYPE_BF16}, {"f32", NVFP4_TYPE_F32}};
  const auto choice = [&](const char* name, int32_t& value, const Choices<int32_t>& of,
                          const char* first, const char* text) {
    all.push_back(add_choice<int32_t>(app, name, value, of, first, text));
    return all.back();
  };
  Choices<int32_t> d_types = types;
  d_types.insert({{"nvfp4", NVFP4_TYPE_NVFP4},
                  {"mxfp4", NVFP4_TYPE_MXFP4},
                  {"e2m1-ue8m0", NVFP4_TYPE_E2M1_UE8M0}});
  choice("--d-type", f.d_type, d_types, "f16", "type of D");
  all.push_back(add_layout(app, "--d-scales", f.d_scale_layout, "of D, if D has scales"));
  choice("--d-scale-rule", f.d_scale_rule, {{"up", 0}, {"floor", NVFP4_SCALE_RULE_FLOOR}}, "up",
         "rounding of the UE8M0 scales of D");
  all.push_back(add_array(app, "--d-tensor-scale", f.d_tensor_scale,
                          "give D a tensor scale: a factor in device memory"));
  all.push_back(add_array(app, "--d-amax", f.d_amax, "compute the largest magnitude of D as well"));
  all.push_back(add_array(app, "--d-row-amax", f.d_row_amax,
                          "compute the largest magnitude of each row as well"));
  choice("--cd-order", f.cd_order, {{"row", 0}, {"column", 1}}, "row",
         "order of C and D: row-major or column-major");
  CLI::Option* c = choice("--c-type", f.c_type, types, "", "add beta * C, a matrix of this type");
  all.push_back(add_number(app, "--beta", f.beta, "multiplier of C; 0 by default")->needs(c));
  CLI::Option* bias = choice("--bias-type", f.bias_type, types, "", "add a bias of this type");
  choice("--bias-axis", f.bias_axis, {{"column", 0}, {"row", 1}}, "column",
         "one bias value per column or per row")
      ->needs(bias);
  choice("--scalars", f.scalar_mode, {{"host", 0}, {"device", 1}}, "host",
         "memory that holds alpha and beta");
  choice("--activation", f.activation,
         {{"none", NVFP4_ACTIVATION_NONE},
          {"relu", NVFP4_ACTIVATION_RELU},
          {"gelu-tanh", NVFP4_ACTIVATION_GELU_TANH},
          {"silu", NVFP4_ACTIVATION_SILU},
          {"gelu-erf", NVFP4_ACTIVATION_GELU_ERF},
          {"relu-squared", NVFP4_ACTIVATION_RELU_SQUARED}},
         "none", "activation, applied last");
  all.push_back(add_array(app, "--a-tensor-scale", f.a_tensor_scale,
                          "multiply A by one factor, in device memory"));
  const auto rows = [&f](int64_t) {
    f.a_tensor_scale = support::kGiven, f.a_tensor_scale_rows = 1;
  };
  all.push_back(app.add_flag_function("--a-tensor-scale-rows", rows,
                                      "multiply each row of A by its own factor"));
  all.push_back(
      app.add_option("--b-tensor-scale", options.b_tensor_scale,
                     "multiply B by tensor scales; INT columns of D share a scale (0: all of them)")
          ->check(any_whole())
          ->type_name("INT"));
  all.push_back(add_stride(app, "--c-ld", options.c_ld,
                           "elements from a row of C to the next; dense by default"));
  all.push_back(add_stride(app, "--c-batch-stride", options.c_batch_stride,
                           "elements from a batch of C to the next; 0: the same C"));
  for (CLI::Option* option : {all[all.size() - 2], all.back()}) option->needs(c);
}

// The additional options of a gated product, as in a replay line.
void add_gate(CLI::App& app, support::Fields& f, std::vector<CLI::Option*>& all) {
  CLI::Option* gated =
      add_array(app, "--gated", f.b2, "multiply by a second product, whose weights are b2");
  const size_t first = all.size();
  all.push_back(
      add_number(app, "--alpha2", f.alpha2, "multiplier of the second product; 1 by default"));
  all.push_back(add_array(app, "--b2-tensor-scale", f.b2_tensor_scale,
                          "give b2 tensor scales, as --b-tensor-scale gives them to B"));
  all.push_back(
      add_number(app, "--gate-limit", f.gate_limit,
                 "clip the first product to at most this, the second to +- this; 0: no limit"));
  all.push_back(add_number(app, "--gate-alpha", f.gate_alpha,
                           "multiplier in the exponent of SiLU; 0 means 1"));
  all.push_back(add_number(app, "--gate-beta", f.gate_beta, "number added to the second product"));
  for (size_t i = first; i < all.size(); ++i) all[i]->needs(gated);
  all.push_back(gated);
}

CLI::Option* add_a_type(CLI::App& app, int32_t& a_type) {
  return add_choice<int32_t>(app, "--a-type", a_type,
                             {{"f16", NVFP4_TYPE_F16}, {"bf16", NVFP4_TYPE_BF16}}, "",
                             "type of A if it is not quantized");
}

CLI::Option* add_format(CLI::App& app, int32_t& format) {
  return add_choice<int32_t>(
      app, "--format", format,
      {{"nvfp4", NVFP4_OPERAND_FORMAT_NVFP4},
       {"mxfp4", NVFP4_OPERAND_FORMAT_MXFP4},
       {"e2m1-ue8m0", NVFP4_OPERAND_FORMAT_E2M1_UE8M0}},
      "nvfp4",
      "4-bit format: scales are UE4M3 per 16 (nvfp4), UE8M0 per 32 (mxfp4) or per 16 (e2m1-ue8m0)");
}

// The options of run and explain that describe a problem except for its data, as in a replay line.
std::vector<CLI::Option*> add_problem(CLI::App& app, RunOptions& options) {
  const auto size = [&](const char* name, int64_t& value, const char* text, int64_t least = 1) {
    return app.add_option(name, value, text)->check(sizes(least))->capture_default_str();
  };
  const auto dense = [](const std::string& text) { return text + "; dense by default"; };
  std::vector<CLI::Option*> all = {
      size("--m", options.shape.m, "rows of A and D: tokens"),
      size("--n", options.shape.n, "rows of B, columns of D: output features"),
      size("--k", options.shape.k,
           "columns of A and B: a multiple of 16 (mxfp4: of 32); if 0, all sums are 0", 0),
      size("--l", options.shape.l, "batches"),
      add_stride(app, "--a-ld", options.a_ld, dense("elements from a row of A to the next")),
      add_stride(app, "--b-ld", options.b_ld, dense("elements from a row of B to the next")),
      add_stride(app, "--d-ld", options.d_ld, dense("elements from a row of D to the next")),
      add_stride(app, "--a-batch-stride", options.a_batch_stride,
                 dense("elements from a batch of A to the next")),
      add_stride(app, "--b-batch-stride", options.b_batch_stride,
                 dense("elements from a batch of B to the next")),
      add_stride(app, "--d-batch-stride", options.d_batch_stride,
                 dense("elements from a batch of D to the next")),
      app.add_option("--pdl", options.pdl, "programmatic launch: 0 off, 1 on, 2 static weights")
          ->check(any_whole())
          ->check(CLI::IsMember({0, 1, 2}))
          ->type_name("")
          ->capture_default_str(),
      app.add_flag("--batch-invariant", options.batch_invariant,
                   "a row of D has the same bits for every M and at every position"),
      add_a_type(app, options.a_type),
      add_format(app, options.format),
      add_layout(app, "--a-scales", options.a_layout, "of A"),
      add_layout(app, "--b-scales", options.b_layout, "of B"),
  };
  for (CLI::Option* option : {all[4], all[5], all[6]}) option->check(sizes(1));
  add_epilogue(app, options, all);
  add_gate(app, options.epilogue, all);
  return all;
}

void add_allow_unproven(CLI::App& app, RunOptions& options) {
  app.add_flag("--allow-unproven", options.allow_unproven,
               "on 10.7 and 11.0, where no GPU has run the kernels, take the variant of a B200");
}

void add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* explain =
      app.add_subcommand("explain", "say which kernel would run, and why; needs no driver");
  add_problem(*explain, options.problem);
  add_number(*explain, "--alpha", options.problem.alpha, "multiplier; 1 by default");
  explain->add_option(
      "--variant", options.problem.variant,
      "name of a kernel variant to use instead of the planner's; NAME/2 splits K in 2");
  add_allow_unproven(*explain, options.problem);
  std::vector<std::string> names;
  for (const Gpu& gpu : gpus()) names.emplace_back(gpu.name);
  CLI::Option* gpu = explain
                         ->add_option("--gpu", options.gpu,
                                      "GPU to plan for: its compute capability and number of SMs")
                         ->transform(CLI::IsMember(names, CLI::ignore_case))
                         ->type_name("")
                         ->capture_default_str();
  explain
      ->add_option("--compute-capability", options.capability,
                   "instead of a GPU's name: 9.0 or 90, for example")
      ->excludes(gpu);
  explain->add_option("--sms", options.sms, "number of SMs, instead of the GPU's")->check(sizes(1));
  add_json(*explain, options.json);
  explain->footer(
      "Examples:\n"
      "  nvfp4 explain --m 1 --n 4096 --k 7168 --gpu H200\n"
      "  nvfp4 explain --m 128 --n 7168 --k 2048 --compute-capability 10.3 --json");
}

void add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App* bench =
      app.add_subcommand("bench", "verify each shape, then time it and cuBLASLt with cold caches");
  bench->add_option("shape", options.shapes,
                    "MxNxK or MxNxKxL; by default the three shapes of the GPU MODE task");
  bench->add_option("--shapes", options.list, "a file with one shape per line")
      ->check(existing_file());
  CLI::Option* csv =
      bench->add_flag("--csv", options.csv, "print CSV: a line of names, then one row per shape");
  add_json(*bench, options.json)->excludes(csv);
  bench->add_flag("--alone", options.alone, "do not time cuBLASLt, even if it is installed");
  bench->footer(
      "Examples:\n"
      "  nvfp4 bench 1x7168x16384 128x4096x7168\n"
      "  nvfp4 bench --shapes layers.txt --csv");
}

void add_tune(CLI::App& app, TuneOptions& options) {
  CLI::App* tune = app.add_subcommand(
      "tune", "find shapes for which another variant is faster than the planner's choice");
  tune->add_option("shape", options.shapes, "MxNxK or MxNxKxL");
  tune->add_option("--shapes", options.list, "a file with one shape per line")
      ->check(existing_file());
  CLI::Option* out = tune->add_option("--out", options.out, "FILE that receives the table");
  add_a_type(*tune, options.a_type);
  CLI::Option* any =
      tune->add_flag("--any-bits", options.any_bits,
                     "also try variants that add in another order, so that D may have other bits");
  tune->add_flag("--candidates", options.candidates,
                 "time nothing; list the variants, and which of them give the same bits")
      ->excludes(out)
      ->excludes(any);
  tune->add_option(
          "--every", options.every,
          "write a CSV with the time and prediction of every plan to this FILE; excludes --out")
      ->excludes(out)
      ->excludes(any);
  add_json(*tune, options.json);
  tune->footer(
      "Examples:\n"
      "  nvfp4 tune 16x5120x5120 64x5120x5120 --out tuning.csv\n"
      "  nvfp4 tune --shapes layers.txt --any-bits --out tuning.csv\n"
      "  nvfp4 run --m 64 --n 5120 --k 5120 --variant sm90_64x64x256/2");
}

void add_quantize(CLI::App& app, QuantizeOptions& options) {
  CLI::App* quantize = app.add_subcommand("quantize",
                                          "quantize a matrix to PREFIX.codes.npy, .scales.npy "
                                          "and .tensor_scale.npy; needs no driver");
  quantize->add_option("matrix", options.path, "a .npy file, fp32 or fp16 [rows, K]")
      ->required()
      ->check(existing_file());
  quantize->add_option("--out", options.out, "PREFIX of the files to write")->required();
  add_choice<int32_t>(*quantize, "--layout", options.layout,
                      {{"128x4", NVFP4_SCALE_LAYOUT_128X4}, {"linear", NVFP4_SCALE_LAYOUT_LINEAR}},
                      "128x4", "layout of the scales");
  CLI::Option* value =
      add_number(*quantize, "--tensor-scale", options.tensor_scale,
                 "multiplier of the whole matrix; its largest magnitude / 2688 by default");
  quantize
      ->add_flag("--rows", options.rows,
                 "use a multiplier per row, computed from the values of that row")
      ->excludes(value);
  quantize->footer("Example:\n  nvfp4 quantize w.npy --out w --layout linear");
}

void add_check(CLI::App& app, CheckOptions& options) {
  CLI::App* check = app.add_subcommand("check",
                                       "report each layer of an NVFP4 checkpoint: dialect, scales, "
                                       "whether it loads right; needs no GPU");
  const auto existing = [] { return CLI::Validator(CLI::ExistingPath).description(""); };
  check->add_option("path", options.path, "a safetensors or GGUF file, or a folder of them")
      ->required()
      ->check(existing());
  check
      ->add_option("--reference", options.reference,
                   "the unquantized model; print each layer's error, and the error of quantizing "
                   "it with this library")
      ->check(existing());
  add_json(*check, options.json);
  check->footer(
      "Examples:\n"
      "  nvfp4 check model/\n"
      "  nvfp4 check model.gguf --json\n"
      "  nvfp4 check model-nvfp4/ --reference model/\n"
      "Exit code: 0 if every layer would load right, 1 if a layer would give wrong results or "
      "there is no layer, 2 for bad arguments.");
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run =
      app.add_subcommand("run", "multiply, compare with the reference, print the result");
  const std::vector<CLI::Option*> problem = add_problem(*run, options);
  CLI::Option* data = add_choice<support::Data>(*run, "--data", options.data,
                                                {{"gpumode", support::Data::gpumode},
                                                 {"random", support::Data::random},
                                                 {"exact", support::Data::exact}},
                                                "gpumode", "distribution of A and B");
  CLI::Option* seed = run->add_option("--seed", options.seed, "seed of the data")
                          ->check(support::wholes<uint64_t>(0, UINT64_MAX))
                          ->capture_default_str();
  CLI::Option* alpha = add_number(*run, "--alpha", options.alpha,
                                  "multiplier; each kind of --data has its own default");
  CLI::Option* a =
      run->add_option("--a", options.a_path, "quantize A from a .npy file, fp32 or fp16 [M, K]")
          ->check(existing_file());
  CLI::Option* b =
      run->add_option("--b", options.b_path, "quantize B from a .npy file, fp32 or fp16 [N, K]")
          ->check(existing_file());
  CLI::Option* a_quantized = run->add_option("--a-quantized", options.a_quantized,
                                             "PREFIX of the files that nvfp4 quantize wrote for A");
  CLI::Option* b_quantized = run->add_option("--b-quantized", options.b_quantized,
                                             "PREFIX of the files that nvfp4 quantize wrote for B");
  CLI::Option* out = run->add_option("--out", options.out_path, "write D to a .npy file, as fp32");
  CLI::Option* variant = run->add_option(
      "--variant", options.variant,
      "name of a kernel variant to use instead of the planner's; NAME/2 splits K in 2");
  add_allow_unproven(*run, options);
  CLI::Option* groups = support::add_list(
      *run, "--groups", options.groups,
      "rows of each group, such as 3,0,20, instead of --m and --l; every group has its own B", 0,
      kMostSize);
  run->add_flag("--b-shared", options.b_shared, "with --groups: all groups use one B")
      ->needs(groups);
  run->add_option("--device", options.device, "device ordinal")
      ->check(sizes(0))
      ->capture_default_str();
  CLI::Option* headline = run->add_flag("--headline", options.headline,
                                        "run the three shapes of the GPU MODE nvfp4_gemm task: "
                                        "with its data, then with random scales");
  CLI::Option* trace = run->add_option(
      "--trace", options.trace_path,
      "in the emulator: write the time line of the launch for ui.perfetto.dev, and print its "
      "counters");
  CLI::Option* counters = run->add_flag("--counters", options.counters,
                                        "in the emulator: print the counters of the launch");
  CLI::Option* json = add_json(*run, options.json);
  a->excludes(a_quantized);
  b->excludes(b_quantized);
  const std::vector<CLI::Option*> files = {a, b, a_quantized, b_quantized};
  for (CLI::Option* option : problem) {
    const std::string name = option->get_name();
    if (name == "--pdl" || name == "--batch-invariant") continue;
    for (CLI::Option* file : files) file->excludes(option);
  }
  for (CLI::Option* option : problem) headline->excludes(option);
  for (CLI::Option* option : {data, seed, groups}) {
    for (CLI::Option* file : files) file->excludes(option);
  }
  // The rows of all groups are one batch of A and of D, and D is contiguous.
  const std::set<std::string> of_one_product = {"--m", "--l", "--d-ld", "--a-batch-stride",
                                                "--d-batch-stride"};
  for (CLI::Option* option : problem) {
    if (of_one_product.count(option->get_name()) != 0) groups->excludes(option);
  }
  for (CLI::Option* option :
       {groups, data, alpha, a, b, a_quantized, b_quantized, out, variant, trace, counters, json})
    headline->excludes(option);
  run->footer(
      "Examples:\n"
      "  nvfp4 run --m 128 --n 512 --k 7168 --data random\n"
      "  nvfp4 run --a a.npy --b b.npy --out d.npy\n"
      "  nvfp4 run --a a.npy --b-quantized w --out d.npy\n"
      "  nvfp4 run --m 64 --k 4096 --trace trace.json\n"
      "  nvfp4 run --groups 3,0,20,1 --n 256 --k 512 --data exact --a-scales linear\n"
      "Exit code: 0 if the result is right, 1 if it is wrong or there is none, 2 for bad "
      "arguments.");
}

void add_generate(CLI::App& app, std::string& what) {
  CLI::App* generate = app.add_subcommand(
      "generate", "print the man page or the bash completion (for makers of packages)");
  generate->add_option("what", what, "man or bash")
      ->required()
      ->check(CLI::IsMember({"man", "bash"}))
      ->type_name("");
  generate->footer("Example:\n  nvfp4 generate bash > /etc/bash_completion.d/nvfp4");
}

std::string version_of_library() {
  const int32_t version = nvfp4_version();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

void define(CLI::App& app, Options& options) {
  app.require_subcommand(1);
  app.formatter(std::make_shared<Help>());
  app.set_version_flag(
      "--version", [] { return "nvfp4 " + version_of_library(); },
      "print the version; nvfp4 info says how the library was built");
  app.add_flag("--emulate", options.emulated,
               "run in the emulator, even if there is a GPU; must be the first argument");
  add_info(app, options.info);
  add_explain(app, options.explain);
  add_bench(app, options.bench);
  add_tune(app, options.tune);
  add_quantize(app, options.quantize);
  add_check(app, options.check);
  add_run(app, options.run);
  add_generate(app, options.generate);
  support::refuse_empty(app);
  app.footer("nvfp4 COMMAND --help has a command's options, defaults and examples.");
}

}  // namespace nvfp4_tool
