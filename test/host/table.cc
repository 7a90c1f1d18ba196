// SPDX-License-Identifier: MIT
// Tables of the command line.
#include "tools/nvfp4/table.h"

#include "tools/testing/catch.h"

using nvfp4_tool::Table;

TEST_CASE("A column of a table is as wide as its widest value, heading or expected value") {
  Table table({{"shape"}, {"us", true}, {"variant"}});
  CHECK(table.line({"1 x 2", "1.00", "a"}) == "1 x 2  1.00  a");
  table.expect({"128 x 7168 x 16384", "12345.67"});
  CHECK(table.line({"1 x 2", "1.00", "a"}) == "1 x 2                   1.00  a");
  CHECK(table.line({"a longer one than expected", "", "b"}) ==
        "a longer one than expected            b");
  CHECK(table.line({"1 x 2", "1.00", ""}) == "1 x 2                           1.00");
}
