// Stores `pair` at elements `at` and `at + 1` of a result: as one word where it has halves in whole words.
#option to y | y1 | y2 | y3
#option row_words
#if row_words && y_type == f16
    $(to)[at / 2u] = pack2x16float(pair);
#else
    $(to)[at] = bitcast<u32>(pair.x);
    if (n + 1u < params.n) { $(to)[at + 1u] = bitcast<u32>(pair.y); }
#end
