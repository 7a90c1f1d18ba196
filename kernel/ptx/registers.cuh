// SPDX-License-Identifier: MIT
// Register lists of the instructions that take up to 128 of them: the operands of the text, and the
// constraints that bind an array to them, each list but 96 twice the one before.
#pragma once

// "%0, %1, .., %(n-1)"
#define NVFP4_OPERANDS_4 "%0, %1, %2, %3"
#define NVFP4_OPERANDS_8 \
  NVFP4_OPERANDS_4       \
  ", %4, %5, %6, %7"
#define NVFP4_OPERANDS_16 \
  NVFP4_OPERANDS_8        \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define NVFP4_OPERANDS_32 \
  NVFP4_OPERANDS_16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NVFP4_OPERANDS_64                                                            \
  NVFP4_OPERANDS_32                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NVFP4_OPERANDS_96                                                            \
  NVFP4_OPERANDS_64                                                                  \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define NVFP4_OPERANDS_128                                                               \
  NVFP4_OPERANDS_64                                                                      \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"     \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"     \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109"     \
  ", %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123" \
  ", %124, %125, %126, %127"

// c(r[i]), c(r[i + 1]), .., n of them; c is a constraint, "=r" or "+f".
#define NVFP4_REGISTERS_4(c, r, i) c(r[i]), c(r[(i) + 1]), c(r[(i) + 2]), c(r[(i) + 3])
#define NVFP4_REGISTERS_8(c, r, i) NVFP4_REGISTERS_4(c, r, i), NVFP4_REGISTERS_4(c, r, (i) + 4)
#define NVFP4_REGISTERS_16(c, r, i) NVFP4_REGISTERS_8(c, r, i), NVFP4_REGISTERS_8(c, r, (i) + 8)
#define NVFP4_REGISTERS_32(c, r, i) NVFP4_REGISTERS_16(c, r, i), NVFP4_REGISTERS_16(c, r, (i) + 16)
#define NVFP4_REGISTERS_64(c, r, i) NVFP4_REGISTERS_32(c, r, i), NVFP4_REGISTERS_32(c, r, (i) + 32)
#define NVFP4_REGISTERS_96(c, r, i) NVFP4_REGISTERS_64(c, r, i), NVFP4_REGISTERS_32(c, r, (i) + 64)
#define NVFP4_REGISTERS_128(c, r, i) NVFP4_REGISTERS_64(c, r, i), NVFP4_REGISTERS_64(c, r, (i) + 64)
