#!/bin/sh
# SPDX-License-Identifier: MIT
# gpus.sh: the compute capabilities of this machine's GPUs that have a kernel here, "90 100"; an
# empty line if there is none.
set -eu
cd "$(dirname "$0")/../.."
found=
for capability in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    tr -d . | sort -u); do
  case $(kernel/images.sh "$capability") in
    unknown* | '') ;;
    *) found="$found $capability" ;;
  esac
done
echo ${found# }
