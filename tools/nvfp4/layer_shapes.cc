// SPDX-License-Identifier: MIT
#include <algorithm>

#include "tools/nvfp4/layers.h"

namespace nvfp4_tool {

namespace {

using Dims = std::vector<int64_t>;

std::vector<std::string> split(std::string_view text, std::string_view by) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + by.size();
  }
  return parts;
}

// The dimensions of a layer's codes, in words.
std::vector<std::string> dims_of_codes(const Layer& layer) {
  for (const Shape& row : shape_rows()) {
    if (row.layout == layer.dialect->layout_name && row.part == Use::codes) {
      return split(row.shape, ", ");
    }
  }
  throw std::logic_error("a layout without codes: " + std::string(layer.dialect->layout_name));
}

// A product of n and k, each perhaps divided, then rounded up.
int64_t value_of(const std::string& text, int64_t n, int64_t k) {
  int64_t total = 1;
  for (const std::string& term : split(text, " * ")) {
    const std::vector<std::string> steps = split(term, " ");
    int64_t value = steps[0] == "n" ? n : k;
    for (size_t i = 1; i + 1 < steps.size(); i += 2) {
      const int64_t number = std::stoll(steps[i + 1]);
      value = steps[i] == "/" ? value / number : (value + number - 1) / number * number;
    }
    total *= value;
  }
  return total;
}

[[noreturn]] void refuse_shape(const TensorInfo& tensor, const std::string& expected) {
  throw Refusal{tensor.name, "of shape " + words(tensor.shape), expected};
}

void check_type(const TensorInfo& tensor, std::string_view types) {
  const std::vector<std::string> known = split(types, " or ");
  if (types.empty() || std::find(known.begin(), known.end(), tensor.dtype) != known.end()) return;
  throw Refusal{tensor.name, "of " + tensor.dtype, std::string(types)};
}

// One value, or one for each expert.
void check_count(const TensorInfo& tensor, const Layer& layer) {
  const int64_t count = tensor.elements();
  if (count == 1 || (layer.stacked() && count == layer.experts())) return;
  throw Refusal{tensor.name, std::to_string(count) + " values, shape " + words(tensor.shape),
                layer.stacked() ? "one value, or " + std::to_string(layer.experts()) : "one value"};
}

void check_codes(const Layer& layer) {
  const std::vector<std::string> dims = dims_of_codes(layer);
  const Dims& shape = layer.codes->shape;
  std::string text;
  for (const std::string& dim : dims) text += (text.empty() ? "" : ", ") + dim;
  const bool fits = shape.size() == dims.size() || shape.size() == dims.size() + 1;
  if (!fits || std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    refuse_shape(*layer.codes, "[" + text + "], or [experts, " + text + "]");
  }
  if (layer.stacked() && !may_be_stacked(layer.dialect->layout_name)) {
    refuse_shape(*layer.codes, "[" + text + "]");
  }
  if (!layer.stacked() && layer.dialect->codes.empty()) {
    refuse_shape(*layer.codes, "[experts, " + text + "]");
  }
  if (layer.k() % 16 != 0) refuse_shape(*layer.codes, "k, a multiple of 16");
}

// What else may be meant by scales of a shape that does not fit.
std::string hint(const Layer& layer, const Dims& shape) {
  if (layer.dialect->layout != Layout::linear) return "";
  std::string text;
  if (!shape.empty() && shape.back() * 32 == layer.k()) {
    text += "; one scale for 32 elements is MXFP4";
  }
  if (layer.stacked() && shape == Dims{layer.experts(), layer.n() / 8, layer.codes->shape.back()}) {
    text += "; k is the second dimension here, which is not read";
  }
  return text;
}

void check_shape(const Layer& layer, const Shape& row) {
  const TensorInfo& tensor = *layer.at(row.part);
  std::string expected;
  for (const std::string& one : split(row.shape, " or ")) {
    Dims fit;
    if (layer.stacked()) fit.push_back(layer.experts());
    for (const std::string& dim : split(one, ", ")) {
      fit.push_back(value_of(dim, layer.n(), layer.k()));
    }
    if (tensor.shape == fit) return;
    expected += (expected.empty() ? "" : " or ") + words(fit);
  }
  if (row.part == Use::scales) {
    expected += ", since codes are " + words(layer.codes->shape) + hint(layer, tensor.shape);
  }
  refuse_shape(tensor, expected);
}

}  // namespace

const TensorInfo* Layer::at(Use use) const {
  if (use == Use::codes) return codes;
  if (use == Use::scales) return scales;
  if (use == Use::tensor_scale) return tensor_scale;
  const auto found = beside.find(use);
  return found == beside.end() ? nullptr : found->second;
}

bool Layer::stacked() const { return codes->shape.size() > dims_of_codes(*this).size(); }
int64_t Layer::experts() const { return stacked() ? codes->shape[0] : 1; }
int64_t Layer::n() const { return codes->shape[stacked() ? 1 : 0]; }
int64_t Layer::k() const {
  const std::string across = dims_of_codes(*this)[1];
  const size_t sign = across.find(" / ");
  const int64_t divisor = sign == std::string::npos ? 1 : std::stoll(across.substr(sign + 3));
  return codes->shape[stacked() ? 2 : 1] * divisor;
}

std::string words(const Dims& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void check_types_and_shapes(const Layer& layer) {
  std::vector<Shape> rows;
  for (const Shape& row : shape_rows()) {
    const bool own = row.layout == layer.dialect->layout_name || row.layout == "any";
    if (own && layer.at(row.part)) rows.push_back(row);
  }
  for (const Shape& row : rows) check_type(*layer.at(row.part), row.types);
  check_codes(layer);
  for (const Shape& row : rows) {
    if (row.shape == "1") {
      check_count(*layer.at(row.part), layer);
    } else if (row.part != Use::codes) {
      check_shape(layer, row);
    }
  }
}

}  // namespace nvfp4_tool
