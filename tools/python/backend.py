# SPDX-License-Identifier: MIT
"""The build backend that pip calls for the pyproject.toml at the root of the sources. It builds the
library with make and packs it with the package. A tarball of `make dist` contains the kernel images
and needs only g++ and make. A checkout needs what `make setup` installs."""
import os
import platform
import shutil
import subprocess

from setuptools import build_meta

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = "build"


def _run(*words):
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(words, cwd=ROOT, env=environment)
    if done.returncode:
        raise SystemExit(f"nvfp4gemm: `{' '.join(words)}` failed in {ROOT}. A checkout needs "
                         "`make setup` first; a tarball of `make dist` needs g++ and make alone")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel for this machine. Its name says linux_MACHINE, since nobody has checked on
    which other systems it runs."""
    _run("make", "library")
    _run("tools/python/stage.sh", BUILD)
    stage = os.path.join(ROOT, BUILD, "wheel", "stage")
    before = os.getcwd()
    os.chdir(stage)
    try:
        return build_meta.build_wheel(os.path.join(before, wheel_directory), {
            "--build-option": [f"--plat-name=linux_{platform.machine()}"]})
    finally:
        os.chdir(before)
        shutil.rmtree(stage)


def build_sdist(sdist_directory, config_settings=None):
    """Raises SystemExit: pip can install from the tarball of `make dist`, which takes the place of
    an sdist."""
    raise SystemExit("nvfp4gemm: a source distribution is the tarball of `make dist`, which has "
                     "the kernel images; `pip install build/dist/*.tar.gz` builds it")
