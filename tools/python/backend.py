# SPDX-License-Identifier: MIT
"""What pip calls for the pyproject.toml at the root of the sources: builds the library by make and
packs it with the package. A tarball of `make dist` has the kernel images and needs g++ and make
alone; a checkout needs what `make setup` brings."""
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
    """For this machine: the name says linux_MACHINE, as no one has looked what it runs on."""
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
    """Refuses: the tarball of `make dist` is one that pip installs from."""
    raise SystemExit("nvfp4gemm: a source distribution is the tarball of `make dist`, which has "
                     "the kernel images; `pip install build/dist/*.tar.gz` builds it")
