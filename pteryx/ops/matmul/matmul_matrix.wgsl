#include "matmul/common/matmul.wgsl"
#include "common/matrix_tile.wgsl"
