// Functions of the C library over JavaScript's: their tables would be 3 % of pteryx.wasm, which
// computes with them only now and then, for a token's probability or in a chat template.
// SPDX-License-Identifier: BSD-3-Clause

#define PTERYX_MATH(name) __attribute__((import_module("pteryx"), import_name("math_" #name)))
#define PTERYX_MATH_OF_ONE(name)                         \
  PTERYX_MATH(name) double pteryx_math_##name(double x); \
  double name(double x) { return pteryx_math_##name(x); }
#define PTERYX_MATH_OF_TWO(name)                                   \
  PTERYX_MATH(name) double pteryx_math_##name(double x, double y); \
  double name(double x, double y) { return pteryx_math_##name(x, y); }

extern "C" {

PTERYX_MATH_OF_ONE(acos)
PTERYX_MATH_OF_ONE(acosh)
PTERYX_MATH_OF_ONE(asin)
PTERYX_MATH_OF_ONE(asinh)
PTERYX_MATH_OF_ONE(atan)
PTERYX_MATH_OF_ONE(atanh)
PTERYX_MATH_OF_ONE(cos)
PTERYX_MATH_OF_ONE(cosh)
PTERYX_MATH_OF_ONE(exp)
PTERYX_MATH_OF_ONE(expm1)
PTERYX_MATH_OF_ONE(log)
PTERYX_MATH_OF_ONE(log10)
PTERYX_MATH_OF_ONE(log1p)
PTERYX_MATH_OF_ONE(log2)
PTERYX_MATH_OF_ONE(sin)
PTERYX_MATH_OF_ONE(sinh)
PTERYX_MATH_OF_ONE(tan)
PTERYX_MATH_OF_ONE(tanh)
PTERYX_MATH_OF_TWO(atan2)
PTERYX_MATH_OF_TWO(pow)

double exp2(double x) { return pteryx_math_pow(2, x); }

}  // extern "C"
