# SPDX-License-Identifier: MIT
"""outside_triton.py FOLDER: lets the Triton that this python has compile kernels of ten different
kinds (test/outside/triton_kernels.py) for sm_90 and sm_100, without a GPU: FOLDER/triton/NAME.ptx
to be loaded, and FOLDER/triton/NAME.run, which launches it through the driver API and compares
with the host. Without Triton 3.6 or newer it says so and makes nothing."""
import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "test/outside"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    try:
        import triton
    except ImportError:
        print("Triton is not there: no kernels of it")
        return 0
    if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 6):
        print(f"Triton {triton.__version__} is older than 3.6: no kernels of it")
        return 0
    sys.path.insert(0, str(HERE))
    import triton_kernels

    folder = args.folder / "triton"
    folder.mkdir(parents=True, exist_ok=True)
    for name, made in triton_kernels.compile_all():
        (folder / f"{name}.ptx").write_text(made)
        run = folder / f"{name}.run"
        device = "B200" if ".target sm_100" in made else "H200"
        run.write_text(f"#!/bin/sh\nEMU_DEVICE={device} exec '{sys.executable}' "
                       f"'{HERE}/triton_kernels.py' {name} \"$(dirname \"$0\")/{name}.ptx\"\n")
        run.chmod(0o755)
    return 0


if __name__ == "__main__":
    sys.exit(main())
