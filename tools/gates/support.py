# SPDX-License-Identifier: MIT
"""support.py BUILD: writes the support matrix into each page that has it, after the line
`<!-- check: support-matrix -->`. The library of BUILD says what a GPU multiplies and by which
evidence (host/plan/arch.def, proofs.def); check_docs.py compares the pages with it.

A cell has the weakest evidence of the plans for few and many tokens: hardware, published, emulator
or assembled, as nvfp4_plan_info.proof; "-" where every plan is refused."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PAGES = ("README.md", "tools/python/README.md", "docs/using.md")
MARK = "<!-- check: support-matrix -->"

GPUS = {90: "H100, H200, GH200", 100: "B200, GB200", 103: "B300, GB300", 80: "A100",
        86: "A40, RTX 30", 89: "L40, RTX 40", 107: "Rubin", 110: "Thor", 120: "RTX 50, RTX PRO",
        121: "GB10"}
PROOFS = ("-", "assembled", "emulator", "published", "hardware")
F16, BF16 = 1, 2
TILED = 1
# Tokens, and weights where they are not NVFP4 or as the tokens: a_type, operand format.
PRODUCTS = {"NVFP4": (0, "nvfp4"), "MXFP4": (0, "mxfp4"), "F16": (F16, "nvfp4"),
            "BF16": (BF16, "nvfp4"), "BF16 x MXFP4": (BF16, "mxfp4")}
HEAD = ["GPU", "capability", *PRODUCTS, "gated", "grouped"]
TOKENS = (1, 16, 64, 512)


def architectures():
    """[(capability, SMs)] in arch.def's order: its first row of each answers questions."""
    with open(os.path.join(ROOT, "host/plan/arch.def"), encoding="utf-8") as table:
        found = re.findall(r"^ARCH\((\d+), \w+, \w+, \w+, (\d+),", table.read(), re.M)
    first = {}
    for capability, sms in found:
        first.setdefault(int(capability), int(sms))
    return list(first.items())


def desc(abi, m, product, **more):
    a_type, format_ = PRODUCTS[product]
    return abi.GemmDesc(m=m, n=4096, k=4096, l=1, a_ld=4096, b_ld=4096, d_ld=4096, alpha=1,
                        a_scale_layout=TILED, b_scale_layout=TILED, d_type=F16, a_type=a_type,
                        operand_format=abi.FORMATS[format_], **more)


def proof(abi, capability, sms, m, product):
    """Of the planner's choice; where it takes none, of what a program can name."""
    for variant in (None, *abi.variant_names(capability)):
        more = {} if variant is None else {"variant": variant.encode()}
        try:
            return abi.describe(desc(abi, m, product, **more), capability, sms).proof
        except abi.Error:
            continue
    return 0


def taken(answers):
    """The names of those that are True."""
    if all(answers.values()):
        return "all"
    return ", ".join(name for name, yes in answers.items() if yes) or "-"


def gated(abi, capability):
    return {name: abi.lib.nvfp4_gemm_supported(desc(abi, 16, name, alpha2=1), capability) == 0
            for name in PRODUCTS}


def grouped(abi, capability):
    def answer(product):
        one = desc(abi, 16, product, b_batch_stride=4096 * 4096,
                   b_scales_batch_stride_bytes=4096 * 4096)
        one.l, one.a_scale_layout = 8, 2
        group = abi.GroupedDesc(gemm=abi.addressof(one), rows_kind=abi.ROWS_ENDS)
        return abi.lib.nvfp4_grouped_supported(group, capability) == 0
    return {name: answer(name) for name in PRODUCTS}


def cells(abi, capability, sms):
    found = [PROOFS[min(proof(abi, capability, sms, m, product) for m in TOKENS)]
             for product in PRODUCTS]
    return (*found, taken(gated(abi, capability)), taken(grouped(abi, capability)))


def rows(abi):
    """The table, a row for all capabilities that have the same cells."""
    alike = {}
    for capability, sms in architectures():
        alike.setdefault(cells(abi, capability, sms), []).append(capability)
    return [["; ".join(GPUS[one] for one in capabilities),
             ", ".join(f"{one // 10}.{one % 10}" for one in capabilities), *row]
            for row, capabilities in alike.items()]


def text(abi):
    return "\n".join("| " + " | ".join(row) + " |" for row in (HEAD, *rows(abi))).replace(
        "\n", "\n|" + "---|" * len(HEAD) + "\n", 1)


def main():
    os.environ["NVFP4GEMM_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libnvfp4gemm.so")
    sys.path.insert(0, os.path.join(ROOT, "tools/python"))
    import nvfp4gemm
    table = text(nvfp4gemm.abi)
    for page in PAGES:
        path = os.path.join(ROOT, page)
        with open(path, encoding="utf-8") as file:
            before = file.read()
        after, count = re.subn(re.escape(MARK) + r"\n(\|.*\n)*", f"{MARK}\n{table}\n", before)
        if count != 1:
            sys.exit(f"{page} has {count} lines {MARK}; expected one")
        with open(path, "w", encoding="utf-8") as file:
            file.write(after)


if __name__ == "__main__":
    main()
