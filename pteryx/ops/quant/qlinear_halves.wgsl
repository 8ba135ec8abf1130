#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "common/halves.wgsl"
