#!/bin/sh
# SPDX-License-Identifier: MIT
# version.sh: the version that the header states.
set -eu
cd "$(dirname "$0")/../.."
number() { sed -n "s/^#define NVFP4_VERSION_$1 //p" include/nvfp4_gemm.h; }
echo "$(number MAJOR).$(number MINOR).$(number PATCH)"
