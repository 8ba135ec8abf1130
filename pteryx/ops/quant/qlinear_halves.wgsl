#include "quant/common/qlinear.wgsl"
#include "common/halves.wgsl"
