// SPDX-License-Identifier: MIT
// dialects.def as tables: how other programs store NVFP4 weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nvfp4_tool {

enum class Direction { multiplies, divides, amax };
enum class Nibbles { low_first, high_first, halves };
enum class Layout {
  linear,
  tiles_128x4,
  padded,
  blocks,
  mxfp4,
  mxfp4_linear,
  mxfp4_blocks,
  tiles_mxfp4,
  tiles_ue8m0,
  words,
  words_mxfp4
};
enum class Container { safetensors, gguf };
// Parts of a layer, and what stands beside it.
enum class Use {
  codes,
  scales,
  tensor_scale,
  bias,
  input_scale,
  input_divisor,
  pre_quant,
  declaration,
  e4m3_max,
  swizzled,
  apart
};
enum class DeclaredBy { tensor, metadata, mxfp4, name };
enum class FolderFile { index, config };
enum class TransformWord { key, folded };

struct Dialect {
  std::string_view name, title;
  Container file;
  std::string_view codes, scales, tensor_scale;
  Direction direction;
  Nibbles nibbles;
  Layout layout;
  std::string_view layout_name;

  bool mxfp4() const {
    return layout == Layout::mxfp4 || layout == Layout::mxfp4_linear ||
           layout == Layout::mxfp4_blocks || layout == Layout::tiles_mxfp4 ||
           layout == Layout::words_mxfp4;
  }
  bool ue8m0() const { return mxfp4() || layout == Layout::tiles_ue8m0; }
  bool tiles() const {
    return layout == Layout::tiles_128x4 || layout == Layout::tiles_mxfp4 ||
           layout == Layout::tiles_ue8m0;
  }
  // One tensor has codes and scales, and its last dimension counts elements.
  bool in_blocks() const { return layout == Layout::blocks || layout == Layout::mxfp4_blocks; }
  // Between a layer's name and what stands beside its weight.
  char sign() const { return codes.empty() ? '_' : codes.front(); }
};

struct Beside {
  std::string_view dialect, suffix;
  Use use;
};

struct Shape {
  std::string_view layout;  // or "any"
  Use part;
  std::string_view types, shape;
};

struct Declared {
  std::string_view dialect;
  DeclaredBy by;
  std::string_view what;
};

struct NotRead {
  std::string_view title, codes, beside;
};

struct FusedNames {
  std::string_view layer;
  std::vector<std::string_view> parts;
};

struct GgufType {
  uint32_t number;
  std::string_view name;
  uint64_t elements, bytes;
};

struct FolderName {
  FolderFile what;
  std::string_view name;
};

struct PackedType {
  std::string_view dtype;
  int64_t bytes;
};

const std::vector<Dialect>& dialects();
const std::vector<Beside>& beside_rows();
const std::vector<Shape>& shape_rows();
bool may_be_stacked(std::string_view layout);
const std::vector<Declared>& declared_rows();
// Dialects for which codes and scales speak together.
const std::vector<std::string_view>& together_rows();
const std::vector<NotRead>& not_read_rows();
const std::vector<FusedNames>& fused_names();
const std::vector<GgufType>& gguf_types();

const std::vector<FolderName>& folder_names();
const std::vector<PackedType>& packed_types();
bool transform_word(TransformWord what, std::string_view word);

// The rows of NVFP4_LIMIT.
namespace limit {
#define NVFP4_LIMIT(name, number) constexpr int64_t name = number;
#include "tools/nvfp4/dialects.def"
}  // namespace limit

// Whether no tensor alone speaks for it: a row of declared_rows() takes it in place of another, or
// together_rows() has it.
bool is_declared(std::string_view dialect);
const Dialect& dialect_of(std::string_view name);

// Whether a layer has a name with # for a number, perhaps after a prefix that ends with a dot.
bool layer_matches(std::string_view layer, std::string_view pattern);

}  // namespace nvfp4_tool
