// Joins what `slots` sets of invocations of a workgroup have of one row: `sum`, weighed by `peak` and `total`. Of `used` sets
// the first goes on, with sum / total in `sum` and `total`. Who includes it has `slot`, `column`, `sums` and `marks`.
  sums[local] = sum;
  if (column == 0u && slot < slots) { marks[slot] = vec2<f32>(peak, total); }
  workgroupBarrier();
  if (local >= size4) { return; }
  for (var s = 0u; s < used; s++) { peak = max(peak, marks[s].x); }
  total = 0.0;
  sum = vec4<f32>(0.0);
  for (var s = 0u; s < used; s++) {
    let weight = decay(marks[s].x - peak);
    total += weight * marks[s].y;
    sum += weight * sums[s * size4 + local];
  }
