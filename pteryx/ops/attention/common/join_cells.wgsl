// Of what the cells of a workgroup have of a row: `peak`, `total` and four of its sums in `sum`. Few cells are written out.
#if threads <= 16 * block
#for i in 0..threads / block
    let mark_$(i) = marks[$(i)u];
    peak = max(peak, mark_$(i).x);
#end
    total = 0.0;
    var sum = vec4<f32>(0.0);
#for i in 0..threads / block
    let weight_$(i) = decay(mark_$(i).x - peak);
    total += weight_$(i) * mark_$(i).y;
    sum += weight_$(i) * sums[$(i)u * size4 + local];
#end
#else
    for (var i = 0u; i < cells; i++) { peak = max(peak, marks[i].x); }
    total = 0.0;
    var sum = vec4<f32>(0.0);
    for (var i = 0u; i < cells; i++) {
      let weight = decay(marks[i].x - peak);
      total += weight * marks[i].y;
      sum += weight * sums[i * size4 + local];
    }
#end
