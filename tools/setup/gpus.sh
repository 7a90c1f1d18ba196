#!/bin/sh
# SPDX-License-Identifier: MIT
# gpus.sh: the compute capabilities of this machine's GPUs for which a plan has kernels for NVFP4
# tokens, "90 100"; an empty line if there is none.
set -eu
cd "$(dirname "$0")/../.."
found=
for capability in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    tr -d . | sort -u); do
  if grep -qE "^ARCH\($capability, sm(90|100|120), sm80, of_mechanism," host/plan/arch.def; then
    found="$found $capability"
  fi
done
echo ${found# }
