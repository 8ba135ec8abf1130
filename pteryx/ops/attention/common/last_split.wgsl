// Behind the parts of a split in `partial`: all but the last workgroup of an item to come here return, that one goes on with the
// parts of every split. `slots` sets of invocations share them out: `sum`, `peak` and `total` are those of a set, as
// join.wgsl takes them. Who includes it has `item`, the first of its heads, and `live_splits`.
// A set has the loads of several parts under way at once.
#let ahead = 2 + 2 * (slots < 8)
  storageBarrier();
  workgroupBarrier();
  if (local == 0u) {
    is_last = select(0u, 1u, atomicAdd(&partial[item], 1u) == live_splits - 1u);
    if (is_last == 1u) { atomicStore(&partial[item], 0u); }
  }
  if (workgroupUniformLoad(&is_last) == 0u) { return; }
  storageBarrier();
  let slot = local / set_size;
  let first_part = (item + own_head) * params.splits;
  peak = lowest;
  total = 0.0;
  sum = vec4<f32>(0.0);
  for (var s = slot; s < select(0u, live_splits, slot < slots); s += $(ahead)u * slots) {
    var next = peak;
#for u in 0..ahead
#if u == 0
    let part_at_$(u) = $(counters)u + (first_part + s) * pitch;
#else
    let part_at_$(u) = $(counters)u + (first_part + min(s + $(u)u * slots, live_splits - 1u)) * pitch;
#end
    let mark_$(u) = vec2<f32>(bitcast<f32>(atomicLoad(&partial[part_at_$(u) + size])),
                              bitcast<f32>(atomicLoad(&partial[part_at_$(u) + size + 1u])));
    let part_$(u) = vec4<f32>(bitcast<f32>(atomicLoad(&partial[part_at_$(u) + 4u * own_quad])),
                              bitcast<f32>(atomicLoad(&partial[part_at_$(u) + 4u * own_quad + 1u])),
                              bitcast<f32>(atomicLoad(&partial[part_at_$(u) + 4u * own_quad + 2u])),
                              bitcast<f32>(atomicLoad(&partial[part_at_$(u) + 4u * own_quad + 3u])));
#end
#for u in 0..ahead
    next = max(next, mark_$(u).x);
#end
    let fade = decay(peak - next);
    peak = next;
    total *= fade;
    sum *= fade;
#for u in 0..ahead
#if u == 0
    let weight_$(u) = decay(mark_$(u).x - next);
#else
    let weight_$(u) = select(0.0, decay(mark_$(u).x - next), s + $(u)u * slots < live_splits);
#end
    total += weight_$(u) * mark_$(u).y;
    sum += weight_$(u) * part_$(u);
#end
  }
