// What fetch_tile.wgsl has fetched, into workgroup memory; from memory where it has fetched nothing.
#option name k | v
#option ahead
#option loads 1..16
#if ahead
#for i in 0..loads
if (local + $(i * 128)u < tile * size4) {
  kv[(local + $(i * 128)u) / size4 * pitch + (local + $(i * 128)u) % size4] = widen4_$(name)(next_$(name)$i);
}
#end
#else
for (var i = local; i < tile * size4; i += threads) {
  kv[i / size4 * pitch + i % size4] =
      load4_$(name)($(name)_offset(batch, head, min(first + i / size4, end - 1u)), i % size4);
}
#end
