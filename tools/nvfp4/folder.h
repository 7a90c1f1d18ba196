// SPDX-License-Identifier: MIT
// What a checkpoint's folder says of its files: which of them has a tensor (an index), and which
// layers have a transform before or after their product (a configuration).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nvfp4_tool {

// A tensor that an index names and that is not there: the index, what it is, what is expected.
struct Lost {
  std::string index, what, expected;
};

using Broken = std::vector<std::pair<std::string, std::string>>;  // file, why

// The indexes of a folder together.
struct Index {
  struct Place {
    std::string index, file;  // the path of the index, a name in the folder
  };
  std::vector<std::string> paths;                         // those that are indexes
  std::map<std::string, Place> files;                     // by tensor
  std::map<std::string, std::vector<std::string>> twice;  // tensors of which two indexes differ
  std::map<std::string, Lost> outside;  // tensors in a file that is none of this folder
  Broken broken;
};
Index read_index(const std::string& folder);

// It concerns the layers that targets name and ignore does not; without targets, all.
struct Transform {
  std::string file, key;
  std::vector<std::string> targets, ignore;

  bool concerns(const std::string& layer) const;
};
std::vector<Transform> read_transforms(const std::string& folder, Broken* broken);

}  // namespace nvfp4_tool
