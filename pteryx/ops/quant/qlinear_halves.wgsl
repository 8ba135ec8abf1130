#include "quant/kernels/common/params.wgsl"
#include "common/halves.wgsl"
