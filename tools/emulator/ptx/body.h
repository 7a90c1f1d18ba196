// SPDX-License-Identifier: MIT
// The statements between a function's braces.
#pragma once

#include "cursor.h"
#include "shared_layout.h"
#include "symbols.h"
#include "target.h"

namespace emu::ptx {

// Skips .loc, .file, .pragma, .section and the like if one stands at the cursor.
bool skip_ignored_directive(Cursor& in);

class BodyParser {
 public:
  BodyParser(Cursor& in, Scopes& scopes, const Target& target, SharedLayout& shared,
             Function& function)
      : in_(in), scopes_(scopes), target_(target), shared_(shared), function_(function) {}

  // From behind the opening brace to behind the closing one; the scope of the parameters is the
  // caller's.
  void parse();

 private:
  void statement();
  void directive();
  void loc();
  void registers();
  void shared_variables();
  void local_variables();
  void instruction();
  void label();
  void close_scope();
  void finish(SourcePos end);

  Cursor& in_;
  Scopes& scopes_;
  const Target& target_;
  SharedLayout& shared_;
  Function& function_;
  uint32_t depth_ = 1;  // of braces
  CudaLine cuda_;       // of what follows
};

}  // namespace emu::ptx
