// SPDX-License-Identifier: MIT
#include "tools/nvfp4/options.h"

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
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
CLI::Validator any_stride() { return support::wholes<int64_t>(kContiguous + 1, INT64_MAX); }

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

// ---- the product, from the rows of fields.def ---------------------------------------------------

using nvfp4::Enumeration;
using nvfp4::GemmField;
using nvfp4::Kind;
namespace fields = nvfp4::fields;

constexpr const char* kHelp[] = {
#define GEMM_FIELD(kind, name, values, when, option, first, python, drawn, help) help,
#include "host/problem/fields.def"
};
const char* help_of(const GemmField& field) { return kHelp[&field - fields::gemm]; }

const GemmField& row_of(const char* name) {
  return fields::gemm[fields::index_of(fields::gemm, name)];
}

template <typename T>
T& in(support::Fields& product, const GemmField& field) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(&product) + field.offset);
}

// "gelu-tanh" for NVFP4_ACTIVATION_GELU_TANH.
std::string word_of(std::string name, size_t prefix) {
  name.erase(0, prefix);
  for (char& c : name) c = c == '_' ? '-' : char(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

Choices<int32_t> words_of(Enumeration enumeration) {
  Choices<int32_t> words;
#define ENUMERATOR(of, name) \
  if (enumeration == Enumeration::of) words[word_of(#name, sizeof("NVFP4_" #of))] = name;
#define WORD(of, name, word)                           \
  if (enumeration == Enumeration::of) {                \
    words.erase(word_of(#name, sizeof("NVFP4_" #of))); \
    words.insert({word, name});                        \
  }
#include "host/problem/enumeration.def"
#undef ENUMERATOR
  return words;
}

// Those that the field takes, as far as an option can say them.
Choices<int32_t> choices_of(const GemmField& field) {
  Choices<int32_t> words = words_of(field.values);
  if (field.values == Enumeration::scale_layout) words.erase("unset");
  if (field.values == Enumeration::scale_rule) words.erase("4over6");  // no rule of D
  if (field.values != Enumeration::type) return words;
  words.erase("none");
  if (field.first == NVFP4_TYPE_F16) return words;  // D
  const bool of_a = field.offset == offsetof(nvfp4_gemm_desc, a_type);
  const int32_t most = of_a ? NVFP4_TYPE_BF16 : NVFP4_TYPE_F32;
  for (auto word = words.begin(); word != words.end();) {
    word = word->second > most ? words.erase(word) : std::next(word);
  }
  return words;
}

CLI::Option* add_enumeration(CLI::App& app, const GemmField& field, int32_t& value) {
  const Choices<int32_t> choices = choices_of(field);
  std::string first;
  for (const auto& [word, meaning] : choices) {
    if (meaning == field.first) first = word;
  }
  return add_choice<int32_t>(app, field.option, value, choices, first, help_of(field));
}

CLI::Option* add_flag(CLI::App& app, const GemmField& field, std::function<void()> set) {
  return app.add_flag_function(
      field.option, [set = std::move(set)](int64_t) { set(); }, help_of(field));
}

CLI::Option* add_field(CLI::App& app, const GemmField& field, support::Fields& product) {
  const auto whole = [&](int64_t& value) {
    return app.add_option(field.option, value, help_of(field));
  };
  switch (field.kind) {
    case Kind::size:
    case Kind::batches: {
      const bool may_be_none = field.offset == offsetof(nvfp4_gemm_desc, k);
      return whole(in<int64_t>(product, field))
          ->check(sizes(may_be_none ? 0 : 1))
          ->capture_default_str();
    }
    case Kind::ld:
      return whole(in<int64_t>(product, field))
          ->check(any_whole())
          ->check(sizes(1))
          ->type_name("INT");
    case Kind::stride:
      return whole(in<int64_t>(product, field))->check(any_stride())->type_name("INT");
    case Kind::count:
      return app
          .add_option_function<int64_t>(
              field.option,
              [&](const int64_t& count) {
                product.b_tensor_scale = support::kGiven, in<int64_t>(product, field) = count;
              },
              help_of(field))
          ->check(any_whole())
          ->type_name("INT");
    case Kind::number:
      return add_number(app, field.option, in<float>(product, field), help_of(field));
    case Kind::enumeration: return add_enumeration(app, field, in<int32_t>(product, field));
    case Kind::choice: {
      std::vector<int32_t> values(size_t(support::count_of(field.values)));
      std::iota(values.begin(), values.end(), 0);
      return app.add_option(field.option, in<int32_t>(product, field), help_of(field))
          ->check(any_whole())
          ->check(CLI::IsMember(values))
          ->type_name("")
          ->capture_default_str();
    }
    case Kind::flag:
      return add_flag(app, field, [&] {
        in<int32_t>(product, field) = 1;
        if (product.a_tensor_scale_rows != 0) product.a_tensor_scale = support::kGiven;
      });
    default:
      return add_flag(app, field, [&] { in<const void*>(product, field) = support::kGiven; });
  }
}

// The options of run and explain that describe a problem except for its data, as in a replay line.
// A row that has a condition needs the option by which the condition holds.
std::vector<CLI::Option*> add_problem(CLI::App& app, RunOptions& options) {
  constexpr struct {
    fields::When when;
    const char* name;
  } kNeeded[] = {{fields::has_c, "c_type"}, {fields::has_bias, "bias_type"}, {fields::gated, "b2"}};
  std::vector<CLI::Option*> all;
  for (const GemmField& field : fields::gemm) {
    const bool own = field.kind == Kind::text || field.offset == offsetof(nvfp4_gemm_desc, alpha);
    if (field.option[0] != '\0' && !own) all.push_back(add_field(app, field, options.product));
  }
  for (const GemmField& field : fields::gemm) {
    if (field.option[0] == '\0') continue;
    for (const auto& [when, name] : kNeeded) {
      const char* const option = row_of(name).option;
      if ((field.when & when) == 0 || field.option == option) continue;
      app.get_option(field.option)->needs(app.get_option(option));
    }
  }
  return all;
}

CLI::Option* add_variant(CLI::App& app, RunOptions& options) {
  const GemmField& field = row_of("variant");
  return app.add_option(field.option, options.variant, help_of(field));
}

void add_allow_unproven(CLI::App& app, RunOptions& options) {
  app.add_flag("--allow-unproven", options.allow_unproven,
               "on 10.7 and 11.0, where no GPU has run the kernels, take the variant of a B200");
}

// "20" is a group of 20 rows, "4x256" are 256 groups of 4.
std::string group_of(const std::string& word, RunOptions::RowsOfGroups& value) {
  const size_t times = word.find('x', 1);
  const std::string rows = word.substr(0, times);
  const std::string count = times == std::string::npos ? "1" : word.substr(times + 1);
  std::from_chars(rows.data(), rows.data() + rows.size(), value.rows);
  std::from_chars(count.data(), count.data() + count.size(), value.groups);
  const std::string wrong = support::complaint_of_whole<int64_t>(rows, 0, kMostSize);
  return wrong.empty() ? support::complaint_of_whole<int64_t>(count, 1, 1 << 20) : wrong;
}

// The rows of all groups are one batch of A, C and D.
CLI::Option* add_groups(CLI::App& app, RunOptions& options,
                        const std::vector<CLI::Option*>& problem) {
  CLI::Option* groups =
      support::add_list(
          app, "--groups", options.groups,
          "rows of each group, such as 3,0,20 or 4x256 (256 groups of 4), for --m and "
          "--l; each has its own B",
          group_of)
          ->type_name("INT");
  app.add_option("--capacity", options.capacity,
                 "with --groups: rows that each group has room for (NVFP4_ROWS_COUNTS)")
      ->check(sizes(1))
      ->needs(groups);
  app.add_option("--rows-hint", options.rows_hint,
                 "with --groups: rows of a usual group, by which the planner takes a tile")
      ->check(sizes(1))
      ->needs(groups);
  const auto add = [&](const char* name, bool& flag, const char* help) {
    app.add_flag(name, flag, help)->needs(groups);
  };
  add("--b-shared", options.b_shared, "with --groups: all groups use one B");
  add("--group-alpha", options.group_alpha, "with --groups: each group has its own alpha");
  add("--group-bias", options.group_bias, "with --groups: each group has its own bias per column");
  add("--scale-rows", options.scale_rows,
      "with --groups: 128x4 scales of A begin where an array says");
  const std::set<std::string> of_one_product = {"--m", "--l", "--a-batch-stride",
                                                "--c-batch-stride", "--d-batch-stride"};
  for (CLI::Option* option : problem) {
    if (of_one_product.count(option->get_name()) != 0) groups->excludes(option);
  }
  return groups;
}

void add_explain(CLI::App& app, ExplainOptions& options) {
  CLI::App* explain =
      app.add_subcommand("explain", "say which kernel would run, and why; needs no driver");
  add_groups(*explain, options.problem, add_problem(*explain, options.problem));
  add_number(*explain, "--alpha", options.problem.alpha, "multiplier; 1 by default");
  add_variant(*explain, options.problem);
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
  add_enumeration(*tune, row_of("a_type"), options.a_type);
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
  add_choice<int32_t>(*quantize, "--scale-rule", options.scale_rule,
                      {{"default", NVFP4_SCALE_RULE_DEFAULT}, {"4over6", NVFP4_SCALE_RULE_4OVER6}},
                      "default",
                      "which element the largest of a block becomes: 6, or the better of 6 and 4");
  add_choice<int32_t>(
      *quantize, "--pack", options.packing,
      {{"none", NVFP4_PACKING_NONE}, {"90", NVFP4_PACKING_SM90_1}, {"100", NVFP4_PACKING_SM100_1}},
      "none",
      "also write PREFIX.packed.npy for run --b-quantized, in the order of 9.0 or of 10.0 and "
      "10.3");
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
  CLI::Option* variant = add_variant(*run, options);
  add_allow_unproven(*run, options);
  CLI::Option* groups = add_groups(*run, options, problem);
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
      "  nvfp4 run --groups 2x8 --a-type bf16 --data exact --gated --activation silu --k 512\n"
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
