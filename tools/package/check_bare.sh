#!/bin/sh
# SPDX-License-Identifier: MIT
# check_bare.sh BUILD OS: README's two commands on a fresh clone, then the tarball's packages and an
# installation's consumers, in a chroot of a Debian with git and make and nothing else. OS is
# debian12, debian13 or testing. PART=readme, packages or emulator: one of the three; README's
# commands take the longest. The third is the wheel nvfp4emu (BUILD/emulator-wheel), with pytest
# alone. Needs root, mmdebstrap, and the distribution's and Python's package servers; HERE=folder
# keeps the chroot and goes on with one that is there, MIRROR=URL takes the distribution from there,
# CCACHE=folder has ccache inside with that folder.
set -eu
build=$1 os=$2
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
case $os in
  debian12) suite=bookworm ;;
  debian13) suite=trixie ;;
  testing) suite=testing ;;
  *) echo "check_bare.sh: OS=debian12, debian13 or testing, not '$os'" >&2; exit 2 ;;
esac
needs=
[ "$(id -u)" -eq 0 ] || needs="$needs, root (chroot and mount)"
command -v mmdebstrap >/dev/null || needs="$needs, mmdebstrap (package mmdebstrap)"
if [ -n "$needs" ]; then
  echo "check_bare.sh: this needs${needs#,}" >&2
  exit 2
fi
root=${HERE:-$(mktemp -d)}
leave() {
  umount "$root/ccache" 2>/dev/null || true
  umount "$root/dev/pts" 2>/dev/null || true
  umount "$root/proc" 2>/dev/null || true
  [ -n "${HERE:-}" ] || rm -rf "$root"
}
trap leave EXIT

# timed SENTENCE COMMAND...: as check, with the seconds that it took.
timed() {
  what=$1
  shift
  start=$(date +%s)
  if output=$("$@" 2>&1); then
    pass "$what, $(($(date +%s) - start)) s"
  else
    fail "$what" "$(printf '%s\n' "$output" | grep -E '^FAIL|FAILED:|Error' | head -n 40)
$(printf '%s\n' "$output" | tail -n 20)"
  fi
}
# Package servers are reached as from here: its resolver, certificates and pip's settings.
inside() {
  chroot "$root" env -i HOME=/root PATH="${CCACHE:+/usr/lib/ccache:}/usr/sbin:/usr/bin:/sbin:/bin" \
    ${CCACHE:+CCACHE_DIR=/ccache} DEBIAN_FRONTEND=noninteractive \
    PIP_CERT=/etc/ssl/certs/ca-certificates.crt ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} sh -ec "$1"
}

# Testing's lists are valid for a week, and a mirror may lag.
[ -x "$root/bin/sh" ] || timed "a chroot of $suite with git and make" \
  mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
  --include="git,make,ca-certificates${CCACHE:+,ccache}" "$suite" "$root" ${MIRROR:+"$MIRROR"}
[ "$failed" -eq 0 ] || { finish; exit 1; }
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/pts"  # a test asks nvfp4 something as at a terminal
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
[ -e "$root/dev/ptmx" ] || ln -s pts/ptmx "$root/dev/ptmx"
# What ends with this run need not be on the disk at once.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
rm -rf "$root/build"
mkdir "$root/build"
if [ -n "${CCACHE:-}" ]; then
  mkdir -p "$root/ccache"
  mount --bind "$CCACHE" "$root/ccache"
fi

readme() {
  git clone -q --no-hardlinks . "$root/build/clone"
  timed "make run on a fresh clone" inside "cd /build/clone && make run"
  timed "make test on a fresh clone" inside "cd /build/clone && make test"
}

packages() {
  cp "$(ls "$build"/dist/*.tar.gz)" "$root/build/"
  timed "the packages that a build from the tarball wants" inside \
    "apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ catch2 libcli11-dev \
       nlohmann-json3-dev cmake pkg-config dpkg-dev debhelper lintian fakeroot"
  [ "$failed" -eq 0 ] || return 0
  timed "the tarball unpacks" inside \
    "cd /build && tar -xf nvfp4gemm-*.tar.gz && mv nvfp4gemm-*/ unpacked"
  timed "make, by g++ alone" inside "cd /build/unpacked && make"
  timed "the host tests" inside "cd /build/unpacked && make test-host"
  timed "make install, and its consumers in C, C++, CMake and static" inside \
    "cd /build/unpacked && make static && tools/gates/check_install.sh build"
  timed "the packages: CMake three ways, dpkg-buildpackage, lintian" inside \
    "cd /build/unpacked && mkdir -p build/dist && cp /build/*.tar.gz build/dist/ &&
     tools/package/check_package.sh build"
}

emulator() {
  mkdir "$root/build/emulator"
  cp "$build"/emulator-wheel/*.whl "$root/build/emulator/"
  cp tools/emulator/test/wheel_tests.py "$root/build/emulator/test_wheel.py"
  timed "Python, the wheel nvfp4emu and pytest install" inside \
    "apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv &&
     cd /build/emulator && python3 -m venv venv && venv/bin/pip install -q *.whl pytest"
  [ "$failed" -eq 0 ] || return 0
  timed "a test file runs, without a GPU and a compiler" inside \
    "cd /build/emulator && PATH=\$PWD/venv/bin:\$PATH venv/bin/pytest -q test_wheel.py"
}

# README's commands first: they find what is missing and install it.
part() { [ "${PART:-$1}" != "$1" ] || "$1"; }
part readme
part packages
part emulator
finish
