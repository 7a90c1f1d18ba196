// SPDX-License-Identifier: MIT
#include "tools/nvfp4/layer_checker.h"

#include <cstdio>

#include "tools/nvfp4/commands.h"

namespace nvfp4_tool {

namespace {

// Limit as a multiple of the error of the same matrix quantized again.
constexpr double kMostOfAnew = 3;
constexpr char kInReference[] = "not in the reference in 16 or 32 bits";

bool is_float(const TensorInfo& tensor) {
  return tensor.dtype == "BF16" || tensor.dtype == "F16" || tensor.dtype == "F32";
}

}  // namespace

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::vector<Checked> Checker::check(const Layer& layer) {
  std::vector<Checked> found;
  if (layer.refusal) return {refused(layer, layer.name, *layer.refusal)};
  for (int64_t expert = 0; expert < layer.experts(); ++expert) {
    const std::string name =
        layer.stacked() ? layer.name + "[" + std::to_string(expert) + "]" : layer.name;
    try {
      found.push_back(check_matrix(layer, name, expert));
    } catch (const Refusal& refusal) {
      Checked wrong = refused(layer, name, refusal);
      // An error in a tensor that all experts share is reported once.
      if (found.empty() || found.back().text != wrong.text) found.push_back(std::move(wrong));
    } catch (const FormatError& error) {
      found.push_back({name, error.what(), {{"layer", name}, {"problem", error.what()}}, 0});
    }
  }
  return found;
}

Checked Checker::refused(const Layer& layer, const std::string& name,
                         const Refusal& refusal) const {
  Checked checked;
  checked.name = name;
  checked.text = file_of(checkpoint_, layer, refusal.tensor) + ": layer " + layer.name + ": " +
                 refusal.tensor + " is " + refusal.what + "; expected " + refusal.expected;
  checked.json = {{"layer", name}};
  if (layer.dialect) checked.json["dialect"] = std::string(layer.dialect->name);
  checked.json["problem"] = checked.text;
  return checked;
}

Checked Checker::check_matrix(const Layer& layer, const std::string& name, int64_t expert) {
  const MatrixBytes matrix = read_matrix(layer, expert, reader_);
  const std::optional<double> input_scale = read_input_scale(layer, reader_);
  const std::vector<double> pre_quant_scale = read_pre_quant_scale(layer, reader_);
  const Statistics seen = statistics_of(matrix);
  for (size_t i = 0; i < histogram_.size(); ++i) histogram_[i] += seen.histogram[i];
  Checked checked;
  checked.name = name, checked.tensor_scale = matrix.tensor_scale;
  Json& json = checked.json;
  json["layer"] = name;
  json["dialect"] = std::string(layer.dialect->name);
  json["n"] = matrix.n, json["k"] = matrix.k;
  json["tensor_scale"] = matrix.tensor_scale;
  json["input_scale"] = input_scale ? Json(*input_scale) : Json();
  json["pre_quant_scale"] = !pre_quant_scale.empty();
  json["blocks"] = seen.blocks, json["zero_blocks"] = seen.zero;
  json["nan_over_zeros"] = seen.nan_over_zeros, json["saturated_blocks"] = seen.saturated;
  json["lost_blocks"] = seen.lost, json["scale_exponents"] = seen.histogram;
  judge_layout(layer, matrix, checked);
  if (const auto refusal = values_refused(layer, matrix, seen, expert)) {
    add(layer, checked, *refusal);
  }
  if (reference_) compare(layer, matrix, pre_quant_scale, expert, checked);
  json["problem"] = checked.text.empty() ? Json() : Json(checked.text);
  return checked;
}

void Checker::add(const Layer& layer, Checked& checked, const Refusal& refusal) const {
  if (checked.text.empty()) checked.text = refused(layer, "", refusal).text;
}

// Compares the layout, declared or not, with what the scales' statistics say.
void Checker::judge_layout(const Layer& layer, const MatrixBytes& matrix, Checked& checked) {
  if (layer.dialect->in_blocks() || layer.dialect->ue8m0()) return;
  const double ratio = other_layout_ratio(matrix, matrix.tiles);
  checked.json["other_layout_ratio"] = ratio > 0 ? Json(ratio) : Json();
  if (ratio >= double(limit::other_layout)) {
    add(layer, checked,
        {layer.scales->name,
         std::string("read as ") + (matrix.tiles ? "128x4 tiles" : "linear") +
             ", but its rows and columns explain " + short_number(ratio) +
             " times as much of its scales in the other layout",
         std::string("a declaration of ") + (matrix.tiles ? "linear scales" : "128x4 tiles")});
  }
  if (!layer.by_name || name_proved()) return;
  add(layer, checked,
      {layer.scales->name,
       "of a layer that is " + std::string(layer.dialect->title) +
           "'s by its names only, and no scales tell 128x4 tiles from linear ones",
       "a declaration of its layout"});
}

// Whether some layer of that name has scales that speak for the layout of its dialect.
bool Checker::name_proved() {
  if (!name_proved_) {
    name_proved_ = false;
    for (const Layer& layer : layers_) {
      if (layer.refusal || !layer.by_name || !speaks_for_tiles(layer)) continue;
      name_proved_ = true;
      break;
    }
  }
  return *name_proved_;
}

bool Checker::speaks_for_tiles(const Layer& layer) {
  if (!same_in_both_layouts(layer.n(), layer.k())) return true;
  try {
    const double ratio = other_layout_ratio(read_matrix(layer, 0, reader_), true);
    return ratio > 0 && ratio * double(limit::other_layout) <= 1;
  } catch (const Refusal&) {
    return false;  // said where the layer itself is checked
  }
}

// Null if the reference does not have the layer as floats.
const TensorInfo* Checker::original_of(const Layer& layer) const {
  for (const char* suffix : {".weight", ""}) {
    const auto at = reference_->tensors.find(layer.name + suffix);
    if (at != reference_->tensors.end() && is_float(at->second)) return &at->second;
  }
  return nullptr;
}

void Checker::require_reference() const {
  if (!reference_) return;
  const Layer* first = nullptr;
  for (const Layer& layer : layers_) {
    if (layer.refusal) continue;
    if (original_of(layer)) return;
    if (!first) first = &layer;
  }
  if (!first) return;
  const auto at = reference_->tensors.find(first->name + ".weight");
  throw UsageError("the reference has none of the layers in 16 or 32 bits: " + first->name +
                   ".weight is " +
                   (at == reference_->tensors.end() ? "missing" : "of " + at->second.dtype));
}

void Checker::compare(const Layer& layer, const MatrixBytes& matrix,
                      const std::vector<double>& pre_quant_scale, int64_t expert,
                      Checked& checked) {
  const TensorInfo* original = original_of(layer);
  if (!original) {
    checked.json["error"] = Json();
    return add(layer, checked, {layer.codes->name, kInReference, layer.name + ".weight there"});
  }
  const ReferenceError error =
      compare_with(matrix, pre_quant_scale, *original, expert, layer.experts(), reference_reader_);
  checked.json["error"] = error.error, checked.json["error_anew"] = error.anew;
  if (error.error <= kMostOfAnew * error.anew) return;
  add(layer, checked,
      {layer.codes->name, short_number(error.error) + " of the reference's norm away from it",
       "at most " + short_number(kMostOfAnew) + " times the error when quantized anew, which is " +
           short_number(error.anew)});
}

}  // namespace nvfp4_tool
