// SPDX-License-Identifier: MIT
#include "tools/nvfp4/layers.h"

#include <algorithm>

namespace nvfp4_tool {

namespace {

using Shape = std::vector<int64_t>;

void expect(const TensorInfo* tensor, const std::vector<std::string>& types) {
  if (tensor == nullptr) return;
  if (std::find(types.begin(), types.end(), tensor->dtype) != types.end()) return;
  std::string list;
  for (const std::string& type : types) list += (list.empty() ? "" : " or ") + type;
  throw Refusal{tensor->name, "of " + tensor->dtype, list};
}

[[noreturn]] void refuse_shape(const TensorInfo& tensor, const std::string& expected) {
  throw Refusal{tensor.name, "of shape " + words(tensor.shape), expected};
}

std::vector<Shape> scale_shapes(Layout layout, int64_t n, int64_t k) {
  if (layout == Layout::linear) return {{n, k / 16}};
  if (layout == Layout::mxfp4_linear) return {{n, k / 32}};
  const int64_t rows = (n + 127) / 128 * 128, columns = (k + 63) / 64 * 4;
  return {{rows, columns}, {rows * columns}};
}

void check_scales_of_32(const Layer& layer) {
  const Shape& blocks = layer.codes->shape;
  const Shape fit(blocks.begin(), blocks.end() - 1);
  if (layer.scales->shape == fit) return;
  refuse_shape(*layer.scales, words(fit) + ", since blocks are " + words(blocks));
}

void check_scales(const Layer& layer) {
  if (layer.dialect->layout == Layout::mxfp4) return check_scales_of_32(layer);
  const Shape& shape = layer.scales->shape;
  std::string expected;
  for (Shape fit : scale_shapes(layer.dialect->layout, layer.n(), layer.k())) {
    if (layer.stacked()) fit.insert(fit.begin(), layer.experts());
    if (shape == fit) return;
    expected += (expected.empty() ? "" : " or ") + words(fit);
  }
  expected += ", since codes are " + words(layer.codes->shape);
  if (layer.dialect->layout == Layout::linear) {
    if (!shape.empty() && shape.back() * 32 == layer.k()) {
      expected += "; one scale for 32 elements is MXFP4";
    }
    if (layer.stacked() &&
        shape == Shape{layer.experts(), layer.n() / 8, layer.codes->shape.back()}) {
      expected += "; k is the second dimension here, which is not read";
    }
  }
  refuse_shape(*layer.scales, expected);
}

// One value, or one for each expert.
void check_count(const TensorInfo* tensor, const Layer& layer) {
  if (tensor == nullptr) return;
  const int64_t count = tensor->elements();
  if (count == 1 || (layer.stacked() && count == layer.experts())) return;
  throw Refusal{tensor->name, std::to_string(count) + " values, shape " + words(tensor->shape),
                layer.stacked() ? "one value, or " + std::to_string(layer.experts()) : "one value"};
}

void check_vector(const TensorInfo* tensor, const Layer& layer, int64_t count) {
  if (tensor == nullptr) return;
  const Shape fit = layer.stacked() ? Shape{layer.experts(), count} : Shape{count};
  if (tensor->shape != fit) refuse_shape(*tensor, words(fit));
}

void check_codes(const Layer& layer) {
  const Shape& shape = layer.codes->shape;
  const Layout layout = layer.dialect->layout;
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const size_t dimensions = shape.size() - (layout == Layout::mxfp4 ? 1 : 0);
  if ((dimensions != 2 && dimensions != 3) || empty) {
    refuse_shape(*layer.codes, layout == Layout::mxfp4
                                   ? "[n, k / 32, 16], or [experts, n, k / 32, 16]"
                                   : "[n, k / 2], or [experts, n, k / 2]");
  }
  const bool stacks =
      layout == Layout::linear || layer.dialect->mxfp4() || layer.dialect->in_blocks();
  if (layer.stacked() && !stacks) {
    refuse_shape(*layer.codes, "[n, k / 2]");
  }
  if (layer.dialect->codes.empty() && !layer.stacked()) {
    refuse_shape(*layer.codes, "[experts, n, k / 2]");
  }
  if (layer.k() % 16 != 0) refuse_shape(*layer.codes, "k, a multiple of 16");
}

}  // namespace

std::string words(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

void check_types(const Layer& layer) {
  if (!layer.dialect->in_blocks()) {
    expect(layer.codes, {"U8"});
    if (layer.dialect->mxfp4()) {
      expect(layer.scales, {"U8", "F8_E8M0"});
    } else {
      expect(layer.scales, {"F8_E4M3", "U8"});
    }
  }
  expect(layer.tensor_scale, {"F32"});
  expect(layer.at(Use::input_scale), {"F32"});
  expect(layer.at(Use::input_divisor), {"F32"});
  expect(layer.at(Use::bias), {"F32", "F16", "BF16"});
  expect(layer.at(Use::pre_quant), {"F32", "F16", "BF16"});
}

void check_shapes(const Layer& layer) {
  check_codes(layer);
  if (!layer.dialect->in_blocks()) check_scales(layer);
  check_count(layer.tensor_scale, layer);
  for (const Use use : {Use::input_scale, Use::input_divisor, Use::e4m3_max, Use::swizzled}) {
    check_count(layer.at(use), layer);
  }
  check_vector(layer.at(Use::bias), layer, layer.n());
  check_vector(layer.at(Use::pre_quant), layer, layer.k());
}

}  // namespace nvfp4_tool
