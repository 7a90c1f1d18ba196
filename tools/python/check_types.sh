#!/bin/sh
# SPDX-License-Identifier: MIT
# check_types.sh BUILD ENVIRONMENT: mypy, as pyproject.toml sets it, of the package and of
# test/typed_use.py, a program that uses it, with the types of the torch of ENVIRONMENT. The same
# program with a wrong type in it is refused.
set -eu
build=$1 environment=$2
cd "$(dirname "$0")/../.."
. tools/gates/gate.sh
MYPY=${MYPY:-$environment/bin/mypy}
if ! command -v "$MYPY" >/dev/null || [ ! -x "$environment/bin/python" ]; then
  echo "no $MYPY: \"make setup-models\" makes it" >&2
  exit 1
fi
work=$build/types
mkdir -p "$work"
mypy() {
  MYPYPATH=tools/python "$MYPY" --config-file tools/python/pyproject.toml \
    --cache-dir "$work/cache" --python-executable "$environment/bin/python" "$@"
}
wrong() { ! mypy "$1" >"$work/said" && grep -qF '[arg-type]' "$work/said"; }

check "the package" mypy -p nvfp4gemm
check "a program with the types that its calls return" mypy tools/python/test/typed_use.py
sed 's/alpha=2.0/alpha="2.0"/' tools/python/test/typed_use.py >"$work/typed_use.py"
check "a wrong type in it is found" wrong "$work/typed_use.py"
finish
