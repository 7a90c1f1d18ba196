// SPDX-License-Identifier: MIT
#include "tools/nvfp4/folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "tools/nvfp4/dialects.h"
#include "tools/nvfp4/strict_json.h"
#include "tools/nvfp4/tensor_file.h"

namespace nvfp4_tool {

namespace {

namespace fs = std::filesystem;

constexpr char kMap[] = "weight_map";

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_named(const std::string& name, FolderFile what) {
  for (const FolderName& row : folder_names()) {
    if (row.what != what) continue;
    if (what == FolderFile::index ? ends_with(name, row.name) : name == row.name) return true;
  }
  return false;
}

std::vector<std::string> files_named(const std::string& folder, FolderFile what) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_named(at->path().filename().string(), what) && at->is_regular_file(error)) {
      paths.push_back((fs::path(folder) / at->path().filename()).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Python writes NaN and Infinity, which are no JSON; they become null.
std::string without_infinity(const std::string& text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string_view word;
    for (const std::string_view one : {"-Infinity", "Infinity", "NaN"}) {
      if (!quoted && text.compare(i, one.size(), one) == 0) word = one;
    }
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    }
    if (word.empty()) {
      out += text[i];
    } else {
      out += "null", i += word.size() - 1;
    }
  }
  return out;
}

StrictJson read_json(const std::string& path) {
  const DataFile file(path);
  const std::vector<uint8_t> bytes = file.read(0, file.size());
  try {
    return parse_strict(without_infinity(std::string(bytes.begin(), bytes.end())));
  } catch (const std::runtime_error& error) {
    throw FormatError(path + " is no JSON: " + error.what());
  }
}

bool plain(const std::string& file) {
  return !file.empty() && file != "." && file != ".." &&
         file.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

void add_index(const std::string& path, Index& index) {
  const StrictJson said = read_json(path);
  const StrictJson map = said.is_object() ? said.value(kMap, StrictJson()) : StrictJson();
  const bool names = map.is_object() && std::all_of(map.begin(), map.end(), [](const auto& file) {
                       return file.is_string();
                     });
  if (!names) throw FormatError(path + " is no index: it has no weight_map of names");
  index.paths.push_back(path);
  std::string outside;
  for (const auto& [tensor, value] : map.items()) {
    const std::string file = value.template get<std::string>();
    if (!plain(file)) {
      index.outside[tensor] = {path, "in '" + file + "'", "a file of this folder"};
      if (outside.empty()) outside = "names '" + file + "' for " + tensor;
      continue;
    }
    const auto [at, fresh] = index.files.emplace(tensor, Index::Place{path, file});
    if (!fresh && at->second.file != file) index.twice[tensor] = {at->second.file, file};
  }
  if (!outside.empty()) throw FormatError(path + " " + outside + "; expected a file of its folder");
}

// The strings of a list, or one.
std::vector<std::string> strings_of(const StrictJson& object, const char* key) {
  const auto at = object.find(key);
  std::vector<std::string> found;
  if (at == object.end()) return found;
  if (at->is_string()) return {at->get<std::string>()};
  if (!at->is_array()) return found;
  for (const StrictJson& one : *at) {
    if (one.is_string()) found.push_back(one.get<std::string>());
  }
  return found;
}

// The entries of all lists "apply" of the groups of a key's value; nothing if it has another form.
std::optional<std::vector<StrictJson>> applied(const StrictJson& value) {
  std::vector<StrictJson> entries;
  if (!value.is_object()) return std::nullopt;
  for (const StrictJson& groups : value) {
    if (!groups.is_object()) return std::nullopt;
    for (const StrictJson& group : groups) {
      const StrictJson apply =
          group.is_object() ? group.value("apply", StrictJson()) : StrictJson();
      if (!apply.is_array()) return std::nullopt;
      for (const StrictJson& one : apply) {
        if (!one.is_object()) return std::nullopt;
        entries.push_back(one);
      }
    }
  }
  return entries;
}

bool is_nothing(const StrictJson& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_structured() && value.empty());
}

void add_transforms(const std::string& path, const std::string& key, const StrictJson& value,
                    std::vector<Transform>& found) {
  if (is_nothing(value)) return;
  const std::optional<std::vector<StrictJson>> entries = applied(value);
  if (!entries) return found.push_back({path, key, {}, {}});
  for (const StrictJson& one : *entries) {
    const auto at = one.find("location");
    const bool folded = at != one.end() && at->is_string() &&
                        transform_word(TransformWord::folded, at->get<std::string>());
    if (!folded) {
      found.push_back({path, key, strings_of(one, "targets"), strings_of(one, "ignore")});
    }
  }
}

void find_transforms(const std::string& path, const StrictJson& said,
                     std::vector<Transform>& found) {
  if (!said.is_structured()) return;
  for (const auto& [key, value] : said.items()) {
    if (said.is_object() && transform_word(TransformWord::key, key)) {
      add_transforms(path, key, value, found);
    } else {
      find_transforms(path, value, found);
    }
  }
}

// A pattern of which it is certain what it matches: literals, "." and ".*", as single characters:
// 1 is ".", 2 is ".*".
std::optional<std::string> certain(std::string_view pattern) {
  std::string parts;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool last = i + 1 == pattern.size();
    if (c == '.') {
      const bool star = !last && pattern[i + 1] == '*';
      parts += star ? '\2' : '\1';
      i += star;
    } else if (c == '\\' && !last && pattern[i + 1] == '.') {
      parts += pattern[++i];
    } else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') {
      parts += c;
    } else if (!(c == '^' && i == 0) && !(c == '$' && last)) {
      return std::nullopt;
    }
  }
  if (pattern.empty() || pattern.back() != '$') parts += '\2';
  return parts;
}

// The index of the next character of UTF-8: bytes 10xxxxxx continue one.
size_t next_character(const std::string& text, size_t at) {
  do {
    ++at;
  } while (at < text.size() && (text[at] & 0xC0) == 0x80);
  return at;
}

// From a star that does not lead on, goes back to the last one.
bool matches_parts(const std::string& text, const std::string& parts) {
  size_t at = 0, part = 0, star = std::string::npos, from = 0;
  while (at < text.size()) {
    if (part < parts.size() && parts[part] == '\2') {
      star = part++, from = at;
    } else if (part < parts.size() && parts[part] == '\1') {
      at = next_character(text, at), ++part;
    } else if (part < parts.size() && parts[part] == text[at]) {
      ++at, ++part;
    } else if (star != std::string::npos) {
      part = star + 1, at = ++from;
    } else {
      return false;
    }
  }
  while (part < parts.size() && parts[part] == '\2') ++part;
  return part == parts.size();
}

std::string last_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Nothing if the name alone does not say, as for a class, or for a name that may begin otherwise in
// the model than in its files.
std::optional<bool> matches(const std::string& layer, const std::string& target) {
  if (target.compare(0, 3, "re:") != 0) {
    if (target == layer) return true;
    const bool other = target.find('.') != std::string::npos && last_of(target) != last_of(layer);
    return other ? std::optional<bool>(false) : std::nullopt;
  }
  const std::optional<std::string> parts = certain(std::string_view(target).substr(3));
  if (!parts) return std::nullopt;
  if (matches_parts(layer, *parts)) return true;
  return target.compare(3, 2, ".*") == 0 ? std::optional<bool>(false) : std::nullopt;
}

}  // namespace

Index read_index(const std::string& folder) {
  Index index;
  for (const std::string& path : files_named(folder, FolderFile::index)) {
    try {
      add_index(path, index);
    } catch (const FormatError& error) {
      index.broken.emplace_back(path, error.what());
    }
  }
  return index;
}

std::vector<Transform> read_transforms(const std::string& folder, Broken* broken) {
  std::vector<Transform> found;
  for (const std::string& path : files_named(folder, FolderFile::config)) {
    try {
      find_transforms(path, read_json(path), found);
    } catch (const FormatError& error) {
      broken->emplace_back(path, error.what());
    }
  }
  return found;
}

bool Transform::concerns(const std::string& layer) const {
  const bool named = targets.empty() ||
                     std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
                       return matches(layer, target) != false;
                     });
  return named && std::none_of(ignore.begin(), ignore.end(), [&](const std::string& name) {
           return matches(layer, name) == true;
         });
}

}  // namespace nvfp4_tool
