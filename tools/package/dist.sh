#!/bin/sh
# SPDX-License-Identifier: MIT
# dist.sh BUILD IMAGE...: BUILD/dist/nvfp4gemm-VERSION.tar.gz, the files of the last commit and the
# kernel images, in kernel/prebuilt: what builds from it needs no CUDA compiler. The same commit and
# images give the same bytes.
set -eu
build=$1
shift
cd "$(dirname "$0")/../.."
name=nvfp4gemm-$(tools/package/version.sh)
[ -e .git ] || { echo "dist.sh: a tarball is made of a git checkout" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] ||
  echo "dist.sh: changes that are not committed are left out" >&2
out=$build/dist
rm -rf "$out"
mkdir -p "$out/$name"
git archive HEAD | tar -x -C "$out/$name"
rm -rf "$out/$name/.ci"
mkdir -p "$out/$name/kernel/prebuilt"
for image; do
  cp "$image" "$out/$name/kernel/prebuilt/"
  # What ptxas said of a cubin, for check-ptxas.
  if [ -e "$image.report" ]; then cp "$image.report" "$out/$name/kernel/prebuilt/"; fi
done
tar -c -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
  --mtime="@$(git log -1 --format=%ct)" "$name" | gzip -9n >"$out/$name.tar.gz"
rm -rf "${out:?}/$name"
echo "$out/$name.tar.gz, $(stat -c %s "$out/$name.tar.gz") bytes"
