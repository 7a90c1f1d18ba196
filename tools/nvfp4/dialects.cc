// SPDX-License-Identifier: MIT
#include "tools/nvfp4/dialects.h"

#include <algorithm>
#include <stdexcept>

namespace nvfp4_tool {

const std::vector<Dialect>& dialects() {
  static const std::vector<Dialect> rows = {
#define NVFP4_DIALECT(name, title, file, codes, scales, tensor_scale, direction, nibbles, layout) \
  {#name,          title,        Container::file,      codes,                                     \
   scales,         tensor_scale, Direction::direction, Nibbles::nibbles,                          \
   Layout::layout, #layout},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<Beside>& beside_rows() {
  static const std::vector<Beside> rows = {
#define NVFP4_BESIDE(dialect, suffix, use) {#dialect, suffix, Use::use},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<Shape>& shape_rows() {
  static const std::vector<Shape> rows = {
#define NVFP4_SHAPE(layout, part, types, shape) {#layout, Use::part, types, shape},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

bool may_be_stacked(std::string_view layout) {
  static const std::vector<std::string_view> rows = {
#define NVFP4_STACKED(layout) #layout,
#include "tools/nvfp4/dialects.def"
  };
  return std::find(rows.begin(), rows.end(), layout) != rows.end();
}

const std::vector<Declared>& declared_rows() {
  static const std::vector<Declared> rows = {
#define NVFP4_DECLARED(dialect, by, what) {#dialect, DeclaredBy::by, what},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<std::string_view>& together_rows() {
  static const std::vector<std::string_view> rows = {
#define NVFP4_TOGETHER(dialect) #dialect,
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<NotRead>& not_read_rows() {
  static const std::vector<NotRead> rows = {
#define NVFP4_NOT_READ(title, codes, beside) {title, codes, beside},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<FusedNames>& fused_names() {
  static const std::vector<FusedNames> rows = {
#define NVFP4_FUSED(layer, ...) {layer, {__VA_ARGS__}},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<GgufType>& gguf_types() {
  static const std::vector<GgufType> rows = {
#define NVFP4_GGUF_TYPE(number, name, elements, bytes) {number, name, elements, bytes},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<FolderName>& folder_names() {
  static const std::vector<FolderName> rows = {
#define NVFP4_FOLDER(what, name) {FolderFile::what, name},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

const std::vector<PackedType>& packed_types() {
  static const std::vector<PackedType> rows = {
#define NVFP4_PACKED(dtype, bytes) {dtype, bytes},
#include "tools/nvfp4/dialects.def"
  };
  return rows;
}

bool transform_word(TransformWord what, std::string_view word) {
  static const std::vector<std::pair<TransformWord, std::string_view>> rows = {
#define NVFP4_TRANSFORM(what, word) {TransformWord::what, word},
#include "tools/nvfp4/dialects.def"
  };
  return std::find(rows.begin(), rows.end(), std::make_pair(what, word)) != rows.end();
}

bool is_declared(std::string_view dialect) {
  for (const Declared& row : declared_rows()) {
    if (row.dialect == dialect) return true;
  }
  const std::vector<std::string_view>& together = together_rows();
  return std::find(together.begin(), together.end(), dialect) != together.end();
}

const Dialect& dialect_of(std::string_view name) {
  for (const Dialect& dialect : dialects()) {
    if (dialect.name == name) return dialect;
  }
  throw std::logic_error("no such dialect: " + std::string(name));
}

namespace {

bool matches_whole(std::string_view text, std::string_view pattern) {
  size_t at = 0;
  for (const char c : pattern) {
    if (c == '#') {
      const size_t begin = at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
      if (at == begin) return false;
    } else if (at >= text.size() || text[at++] != c) {
      return false;
    }
  }
  return at == text.size();
}

}  // namespace

bool layer_matches(std::string_view layer, std::string_view pattern) {
  for (size_t begin = 0; begin != std::string_view::npos;) {
    if (matches_whole(layer.substr(begin), pattern)) return true;
    const size_t dot = layer.find('.', begin);
    begin = dot == std::string_view::npos ? dot : dot + 1;
  }
  return false;
}

}  // namespace nvfp4_tool
