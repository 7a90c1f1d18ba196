# SPDX-License-Identifier: MIT
"""nvfp4gemm.abi against the reviewed interface, test/golden/abi.txt, which C compiles from the
header."""
import ctypes
import os
import re
import unittest

import package  # noqa: F401
import numpy as np

from nvfp4gemm import abi

GOLDEN = os.path.join(package.HERE, "../../../test/golden/abi.txt")
STRUCTS = {"nvfp4_gemm_desc": abi.GemmDescFields, "nvfp4_gemm_addresses": abi.GemmAddressesFields,
           "nvfp4_grouped_desc": abi.GroupedDescFields,
           "nvfp4_quantize_desc": abi.QuantizeDescFields,
           "nvfp4_fused_quantize_desc": abi.FusedQuantizeDescFields,
           "nvfp4_pack_desc": abi.PackDescFields,
           "nvfp4_plan_info": abi.PlanInfo}
CHECKED = {"nvfp4_gemm_desc": abi.GemmDesc, "nvfp4_gemm_addresses": abi.GemmAddresses,
           "nvfp4_grouped_desc": abi.GroupedDesc, "nvfp4_quantize_desc": abi.QuantizeDesc,
           "nvfp4_fused_quantize_desc": abi.FusedQuantizeDesc, "nvfp4_pack_desc": abi.PackDesc}
# A type of the header, less its const, as ctypes has it.
TYPES = {"void": None, "nvfp4_status": ctypes.c_int32, "int32_t": ctypes.c_int32,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
         "float": ctypes.c_float, "char *": ctypes.c_char_p, "nvfp4_log_callback": abi.LogCallback,
         "nvfp4_gemm_plan *": ctypes.c_void_p,
         "nvfp4_gemm_plan **": ctypes.POINTER(ctypes.c_void_p),
         "uint64_t *": ctypes.POINTER(ctypes.c_uint64), "void *": ctypes.c_void_p,
         "float *": ctypes.c_void_p,
         **{name + " *": ctypes.POINTER(struct) for name, struct in STRUCTS.items()}}


def golden():
    """{struct: (size, [(field, offset, size, is an address, is a float)])} and {constant:
    value}."""
    structs, constants, fields = {}, {}, None
    with open(GOLDEN, encoding="utf-8") as file:
        for line in file:
            word = line.split()
            if line.startswith("struct "):
                fields = []
                structs[word[1]] = int(word[3]), fields
            elif re.match(r"  \w+ +offset", line):
                fields.append((word[0], int(word[2]), int(word[4]), "*"
                               in line, word[5] == "float"))
            elif word[:1] == ["constant"]:
                constants[word[1]] = int(word[2])
    return structs, constants


class Abi(unittest.TestCase):
    def test_structs_field_by_field(self):
        structs, _ = golden()
        for name, struct in STRUCTS.items():
            mine = [(field, getattr(struct, field).offset, getattr(struct, field).size,
                     kind in (ctypes.c_void_p, ctypes.c_char_p), kind is ctypes.c_float)
                    for field, kind in struct._fields_]
            self.assertEqual((ctypes.sizeof(struct), mine), structs[name], name)

    def test_fields_filled_by_hand(self):
        """Each field of each struct: its extremes are kept, what is beyond them raises."""
        for name, struct in CHECKED.items():
            self.assertTrue(issubclass(struct, STRUCTS[name]))
            for field, kind in struct._fields_:
                what = f"{struct.__name__}.{field}"
                with self.subTest(what):
                    self.one_field(struct(), field, kind, what)
            with self.assertRaisesRegex(AttributeError, f"there is no {struct.__name__}.bais"):
                struct().bais = 1
            with self.assertRaisesRegex(AttributeError, f"there is no {struct.__name__}.bais"):
                struct(bais=1)

    def one_field(self, desc, field, kind, what):
        size = 8 * ctypes.sizeof(kind)
        if kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p):
            signed = kind in (ctypes.c_int32, ctypes.c_int64)
            least, most = (-1 << size - 1, (1 << size - 1) - 1) if signed else (0, (1 << size) - 1)
            for value in (least, most, np.int32(5)):
                setattr(desc, field, value)
                self.assertEqual(getattr(desc, field) or 0, value)
            for value in (least - 1, most + 1, most + 1 << 1 | 1):
                with self.assertRaisesRegex(OverflowError, what):
                    setattr(desc, field, value)
        for value in (np.zeros(2, np.float32), "text", 0.5j):
            with self.assertRaisesRegex(TypeError, what):
                setattr(desc, field, value)

    def test_every_function_with_its_types(self):
        with open(GOLDEN, encoding="utf-8") as file:
            functions = re.findall(r"^function (.*?)(nvfp4_\w+)\((.*)\)$", file.read(),
                                   re.MULTILINE)
        self.assertGreater(len(functions), 25)
        for result, name, arguments in functions:
            wanted = [] if arguments == "void" else [
                TYPES[re.sub(r"^const |\w+$", "", argument).strip()]
                for argument in arguments.split(", ")
            ]
            function = getattr(abi.lib, name)
            self.assertEqual((function.restype, function.argtypes),
                             (TYPES[result.removeprefix("const ").strip()], wanted), name)

    def test_constants(self):
        _, constants = golden()
        for mine, name in [(abi.F16, "TYPE_F16"), (abi.BF16, "TYPE_BF16"), (abi.F32, "TYPE_F32"),
                           (abi.NVFP4, "TYPE_NVFP4"), (abi.MXFP4, "TYPE_MXFP4"),
                           (abi.E2M1_UE8M0, "TYPE_E2M1_UE8M0"),
                           (abi.FORMATS["nvfp4"], "OPERAND_FORMAT_NVFP4"),
                           (abi.FORMATS["mxfp4"], "OPERAND_FORMAT_MXFP4"),
                           (abi.FORMATS["e2m1_ue8m0"], "OPERAND_FORMAT_E2M1_UE8M0"),
                           (abi.LAYOUTS["128x4"], "SCALE_LAYOUT_128X4"),
                           (abi.LAYOUTS["linear"], "SCALE_LAYOUT_LINEAR"),
                           (abi.ACTIVATIONS["relu"], "ACTIVATION_RELU"),
                           (abi.ACTIVATIONS["silu"], "ACTIVATION_SILU"),
                           (abi.ACTIVATIONS["gelu"], "ACTIVATION_GELU_ERF"),
                           (abi.ACTIVATIONS["gelu_tanh"], "ACTIVATION_GELU_TANH"),
                           (abi.ACTIVATIONS["relu_squared"], "ACTIVATION_RELU_SQUARED"),
                           (abi.SCALARS_DEVICE, "SCALARS_DEVICE"),
                           (abi.NOT_SUPPORTED, "STATUS_NOT_SUPPORTED"),
                           (abi.UNSUPPORTED_ARCH, "STATUS_UNSUPPORTED_ARCH")]:
            self.assertEqual(mine, constants["NVFP4_" + name], name)
        for words, prefix in [(abi.FORMATS, "OPERAND_FORMAT_"), (abi.LAYOUTS, "SCALE_LAYOUT_"),
                              (abi.ACTIVATIONS, "ACTIVATION_"), (abi.LAUNCHES, "PDL_"),
                              ({None: 0, **abi.PACKINGS, **abi.TOKEN_PACKINGS}, "PACKING_")]:
            known = [number for name, number in constants.items()
                     if name.startswith("NVFP4_" + prefix) and not name.endswith("_UNSET")]
            self.assertEqual(sorted(words.values()), sorted(known), prefix)

    def test_explain_and_workspace_need_no_address(self):
        desc = abi.GemmDesc(m=1024, n=512, k=128, l=1, a_ld=128, b_ld=128, a_scale_layout=1,
                            b_scale_layout=1, d_ld=512, d_type=abi.BF16, alpha=1)
        self.assertIn("variant", abi.explain(desc, 100, 148))
        self.assertEqual(abi.workspace_bytes(desc, 100), 0)
        self.assertGreater(abi.workspace_bytes(desc, 90), 0)
        desc.k = 100
        with self.assertRaisesRegex(abi.Error, "k"):
            abi.explain(desc, 100, 148)


if __name__ == "__main__":
    unittest.main()
