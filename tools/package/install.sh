#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh install|uninstall BUILD: PREFIX, LIBDIR, INCLUDEDIR, BINDIR, MANDIR, BASHDIR and
# DESTDIR come from the environment; PROGRAM=1 includes the command line, EMULATOR=1 the emulator,
# in a folder that no loader searches by itself. Both read one list, uninstall the whole of it, so
# nothing stays.
set -eu
: "$PREFIX" "$LIBDIR" "$INCLUDEDIR" "$BINDIR" "$MANDIR" "$BASHDIR" "$DESTDIR"
action=$1 build=$2
if [ "$action" = uninstall ]; then PROGRAM=1 EMULATOR=1; fi
cd "$(dirname "$0")/../.."
version=$(tools/package/version.sh)
major=${version%%.*}
cmake=$LIBDIR/cmake/nvfp4gemm
emulator=$LIBDIR/nvfp4gemm/emulator
tab=$(printf '\t')

# mode, source, target. A mode of "link" makes a symbolic link with that content, "fill" a text file
# from a template.
list() {
  sed 's/ *| */\t/g' <<LIST
644  | include/nvfp4_gemm.h | $INCLUDEDIR/nvfp4_gemm.h
755  | $build/libnvfp4gemm.so | $LIBDIR/libnvfp4gemm.so.$version
link | libnvfp4gemm.so.$version | $LIBDIR/libnvfp4gemm.so.$major
link | libnvfp4gemm.so.$major | $LIBDIR/libnvfp4gemm.so
644  | $build/libnvfp4gemm.a | $LIBDIR/libnvfp4gemm.a
fill | tools/package/nvfp4gemm.pc.in | $LIBDIR/pkgconfig/nvfp4gemm.pc
fill | tools/package/nvfp4gemmConfig.cmake.in | $cmake/nvfp4gemmConfig.cmake
fill | tools/package/nvfp4gemmConfigVersion.cmake.in | $cmake/nvfp4gemmConfigVersion.cmake
LIST
  [ -z "${PROGRAM:-}" ] || printf '%s\t%s\t%s\n' \
    755 "$build/obj/package/nvfp4" "$BINDIR/nvfp4" \
    644 "$build/obj/package/nvfp4.1" "$MANDIR/man1/nvfp4.1" \
    644 "$build/obj/package/nvfp4.bash" "$BASHDIR/nvfp4"
  [ -z "${EMULATOR:-}" ] || sed 's/ *| */\t/g' <<LIST
755 | $build/emulator/libcuda.so.1 | $emulator/libcuda.so.1
link | libcuda.so.1 | $emulator/libcuda.so
755 | tools/emulator/run/ptxas | $emulator/run/ptxas
644 | tools/emulator/run/site/sitecustomize.py | $emulator/run/site/sitecustomize.py
755 | tools/emulator/nvfp4emu | $BINDIR/nvfp4emu
644 | tools/emulator/include/nvfp4emu.h | $INCLUDEDIR/nvfp4emu.h
LIST
}

# Relative, so that an installation can be moved, or lie under a DESTDIR.
from() { realpath -ms --relative-to="$1" "$2"; }
fill() {
  sed -e "s|@VERSION@|$version|g" -e "s|@MAJOR@|$major|g" \
    -e "s|@PKGCONFIG_TO_PREFIX@|$(from "$LIBDIR/pkgconfig" "$PREFIX")|g" \
    -e "s|@PREFIX_TO_LIBDIR@|$(from "$PREFIX" "$LIBDIR")|g" \
    -e "s|@PREFIX_TO_INCLUDEDIR@|$(from "$PREFIX" "$INCLUDEDIR")|g" \
    -e "s|@CMAKE_TO_LIBDIR@|$(from "$cmake" "$LIBDIR")|g" \
    -e "s|@CMAKE_TO_INCLUDEDIR@|$(from "$cmake" "$INCLUDEDIR")|g" "$1"
}

put() {
  mkdir -p "$(dirname "$3")"
  case $1 in
    link) ln -sfn "$2" "$3" ;;
    fill) rm -f "$3"; fill "$2" >"$3"; chmod 644 "$3" ;;
    *) install -m "$1" "$2" "$3" ;;
  esac
}

# Folders of ours always; the others only below a prefix of our own, as they may be the system's,
# and only when they are empty.
remove_folders() {
  rmdir "$DESTDIR$cmake" "$DESTDIR$emulator/run/site" "$DESTDIR$emulator/run" \
    "$DESTDIR$emulator" "$DESTDIR$LIBDIR/nvfp4gemm" 2>/dev/null || true
  case $PREFIX in / | /usr | /usr/local) return ;; esac
  list | cut -f 3 | while read -r target; do
    folder=$(dirname "$target")
    while [ "${folder#"$PREFIX"}" != "$folder" ]; do
      rmdir "$DESTDIR$folder" 2>/dev/null || [ ! -d "$DESTDIR$folder" ] || break
      folder=$(dirname "$folder")
    done
  done
}

case $action in
  install) list | while IFS=$tab read -r mode source target; do
    printf '  %-9s %s\n' "$action" "$DESTDIR$target"
    put "$mode" "$source" "$DESTDIR$target"
  done ;;
  uninstall) list | cut -f 3 | while read -r target; do
    if [ -e "$DESTDIR$target" ] || [ -L "$DESTDIR$target" ]; then
      printf '  %-9s %s\n' "$action" "$DESTDIR$target"
      rm -f "$DESTDIR$target"
    fi
  done
    remove_folders ;;
  *) echo "install.sh: install or uninstall, not $action" >&2; exit 2 ;;
esac
