// SPDX-License-Identifier: MIT
#include "tools/nvfp4/layers.h"

#include <set>

#include "tools/nvfp4/strict_json.h"

namespace nvfp4_tool {

namespace {

constexpr char kFormat[] = "nvfp4";
constexpr int64_t kTileRows = 128, kTileScales = 4;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::string without(const std::string& text, std::string_view end) {
  return text.substr(0, text.size() - end.size());
}

// If several dialects share names of scales, those names suggest the first; other tensors decide.
bool first_with_scales(const Dialect& dialect) {
  for (const Dialect& other : dialects()) {
    if (other.scales == dialect.scales) return &other == &dialect;
  }
  return false;
}

void check_said(const std::string& tensor, const StrictJson& said) {
  const StrictJson format = said.is_object() ? said.value("format", StrictJson()) : said;
  if (format != kFormat) {
    const std::string text =
        format.is_string() ? "'" + format.get<std::string>() + "'" : format.dump();
    throw Refusal{tensor, "declared as " + text, "'nvfp4', since it has its tensors"};
  }
  std::string odd;
  for (const auto& [key, value] : said.items()) {
    const bool block = (key == "group_size" || key == "block_size") && value == 16;
    if (block || key == "format" || key == "full_precision_matrix_mult") continue;
    odd += (odd.empty() ? "" : ", ") + key;
  }
  if (odd.empty()) return;
  throw Refusal{tensor, "declared with " + odd,
                "a declaration with none but format, full_precision_matrix_mult"};
}

// What a name begins with, up to its last dot.
std::string start_of(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

// How many scales 4-bit elements in a tensor may have: one for 16 or 32 elements, perhaps in 128x4
// tiles. Empty if it is of no type that may have such elements.
std::vector<int64_t> scale_counts(const TensorInfo& tensor) {
  int64_t bytes = 0;
  for (const PackedType& type : packed_types()) {
    if (type.dtype == tensor.dtype) bytes = type.bytes;
  }
  const std::vector<int64_t>& shape = tensor.shape;
  if (bytes == 0 || shape.size() < 2 || tensor.elements() == 0) return {};
  const int64_t n = shape[shape.size() - 2], k = shape.back() * 2 * bytes;
  const int64_t experts = tensor.elements() / (n * shape.back());
  std::vector<int64_t> counts;
  for (const int64_t block : {16, 32}) {
    if (k % block != 0) continue;
    const int64_t rows = (n + kTileRows - 1) / kTileRows * kTileRows;
    const int64_t across = (k / block + kTileScales - 1) / kTileScales * kTileScales;
    counts.push_back(experts * n * (k / block));
    counts.push_back(experts * rows * across);
  }
  return counts;
}

class Finder {
 public:
  explicit Finder(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    read_metadata();
    for (const auto& [name, tensor] : checkpoint.tensors) hints(tensor);
    for (const auto& [name, lost] : checkpoint.lost) hint_of_name(name);
    for (const auto& [layer, said] : said_) {
      if (said.is_object() && said.value("format", StrictJson()) == kFormat) {
        candidates_.emplace(layer, "modelopt");
      }
    }
    for (const auto& [name, tensor] : checkpoint.tensors) hint_together(name);
    for (const auto& [name, tensor] : checkpoint.tensors) find_not_read(tensor);
    find_name();
    for (const auto& [layer, dialect] : candidates_) claim(layer, dialect);
    find_unknown();
  }

  std::vector<Layer> layers() {
    std::vector<Layer> found;
    std::set<std::string> names;
    for (const auto& [name, dialect] : candidates_) names.insert(name);
    for (const auto& [name, refusal] : unknown_) names.insert(name);
    for (const std::string& name : names) {
      Layer layer;
      layer.name = name;
      if (said_by_.count(name) != 0) layer.declared_in = said_by_[name].file;
      try {
        if (unknown_.count(name) != 0) throw unknown_.at(name);
        fill(layer, candidates_.at(name));
      } catch (const Refusal& refusal) {
        layer.refusal = refusal;
      }
      found.push_back(std::move(layer));
    }
    return found;
  }

 private:
  const TensorInfo* find(const std::string& name) const {
    const auto at = checkpoint_.tensors.find(name);
    return at == checkpoint_.tensors.end() ? nullptr : &at->second;
  }

  void read_metadata() {
    for (const Declared& row : declared_rows()) {
      if (row.by != DeclaredBy::metadata) continue;
      for (const auto& [file, metadata] : checkpoint_.metadata) {
        const auto at = metadata.find(std::string(row.what));
        if (at == metadata.end()) continue;
        try {
          add_metadata(file, parse_strict(at->second), row);
        } catch (const std::runtime_error& error) {
          unreadable_ =
              Refusal{file, "one whose " + std::string(row.what) + " is " + error.what(), "JSON"};
        }
      }
    }
  }

  void add_metadata(const std::string& file, const StrictJson& said, const Declared& row) {
    if (!said.is_object() || !said.contains("layers") || !said["layers"].is_object()) return;
    for (const auto& [layer, value] : said["layers"].items()) {
      said_[layer] = value;
      said_by_[layer] = {std::string(row.dialect), file};
    }
    if (!said["layers"].empty()) listed_.insert(file);
  }

  // modelopt's ".weight_scale" also belongs to compressed-tensors, which is seen earlier.
  void add(const std::string& layer, std::string_view dialect) {
    // torchao's "X._weight_scale" is no "_weight_scale" of a layer "X.".
    if (layer.empty() || layer.back() == '.') return;
    std::string& known = candidates_.emplace(layer, dialect).first->second;
    if (known == "modelopt") known = dialect;
  }

  // Collects what a tensor's name and type suggest.
  void hints(const TensorInfo& tensor) {
    if (tensor.dtype == "NVFP4" || tensor.dtype == "MXFP4") {
      const std::string layer =
          ends_with(tensor.name, ".weight") ? without(tensor.name, ".weight") : tensor.name;
      return add(layer, tensor.dtype == "NVFP4" ? "ggml" : "ggml_mxfp4");
    }
    for (const Dialect& dialect : dialects()) {
      if (dialect.file != Container::safetensors) continue;
      if (!is_declared(dialect.name)) hint(tensor, dialect);
    }
  }

  // The same of a name alone.
  void hint_of_name(const std::string& name) {
    for (const Dialect& dialect : dialects()) {
      if (dialect.file != Container::safetensors || is_declared(dialect.name)) continue;
      const std::string_view suffix =
          dialect.layout == Layout::mxfp4 ? dialect.codes : dialect.tensor_scale;
      if (ends_with(name, suffix)) add(without(name, suffix), dialect.name);
    }
  }

  void hint(const TensorInfo& tensor, const Dialect& dialect) {
    const std::string& name = tensor.name;
    if (dialect.layout == Layout::mxfp4) {
      const bool bytes = tensor.dtype == "U8" && tensor.shape.size() > 2;
      if (!bytes || tensor.shape.back() != 16 || !ends_with(name, dialect.codes)) return;
      add(without(name, dialect.codes), dialect.name);
      return;
    }
    if (ends_with(name, dialect.tensor_scale)) {
      return add(without(name, dialect.tensor_scale), dialect.name);
    }
    if (!dialect.codes.empty() && ends_with(name, dialect.codes) && tensor.dtype == "U8") {
      return add(without(name, dialect.codes), dialect.name);
    }
    const bool block_scales = tensor.dtype == "F8_E4M3" && tensor.shape.size() >= 2;
    if (!block_scales || !ends_with(name, dialect.scales) || !first_with_scales(dialect)) return;
    const std::string layer = without(name, dialect.scales);
    const TensorInfo* codes = find(layer + std::string(dialect.codes));
    // In some checkpoints fp8 weights have fp8 scales. They are not NVFP4.
    if (codes && (starts_with(codes->dtype, "F8") || starts_with(codes->dtype, "I8"))) return;
    add(layer, dialect.name);
  }

  // Scales, beside codes with which they have the types and shapes of a dialect of together_rows().
  void hint_together(const std::string& name) {
    for (const std::string_view row : together_rows()) {
      const Dialect& dialect = dialect_of(row);
      if (!ends_with(name, dialect.scales)) continue;
      const std::string layer = without(name, dialect.scales);
      if (layer.empty() || !fit(layer, dialect)) continue;
      candidates_[layer] = row;
      return;
    }
  }

  bool fit(const std::string& name, const Dialect& dialect) const {
    Layer layer;
    layer.dialect = &dialect;
    layer.codes = find(name + std::string(dialect.codes));
    layer.scales = find(name + std::string(dialect.scales));
    if (!layer.codes || !layer.scales) return false;
    try {
      check_types_and_shapes(layer);
    } catch (const Refusal&) {
      return false;
    }
    return true;
  }

  // Codes of a program whose weights are not read.
  void find_not_read(const TensorInfo& tensor) {
    for (const NotRead& row : not_read_rows()) {
      if (!ends_with(tensor.name, row.codes)) continue;
      const std::string layer = without(tensor.name, row.codes);
      if (!find(layer + std::string(row.beside))) continue;
      candidates_.erase(layer);
      unknown_.emplace(layer, Refusal{tensor.name,
                                      tensor.dtype + " " + words(tensor.shape) + " of " +
                                          std::string(row.title) + ", which is not read",
                                      "one of dialects.def"});
    }
  }

  // Packed tensors that are no dialect's, beside scales.
  void find_unknown() {
    // By what the name begins with, and elements.
    std::map<std::pair<std::string, int64_t>, std::vector<const TensorInfo*>> scales;
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      const std::string start = start_of(name);
      if (claimed_.count(name) != 0 || tensor.shape.size() < 2) continue;
      if (name.find("scale", start.size()) == std::string::npos) continue;
      scales[{start, tensor.elements()}].push_back(&tensor);
    }
    for (const auto& [name, tensor] : checkpoint_.tensors) {
      if (claimed_.count(name) != 0) continue;
      const std::string start = start_of(name);
      const std::string layer = start.empty() ? name : start.substr(0, start.size() - 1);
      if (candidates_.count(layer) != 0) continue;
      for (const int64_t count : scale_counts(tensor)) {
        const auto near = scales.find({start, count});
        if (near == scales.end()) continue;
        for (size_t i = 0; i < near->second.size() && i < 2; ++i) {
          if (near->second[i] != &tensor) add_unknown(layer, tensor, *near->second[i]);
        }
      }
    }
  }

  void add_unknown(const std::string& layer, const TensorInfo& tensor, const TensorInfo& scales) {
    unknown_.emplace(layer, Refusal{tensor.name,
                                    tensor.dtype + " " + words(tensor.shape) + " beside " +
                                        scales.name + " " + words(scales.shape) +
                                        ", 4-bit elements of a dialect that is not known here",
                                    "one of dialects.def"});
  }

  void find_name() {
    const std::string codes(dialect_of("modelopt").codes);
    for (const Declared& row : declared_rows()) {
      if (row.by != DeclaredBy::name || !by_name_.empty()) continue;
      for (const auto& [layer, dialect] : candidates_) {
        const TensorInfo* tensor = dialect == "modelopt" ? find(layer + codes) : nullptr;
        if (tensor && tensor->dtype == "U8" && layer_matches(layer, row.what)) {
          by_name_ = row.dialect;
        }
      }
    }
  }

  void claim(const std::string& layer, const std::string& name) {
    const Dialect& dialect = dialect_of(name);
    for (const std::string_view suffix : {dialect.codes, dialect.scales, dialect.tensor_scale}) {
      claimed_.insert(layer + std::string(suffix));
    }
    for (const Beside& row : beside_rows()) {
      if (row.dialect == name) claimed_.insert(layer + std::string(row.suffix));
    }
  }

  // The dialect that is declared among those with modelopt's names.
  const Dialect& dialect_for(Layer& layer, const std::string& candidate) {
    layer.declared = candidate != "modelopt";
    const Dialect& named = dialect_of(candidate);
    for (const Declared& row : declared_rows()) {
      const Dialect& other = dialect_of(row.dialect);
      const bool same = other.codes == named.codes && other.scales == named.scales;
      if (row.by != DeclaredBy::tensor || !same) continue;
      if (!find(layer.name + std::string(row.what))) continue;
      layer.declared = true;
      return other;
    }
    for (const Declared& row : declared_rows()) {
      if (row.by == DeclaredBy::mxfp4 && row.what == candidate &&
          has_scales_of_32(layer.name, candidate)) {
        layer.declared = true;
        return dialect_of(row.dialect);
      }
    }
    if (layer.declared) return dialect_of(candidate);
    if (said_.count(layer.name) != 0) {
      check_said(layer.name, said_[layer.name]);
      layer.declared = true;
      return dialect_of(said_by_[layer.name].dialect);
    }
    const TensorInfo* codes = find(layer.name + std::string(dialect_of(candidate).codes));
    if (unreadable_) throw *unreadable_;
    if (codes && listed_.count(codes->file) != 0) {
      throw Refusal{codes->name, "a layer that the metadata of its file do not name",
                    "an entry with \"format\": \"nvfp4\" beside those of the other layers"};
    }
    layer.by_name = !by_name_.empty();
    return dialect_of(layer.by_name ? by_name_ : candidate);
  }

  // Whether it has that dialect's codes, and MXFP4's scales in place of its own.
  bool has_scales_of_32(const std::string& layer, const std::string& candidate) const {
    const Dialect& dialect = dialect_of(candidate);
    const TensorInfo* codes = find(layer + std::string(dialect.codes));
    const TensorInfo* scales = find(layer + std::string(dialect.scales));
    if (find(layer + std::string(dialect.tensor_scale)) || !codes || !scales) return false;
    if (codes->dtype != "U8" || (scales->dtype != "U8" && scales->dtype != "F8_E8M0")) return false;
    std::vector<int64_t> shape = scales->shape;
    if (shape.empty()) return false;
    shape.back() *= 16;
    return shape == codes->shape;
  }

  // Names of tensors that belong to the layer, or would.
  template <typename Map>
  std::vector<std::string> names_of(const Map& named, const std::string& layer,
                                    const Dialect& dialect) const {
    const std::string codes = layer + std::string(dialect.codes), start = layer + dialect.sign();
    std::vector<std::string> found;
    if (named.count(codes) != 0) found.push_back(codes);
    for (auto at = named.lower_bound(start); at != named.end() && starts_with(at->first, start);
         ++at) {
      if (dialect.sign() == '.' || claimed_.count(at->first) != 0) found.push_back(at->first);
    }
    return found;
  }

  // Refuses what the folder's indexes or a configuration say of the layer.
  void check_folder(const std::string& layer, const Dialect& dialect) const {
    for (const std::string& name : names_of(checkpoint_.lost, layer, dialect)) {
      const Lost& lost = checkpoint_.lost.at(name);
      throw Refusal{name, lost.what, lost.expected};
    }
    for (const std::string& name : names_of(checkpoint_.tensors, layer, dialect)) {
      const std::string& file = checkpoint_.tensors.at(name).file;
      if (checkpoint_.stray.count(file) == 0) continue;
      throw Refusal{name, "in " + file + ", which " + checkpoint_.index + " does not name",
                    "a file that the index names"};
    }
    for (const Transform& transform : checkpoint_.transforms) {
      if (!transform.concerns(layer)) continue;
      throw Refusal{layer + std::string(dialect.codes),
                    "of a layer with a transform, by " + transform.key + " of " + transform.file,
                    "a layer that multiplies x as it is"};
    }
  }

  const TensorInfo* once(const std::string& name) const {
    const auto at = checkpoint_.twice.find(name);
    if (at == checkpoint_.twice.end()) return find(name);
    std::string list;
    for (const std::string& file : at->second) list += (list.empty() ? "" : " and ") + file;
    throw Refusal{name, "in " + list, "one file that has it"};
  }

  const TensorInfo* part(const Layer& layer, std::string_view suffix, bool required) const {
    const std::string name = layer.name + std::string(suffix);
    const TensorInfo* tensor = once(name);
    if (tensor || !required) return tensor;
    check_alone(layer);
    const std::string why =
        said_.count(layer.name) != 0
            ? "declared as nvfp4"
            : "a layer of " + std::string(layer.dialect->title) + " by its other tensors";
    throw Refusal{name, "missing", "a tensor of that name, since " + layer.name + " is " + why};
  }

  // Codes alone speak for no dialect.
  void check_alone(const Layer& layer) const {
    const Dialect& dialect = *layer.dialect;
    const TensorInfo* codes = find(layer.name + std::string(dialect.codes));
    const bool scaled =
        find(layer.name + std::string(dialect.scales)) ||
        find(layer.name +
             std::string(dialect.tensor_scale.empty() ? dialect.codes : dialect.tensor_scale));
    if (!codes || scaled || said_.count(layer.name) != 0) return;
    throw Refusal{codes->name,
                  codes->dtype + " " + words(codes->shape) +
                      " without scales, of a dialect that is not known here",
                  "one of dialects.def"};
  }

  void fill(Layer& layer, const std::string& candidate) {
    check_folder(layer.name, dialect_of(candidate));
    layer.dialect = &dialect_for(layer, candidate);
    const Dialect& dialect = *layer.dialect;
    layer.codes = part(layer, dialect.codes, true);
    layer.scales = part(layer, dialect.scales, true);
    if (!dialect.tensor_scale.empty()) {
      layer.tensor_scale =
          part(layer, dialect.tensor_scale, dialect.file == Container::safetensors);
    }
    const std::string start = layer.name + dialect.sign();
    for (auto at = checkpoint_.tensors.lower_bound(start);
         at != checkpoint_.tensors.end() && starts_with(at->first, start); ++at) {
      add_beside(layer, at->first);
    }
    check_types_and_shapes(layer);
  }

  void add_beside(Layer& layer, const std::string& name) {
    for (const TensorInfo* own : {layer.codes, layer.scales, layer.tensor_scale}) {
      if (own && own->name == name) return;
    }
    std::string known;
    for (const Beside& row : beside_rows()) {
      if (row.dialect != layer.dialect->name) continue;
      const std::string full = layer.name + std::string(row.suffix);
      if (full == name) {
        layer.beside[row.use] = once(name);
        return;
      }
      known += (known.empty() ? "" : ", ") + full;
    }
    if (layer.dialect->sign() == '_' && claimed_.count(name) != 0) return;
    throw Refusal{name,
                  "what " + std::string(layer.dialect->title) + " does not have beside a weight",
                  "none but " + known};
  }

  const Checkpoint& checkpoint_;
  std::map<std::string, std::string> candidates_;  // layer: its first dialect
  std::map<std::string, StrictJson> said_;         // layer: its declaration in a file's metadata
  struct SaidBy {
    std::string dialect, file;
  };
  std::map<std::string, SaidBy> said_by_;  // layer: the dialect that this declares
  std::set<std::string> listed_;           // files whose metadata name layers
  std::optional<Refusal> unreadable_;
  std::string by_name_;
  std::map<std::string, Refusal> unknown_;  // layers of no dialect
  std::set<std::string> claimed_;           // names that some layer's dialect has
};

}  // namespace

std::vector<Layer> find_layers(const Checkpoint& checkpoint) { return Finder(checkpoint).layers(); }

std::string file_of(const Checkpoint& checkpoint, const Layer& layer, const std::string& tensor) {
  const auto own = checkpoint.tensors.find(tensor);
  if (own != checkpoint.tensors.end()) return own->second.file;
  const auto lost = checkpoint.lost.find(tensor);
  if (lost != checkpoint.lost.end()) return lost->second.index;
  const auto near = checkpoint.tensors.lower_bound(layer.name);
  if (near != checkpoint.tensors.end() && starts_with(near->first, layer.name)) {
    return near->second.file;
  }
  return layer.declared_in.empty() ? tensor : layer.declared_in;
}

void check_declaration(const std::string& tensor, const std::string& json) {
  StrictJson said;
  try {
    said = parse_strict(json);
  } catch (const std::runtime_error& error) {
    throw Refusal{tensor, error.what(), "JSON with \"format\""};
  }
  check_said(tensor, said);
}

}  // namespace nvfp4_tool
