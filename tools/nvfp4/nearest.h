// SPDX-License-Identifier: MIT
// A suggestion for a misspelt word.
#pragma once

#include <string>
#include <vector>

namespace nvfp4_tool {

// The word that needs the fewest letters inserted, left out, replaced or swapped with their
// neighbour; "" if that is more than two of them and more than a third.
std::string nearest(const std::string& word, const std::vector<std::string>& words);

}  // namespace nvfp4_tool
