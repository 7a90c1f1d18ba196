# SPDX-License-Identifier: MIT
"""nvfp4gemm inside other packages: each module here imports the package that it is for."""
