#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "common/matrix_tile.wgsl"
