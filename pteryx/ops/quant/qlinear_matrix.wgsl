#include "quant/common/qlinear.wgsl"
#include "common/matrix_tile.wgsl"
