# SPDX-License-Identifier: MIT
"""`conan create tools/package/conan` in an unpacked tarball of `make dist`: the library from its
kernel images, by the C and C++ compiler alone."""
import glob
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load

SOURCES = ("Makefile", "LICENSE", "bench/bench.mk", "host/*", "include/*", "kernel/*", "test/*.mk",
           "tools/*.mk", "tools/package/*")


class Nvfp4gemm(ConanFile):
    name = "nvfp4gemm"
    description = "NVFP4 matrix multiplication on NVIDIA GPUs behind a plain C interface"
    license = "MIT"
    topics = ("cuda", "gemm", "nvfp4")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._root(), "include", "nvfp4_gemm.h"))
        self.version = ".".join(re.search(rf"NVFP4_VERSION_{part} (\d+)", header)[1]
                                for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        if not os.path.exists(os.path.join(self._root(), "kernel", "prebuilt", "compiler.txt")):
            raise ConanInvalidConfiguration(
                "no kernel/prebuilt here: unpack a tarball of `make dist`")
        for pattern in SOURCES:
            copy(self, pattern, src=self._root(), dst=self.export_sources_folder)

    def export(self):
        # The recipe is evaluated again beside its copy, where set_version finds no header.
        copy(self, "include/nvfp4_gemm.h", src=self._root(), dst=self.export_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("the library is for Linux")

    def _make(self, *words):
        self.run(" ".join(("make", "KERNELS=prebuilt", "NVCC=", "SETUP=/nonexistent",
                           "LIBDIR=" + os.path.join(self.package_folder or "/", "lib"), *words)),
                 cwd=self.source_folder)

    def layout(self):
        self.folders.source = self.folders.build = "."

    def build(self):
        self._make("library", "static")

    def package(self):
        self._make("install", f"PREFIX={self.package_folder}")
        copy(self,
             "LICENSE",
             src=self.source_folder,
             dst=os.path.join(self.package_folder, "licenses"))
        unwanted = "libnvfp4gemm.a" if self.options.shared else "libnvfp4gemm.so*"
        for file in glob.glob(os.path.join(self.package_folder, "lib", unwanted)):
            os.remove(file)

    def package_info(self):
        self.cpp_info.libs = ["nvfp4gemm"]
        self.cpp_info.set_property(
            "cmake_target_name",
            "nvfp4gemm::nvfp4gemm" if self.options.shared else "nvfp4gemm::static")
        if not self.options.shared:
            self.cpp_info.system_libs = ["m", "dl", "pthread"]
