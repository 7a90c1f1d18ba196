#!/bin/sh
# SPDX-License-Identifier: MIT
# What the build and the tests need, on Debian or Ubuntu: setup.sh STAMP, from the root of the
# project. setup.sh FOLDER 12.9: CUDA 12.9's NVRTC and ptxas, for `make KERNELS=12.9`. setup.sh
# FOLDER models: a Python environment in FOLDER with torch, transformers and what else models.txt
# pins, for `make test-models`, and the mypy of types.txt, for `make check-types`.
#
# Packages of the distribution first; then a Python environment in .venv; then, only where no nvcc
# can compile for compute_100f, NVIDIA's compiler wheels in .tools. Everything is looked for before
# it is installed, so a second run changes nothing, and named before it is fetched; on a terminal a
# key confirms it.
#
#   NVCC=path    this nvcc and no other
#   PYTHON=path  this Python as it is, with the numpy that it has, and no .venv; tests that need
#                ml_dtypes are skipped then
#   OFFLINE=1    fetch nothing: what is missing is named, with exit code 1
#   WHEELS=dir   Python's and NVIDIA's wheels from this folder instead of the package index
set -eu
stamp=$1
cd "$(dirname "$0")/../.."
here=tools/setup
mkdir -p .tools "$(dirname "$stamp")"

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# confirm WHAT: asked on a terminal; elsewhere nobody is there to answer, and it goes on.
confirm() {
  say "$1"
  [ -z "${OFFLINE:-}" ] || fail "OFFLINE=1, so nothing was fetched"
  [ -t 0 ] && [ -t 1 ] || return 0
  printf 'setup: go on? [Y/n] '
  read -r answer
  case $answer in '' | [Yy]*) ;; *) fail "nothing was fetched" ;; esac
}

# fetch ARGUMENT...: pip of the environment $venv, checked by hash, from WHEELS if that is given.
venv=.venv
fetch() {
  set -- --quiet --disable-pip-version-check --require-hashes --only-binary=:all: "$@"
  [ -z "${WHEELS:-}" ] || set -- --no-index --find-links "$WHEELS" "$@"
  "$venv/bin/python" -m pip install "$@"
}
# Wheels that lie here already are not fetched.
confirm_wheels() {
  if [ -n "${WHEELS:-}" ]; then say "$1, from $WHEELS"; else confirm "$1, from PyPI"; fi
}

make_venv() {
  [ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv"
}

if [ "${2:-}" = 12.9 ]; then
  PYTHON=${PYTHON:-/usr/bin/python3}
  confirm_wheels "NVRTC and ptxas of CUDA 12.9 in $stamp, 130 MB under NVIDIA's CUDA licence, \
https://docs.nvidia.com/cuda/eula"
  make_venv
  rm -rf "$stamp"
  fetch --no-deps --target "$stamp" -r $here/cuda-12.9.txt
  exit 0
fi

if [ "${2:-}" = models ]; then
  PYTHON=${PYTHON:-/usr/bin/python3} venv=$stamp
  if cat $here/models.txt $here/types.txt | cmp -s - "$venv/models.txt"; then
    say "$venv: all present, nothing installed"
    exit 0
  fi
  "$PYTHON" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "$PYTHON is no Python of 3.11 or later with venv, which torch needs"
  confirm_wheels "Python environment in $venv: torch, transformers, peft, compressed-tensors, \
kernels, gguf, mypy and what they import, 2.4 GB, 4.4 GB on disk; torch's libraries are under \
NVIDIA's CUDA licence, https://docs.nvidia.com/cuda/eula"
  rm -rf "$venv"
  make_venv
  fetch --no-deps -r $here/models.txt -r $here/types.txt
  cat $here/models.txt $here/types.txt >"$venv/models.txt"
  exit 0
fi

missing=$($here/missing.sh all)
own_python=${PYTHON:-}
PYTHON=${PYTHON:-/usr/bin/python3}
if [ -n "$own_python" ]; then
  "$PYTHON" -c 'import numpy' 2>/dev/null || fail "PYTHON=$PYTHON does not run, or has no numpy"
else
  [ -x "$PYTHON" ] || missing="$missing python3"
  "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
fi

if [ -n "$missing" ]; then
  [ -z "${OFFLINE:-}" ] || fail "OFFLINE=1, and these packages are missing: $missing"
  command -v apt-get >/dev/null 2>&1 ||
    fail "please install these packages, or their like on this system: $missing"
  sudo=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "as root, please run: apt-get install $missing"
    sudo="sudo"
  fi
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends $missing 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives.*/\1/p')
  confirm "installing from the distribution, ${size:-of unknown size}: $missing"
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
else
  say "packages: all present, nothing installed"
fi

complete='import importlib.metadata, ml_dtypes, numpy
importlib.metadata.version("nvidia-cuda-nvdisasm")'
if [ -n "$own_python" ]; then
  "$PYTHON" -c 'import ml_dtypes' 2>/dev/null ||
    say "$PYTHON has no ml_dtypes: tests that need it will be skipped"
elif [ ! -x .venv/bin/python ] || ! .venv/bin/python -c "$complete" 2>/dev/null; then
  confirm_wheels "Python environment in .venv: numpy, ml_dtypes and NVIDIA's nvdisasm, 26 MB; \
nvdisasm is under NVIDIA's CUDA licence, https://docs.nvidia.com/cuda/eula"
  make_venv
  fetch -r $here/requirements.txt
fi

# works NVCC FLAGS: compiles a kernel for compute_100f (CUDA 12.9 and newer) and has a ptxas beside
# it.
works() {
  [ -n "$1" ] && [ -x "$1" ] || return 1
  probe=$(mktemp -d)
  echo '__global__ void probe(int *p) { *p = 1; }' >"$probe/probe.cu"
  ok=1
  words=$(NVCC_PREPEND_FLAGS="$2" "$1" -std=c++17 -arch=compute_100f -ptx -o "$probe/probe.ptx" \
    "$probe/probe.cu" 2>&1) &&
    words=$("$(dirname "$(readlink -f "$1")")/ptxas" -arch=sm_100a -o "$probe/probe.cubin" \
      "$probe/probe.ptx" 2>&1) && ok=0
  rm -rf "$probe"
  return $ok
}
# Headers newer than nvcc: it refuses g++ 16 by its number, and declares rsqrt otherwise than glibc
# 2.42 does for GNU's programs. The host compiler only preprocesses the kernels' text.
newer_host='-allow-unsupported-compiler -U_GNU_SOURCE'
found= words=
try() {
  for extra in "" "$newer_host"; do
    if [ -z "$found" ] && works "$1" "$extra"; then found=$1 flags=$extra; fi
  done
}
if [ -n "${NVCC:-}" ]; then
  try "$NVCC"
  [ -n "$found" ] || fail "NVCC=$NVCC compiles no kernel for compute_100f, as CUDA 12.9 and newer \
do; its words: $words"
fi
for nvcc in .tools/cuda/bin/nvcc "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc; do
  try "$nvcc"
done
if [ -z "$found" ]; then
  confirm_wheels "no nvcc for compute_100f: NVIDIA's compiler in .tools/cuda, 105 MB \
under NVIDIA's CUDA licence, https://docs.nvidia.com/cuda/eula"
  make_venv
  rm -rf .tools/wheels .tools/cuda
  fetch --no-deps --target .tools/wheels -r $here/cuda.txt
  ln -s wheels/nvidia/cu13 .tools/cuda
  try .tools/cuda/bin/nvcc
  [ -n "$found" ] ||
    fail "the compiler from the wheels compiles no kernel for compute_100f; its words: $words"
fi
say "nvcc: $found${flags:+, called with $flags: this g++ or glibc is newer than it}"
{
  echo "# Written by $here/setup.sh: what the Makefile compiles with."
  echo "NVCC ?= $found"
  [ -z "$flags" ] || echo "export NVCC_PREPEND_FLAGS := $flags"
} >"$stamp"
