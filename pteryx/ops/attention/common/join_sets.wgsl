// Of what `sets` sets of invocations, or of lanes, have in `sums` and `marks`: `peak` and `total` of a row, and four of its
// sums in `sum`. Few sets are written out, so that their loads are under way together. Who includes it has `own_head`.
#option sets 1..128
#option shared 1 | 2
#if sets <= 16
    peak = lowest;
#for i in 0..sets
    let mark_$(i) = marks[$(i * shared)u + own_head];
    peak = max(peak, mark_$(i).x);
#end
    total = 0.0;
    sum = vec4<f32>(0.0);
#for i in 0..sets
    let weight_$(i) = decay(mark_$(i).x - peak);
    total += weight_$(i) * mark_$(i).y;
    sum += weight_$(i) * sums[$(i)u * set_size + local];
#end
#else
    peak = lowest;
    for (var i = 0u; i < $(sets)u; i++) { peak = max(peak, marks[i * $(shared)u + own_head].x); }
    total = 0.0;
    sum = vec4<f32>(0.0);
    for (var i = 0u; i < $(sets)u; i++) {
      let mark = marks[i * $(shared)u + own_head];
      let weight = decay(mark.x - peak);
      total += weight * mark.y;
      sum += weight * sums[i * set_size + local];
    }
#end
