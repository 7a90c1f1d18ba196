// SPDX-License-Identifier: MIT
// nvfp4 check: what an NVFP4 checkpoint says about each layer, and whether it would load correctly.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tools/harness/progress.h"
#include "tools/nvfp4/commands.h"
#include "tools/nvfp4/layer_checker.h"
#include "tools/nvfp4/report.h"

namespace nvfp4_tool {

namespace {

// b_tensor_scale_columns is a multiple of this.
constexpr int64_t kScaleColumns = 64;

void print(Report& report, const Checked& checked) {
  if (!checked.text.empty()) return report.line("WRONG", "%s", checked.text.c_str());
  const Json& json = checked.json;
  const double blocks = std::max(1.0, json["blocks"].get<double>());
  std::string more;
  const auto share = [&](const char* key, const char* words) {
    const double part = json[key].get<double>() / blocks;
    char text[96];
    std::snprintf(text, sizeof text, ", %.3g %% %s", 100 * part, words);
    if (part > 0) more += text;
  };
  share("zero_blocks", "of blocks are zeros");
  share("saturated_blocks", "have the largest scale");
  share("lost_blocks", "have a scale of 0 over other codes");
  share("nan_over_zeros", "have NaN over zeros");
  if (!json["input_scale"].is_null()) {
    more += ", input scale " + short_number(json["input_scale"].get<double>());
  }
  if (json["pre_quant_scale"].get<bool>()) more += ", pre_quant_scale";
  if (json.contains("error") && json["error"].is_number()) {
    more += ", error " + short_number(json["error"].get<double>()) + ", anew " +
            short_number(json["error_anew"].get<double>());
  }
  report.line("ok", "%s: %s, %lld x %lld, tensor scale %.6g%s", checked.name.c_str(),
              json["dialect"].get<std::string>().c_str(),
              static_cast<long long>(json["n"].get<int64_t>()),
              static_cast<long long>(json["k"].get<int64_t>()), checked.tensor_scale, more.c_str());
}

// Position in the name of the last component that belongs to a part of a fused layer, perhaps
// before an expert's number; npos if there is none.
size_t place_of(const std::string& name, std::string_view part) {
  const size_t end = std::min(name.find('['), name.size());
  if (end < part.size() || name.compare(end - part.size(), part.size(), part) != 0) {
    return std::string::npos;
  }
  const size_t at = end - part.size();
  return at == 0 || name[at - 1] == '.' ? at : std::string::npos;
}

void report_whole(Report& report, const std::string& whole,
                  const std::vector<const Checked*>& parts) {
  double low = parts[0]->tensor_scale, high = low;
  int64_t columns = 0;
  std::string names;
  for (const Checked* part : parts) {
    low = std::min(low, part->tensor_scale), high = std::max(high, part->tensor_scale);
    columns = std::gcd(columns, part->json["n"].get<int64_t>());
    names += (names.empty() ? "" : ", ") + part->name;
  }
  if (low == high || low <= 0) return;
  const bool fits = columns % kScaleColumns == 0;
  report["fused"].push_back({{"layer", whole},
                             {"parts", names},
                             {"ratio", high / low},
                             {"columns", fits ? Json(columns) : Json()}});
  const std::string fit = fits ? "each " + std::to_string(columns) + " columns have their own"
                               : "their rows have no common multiple of 64, so they stay apart";
  report.line("fused",
              "%s: the tensor scales of %s differ by a factor of %.4g, so one for all is wrong; %s",
              whole.c_str(), names.c_str(), high / low, fit.c_str());
}

// Layers that programs fuse into one GEMM: how much their tensor scales differ, and how many
// columns share each one in b_tensor_scale.
void report_fused(Report& report, const std::vector<Checked>& all) {
  std::map<std::string, const Checked*> right;
  for (const Checked& checked : all) {
    if (checked.text.empty()) right[checked.name] = &checked;
  }
  report["fused"] = Json::array();
  for (const auto& [name, checked] : right) {
    for (const FusedNames& row : fused_names()) {
      const size_t at = place_of(name, row.parts[0]);
      if (at == std::string::npos) continue;
      const auto named = [&, &whole = name](std::string_view part) {
        return std::string(whole).replace(at, row.parts[0].size(), part);
      };
      std::vector<const Checked*> parts;
      for (const std::string_view part : row.parts) {
        const auto found = right.find(named(part));
        if (found != right.end()) parts.push_back(found->second);
      }
      if (parts.size() == row.parts.size()) report_whole(report, named(row.layer), parts);
    }
  }
}

void print_histogram(Report& report, const std::array<int64_t, 16>& histogram) {
  report["scale_exponents"] = histogram;
  std::string text;
  int64_t all = 0;
  for (const int64_t count : histogram) all += count;
  for (size_t i = 0; i < histogram.size() && all > 0; ++i) {
    char bin[48];
    std::snprintf(bin, sizeof bin, "%s2^%d %.3g %%", text.empty() ? "" : ", ",
                  i == 0 ? -7 : int(i) - 7, 100 * double(histogram[i]) / double(all));
    if (histogram[i] > 0) text += bin;
  }
  if (!text.empty()) report.line("scales", "%s", text.c_str());
}

uint64_t bytes_of(const Layer& layer) { return layer.refusal ? 0 : layer.codes->bytes; }

}  // namespace

int check(const CheckOptions& options) {
  const Checkpoint checkpoint = open_checkpoint(options.path);
  std::optional<Checkpoint> reference;
  if (!options.reference.empty()) reference = open_checkpoint(options.reference);
  const std::vector<Layer> layers = find_layers(checkpoint);
  Checker checker(checkpoint, layers, reference ? &*reference : nullptr);
  checker.require_reference();
  Report report(options.json);
  report["path"] = options.path;
  report["files"] = Json::array();
  size_t wrong = checkpoint.broken.size();
  for (const auto& [file, why] : checkpoint.broken) {
    report.line("WRONG", "%s", why.c_str());
    report["files"].push_back({{"file", file}, {"problem", why}});
  }
  for (const auto& [file, why] : reference ? reference->broken : Broken()) {
    report.line("WRONG", "the reference: %s", why.c_str());
    report["files"].push_back({{"file", file}, {"problem", why}});
    ++wrong;
  }
  for (const std::string& file : checkpoint.stray) {
    report.line("unused", "%s: %s does not name it", file.c_str(), checkpoint.index.c_str());
    report["files"].push_back({{"file", file}, {"problem", Json()}});
  }
  double all = 0, done = 0;
  for (const Layer& layer : layers) all += double(bytes_of(layer));
  const std::function<void(double)> progress = support::progress_of("checking");
  std::vector<Checked> results;
  for (const Layer& layer : layers) {
    for (Checked& checked : checker.check(layer)) {
      support::progress_done();
      print(report, checked);
      wrong += !checked.text.empty();
      results.push_back(std::move(checked));
    }
    done += double(bytes_of(layer));
    if (progress && all > 0) progress(done / all);
  }
  support::progress_done();
  report_fused(report, results);
  report["layers"] = Json::array();
  for (Checked& checked : results) report["layers"].push_back(std::move(checked.json));
  print_histogram(report, checker.histogram());
  report["wrong"] = wrong;
  report.line("layers", "%zu in %zu files, %zu would give wrong results", results.size(),
              checkpoint.files.size(), wrong);
  report.finish();
  return wrong > 0 || results.empty() ? kFailed : kPassed;
}

}  // namespace nvfp4_tool
