#!/bin/sh
# SPDX-License-Identifier: MIT
# release.sh BUILD [TAG]: the files of a release in BUILD/release, made of the tarball of BUILD/dist
# alone: the tarball, wheels for x86-64 and aarch64, Debian packages, and SHA256SUMS; the change log
# of the version in BUILD/release-notes.md. With TAG, as in v0.1.0, the sources must be those of
# that release: its version, closed change logs.
set -eu
build=$1 tag=${2:-}
cd "$(dirname "$0")/../.."
version=$(tools/package/version.sh)
fail() { echo "release.sh: $*" >&2; exit 1; }

if [ -n "$tag" ]; then
  [ "$tag" = "v$version" ] || fail "the tag is $tag; the header has version $version"
  [ "$(git rev-parse "$tag^{commit}")" = "$(git rev-parse HEAD)" ] ||
    fail "$tag is not the commit that is checked out"
  for log in CHANGELOG.md tools/emulator/CHANGELOG.md; do
    grep -qE "^## $version, 20[0-9]{2}-[0-9]{2}-[0-9]{2}\$" "$log" ||
      fail "$log has no heading \"## $version, DAY\"; RELEASING.md says how it is closed"
  done
  head -n1 tools/package/debian/changelog | grep -qE "^nvfp4gemm \($version-[0-9]+\) unstable;" ||
    fail "tools/package/debian/changelog does not begin with ($version-1) unstable"
fi

tarball=$(realpath "$build/dist/nvfp4gemm-$version.tar.gz")
out=$(realpath -m "$build/release")
python=$(realpath -s "$(command -v "${PYTHON:-.venv/bin/python}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out"
mkdir -p "$out"
cp "$tarball" "$out/"
tar -x -C "$work" -f "$tarball"
source=$work/nvfp4gemm-$version
# The time of the commit, which the wheels' files have; the tarball has no .git.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
bare() {
  env -u MAKEFLAGS -u MAKELEVEL make -C "$source" NVCC= SETUP=/nonexistent PYTHON="$python" "$@"
}

bare wheel
bare wheel-aarch64
cp "$source"/build/wheel/*.whl "$source"/build/aarch64/wheel/*.whl "$out/"
rm -rf "$source/build"

cp "$tarball" "$work/nvfp4gemm_$version.orig.tar.gz"
cp -r "$source/tools/package/debian" "$source/debian"
(cd "$source" && env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc)
cp "$work"/*.deb "$out/"

awk -v version="$version" '/^## / { on = $2 == version "," } on' CHANGELOG.md |
  sed 1d >"$build/release-notes.md"
(cd "$out" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
