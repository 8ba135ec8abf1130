// Behind the parts of a split in `partial`: all but the last workgroup of an item to come here return, that one goes on with the
// parts of every split. `slots` sets of invocations share them out: `sum`, `peak` and `total` are those of a set, as
// join.wgsl takes them. Who includes it has `item` and `live_splits`.
  storageBarrier();
  workgroupBarrier();
  if (local == 0u) {
    is_last = select(0u, 1u, atomicAdd(&partial[item], 1u) == live_splits - 1u);
    if (is_last == 1u) { atomicStore(&partial[item], 0u); }
  }
  if (workgroupUniformLoad(&is_last) == 0u) { return; }
  storageBarrier();
  let slot = local / size4;
  let column = local % size4;
  peak = lowest;
  total = 0.0;
  var sum = vec4<f32>(0.0);
  for (var s = slot; s < select(0u, live_splits, slot < slots); s += slots) {
    let begin = $(counters)u + (item * params.splits + s) * pitch;
    let mark = vec2<f32>(bitcast<f32>(atomicLoad(&partial[begin + size])),
                         bitcast<f32>(atomicLoad(&partial[begin + size + 1u])));
    let part = vec4<f32>(bitcast<f32>(atomicLoad(&partial[begin + 4u * column])),
                         bitcast<f32>(atomicLoad(&partial[begin + 4u * column + 1u])),
                         bitcast<f32>(atomicLoad(&partial[begin + 4u * column + 2u])),
                         bitcast<f32>(atomicLoad(&partial[begin + 4u * column + 3u])));
    let next = max(peak, mark.x);
    let fade = decay(peak - next);
    let weight = decay(mark.x - next);
    peak = next;
    total = total * fade + weight * mark.y;
    sum = sum * fade + weight * part;
  }
  let used = min(slots, live_splits);
