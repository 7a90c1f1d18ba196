#!/bin/sh
# SPDX-License-Identifier: MIT
# What the build and the tests need, on Debian or Ubuntu: setup.sh STAMP, from the root of the
# project.
#
# Packages of the distribution first; then a Python environment in .venv; then, only where no nvcc
# can compile for compute_100f, NVIDIA's compiler wheels in .tools. Everything is looked for before
# it is installed, so a second run changes nothing. NVCC=path skips the search.
set -eu
stamp=$1
cd "$(dirname "$0")/../.."
here=tools/setup
mkdir -p .tools "$(dirname "$stamp")"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# A program or header stands for its package: what another channel installed counts as well.
header() { printf '#include <%s>\n' "$1" | g++ -std=c++17 -E -x c++ - >/dev/null 2>&1; }
missing=
command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v gcc >/dev/null 2>&1 || missing="$missing gcc"
header catch2/catch_all.hpp || header catch2/catch.hpp || missing="$missing catch2"
header CLI/CLI.hpp || missing="$missing libcli11-dev"
header nlohmann/json.hpp || missing="$missing nlohmann-json3-dev"
command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"  # as users' builds have it
PYTHON=${PYTHON:-/usr/bin/python3}
[ -x "$PYTHON" ] || missing="$missing python3"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"

if [ -n "$missing" ]; then
  command -v apt-get >/dev/null 2>&1 ||
    fail "please install these packages, or their like on this system:$missing"
  sudo=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "as root, please run: apt-get install$missing"
    sudo="sudo"
  fi
  say "installing$missing"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
else
  say "packages: all present, nothing installed"
fi

complete='import importlib.metadata, ml_dtypes, numpy; importlib.metadata.version("nvidia-cuda-nvdisasm")'
if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c "$complete" 2>/dev/null; then
  say "Python environment in .venv"
  "$PYTHON" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
    --only-binary=:all: -r $here/requirements.txt
fi

# Works means: compiles a kernel for compute_100f (CUDA 12.9 and newer) and has a ptxas beside it.
works() {
  [ -n "$1" ] && [ -x "$1" ] || return 1
  probe=$(mktemp -d)
  echo '__global__ void probe(int *p) { *p = 1; }' >"$probe/probe.cu"
  ok=1
  "$1" -arch=compute_100f -ptx -o "$probe/probe.ptx" "$probe/probe.cu" >/dev/null 2>&1 &&
    "$(dirname "$(readlink -f "$1")")/ptxas" -arch=sm_100a -o "$probe/probe.cubin" \
      "$probe/probe.ptx" >/dev/null 2>&1 && ok=0
  rm -rf "$probe"
  return $ok
}
found=
for nvcc in "${NVCC:-}" .tools/cuda/bin/nvcc "$(command -v nvcc || true)" \
  /usr/local/cuda/bin/nvcc; do
  if works "$nvcc"; then found=$nvcc; break; fi
done
if [ -z "$found" ]; then
  say "no nvcc for compute_100f: NVIDIA's compiler wheels in .tools/cuda"
  rm -rf .tools/wheels .tools/cuda
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
    --only-binary=:all: --target .tools/wheels -r $here/cuda.txt
  ln -s wheels/nvidia/cu13 .tools/cuda
  found=.tools/cuda/bin/nvcc
  works "$found" || fail "the compiler from the wheels does not compile a kernel for compute_100f"
fi
say "nvcc: $found"
printf '# Written by %s: what the Makefile compiles with.\nNVCC ?= %s\n' "$here/setup.sh" "$found" \
  >"$stamp"
