// Stores `done` at elements `at` .. `at + 3` of a result.
#option to y | y1 | y2 | y3
#if store == whole
    $(to)[at] = done.x;
    $(to)[at + 1u] = done.y;
    $(to)[at + 2u] = done.z;
    $(to)[at + 3u] = done.w;
#elif y_type == f32
    $(to)[at / 4u] = done;
#else
    $(to)[at / 4u] = vec2<u32>(pack2x16float(done.xy), pack2x16float(done.zw));
#end
