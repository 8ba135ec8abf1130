#include "matmul/common/matmul.wgsl"
#include "common/halves.wgsl"
