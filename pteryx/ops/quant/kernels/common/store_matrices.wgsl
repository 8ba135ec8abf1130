// The sums of a tile, whose columns are all of one result, as whole matrices.
#option to y | y1 | y2 | y3
#option result 0..3
#if result == 0
    const result_first = 0u;
#else
    let result_first = params.ends[$(result - 1)];
#end
#if y_stride > 0
    const stride = $(y_stride)u;
#else
    let stride = params.ends[$result] - result_first;
#end
    let corner = (first_m + own_m * side_m) * stride + first_n - result_first + own_n * side_n;
#for i in 0..pieces_m
#for j in 0..pieces_n
    subgroupMatrixStore<row_major>(&$to, corner + $(i * 16)u * stride + $(j * 16)u, sum$(i)_$(j), stride);
#end
#end
