// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key], with a running maximum (online softmax).
// One workgroup per query row, head and split of the keys. `tile` keys a pass: teams of 8 invocations make the scores,
// then every invocation owns four columns of every slots-th key.
// Host guarantees: keys > 0.
#option size 1..1024
#option has_mask
#option live_slots
#option q_type f16 | f32
#option k_type f16 | f32
#option v_type f16 | f32
#option split  // the keys are split over workgroups, whose results attention_merge joins
#if !split
#option y_type f16 | f32
#end
#tensor q raw row_$q_type
#tensor k raw row_$k_type
#tensor v raw row_$v_type
#if has_mask
#tensor mask read bool | f16 | f32
#end
#include "attention/common/attention.wgsl"
#include "attention/common/load4.wgsl" name=q type=$q_type
#include "attention/common/load4.wgsl" name=k type=$k_type
#include "attention/common/load4.wgsl" name=v type=$v_type
#if split
#tensor partial raw_write vec4<f32>
#else
#include "attention/common/result.wgsl"
#end

const threads = 256u;
const tile = $(256 - 192 * (size > 256))u;
const team = 8u;
const slots = threads / size4;

var<workgroup> q_row: array<vec4<f32>, size4>;
var<workgroup> parts: array<f32, tile * team>;
var<workgroup> weights: array<f32, tile>;
var<workgroup> peaks: array<f32, 16>;
var<workgroup> sums: array<vec4<f32>, threads>;
var<workgroup> totals: array<f32, threads>;

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups);
  let split = unit % params.splits;
  if (unit >= params.items * params.splits || split >= live_splits()) { return; }
  let item = unit / params.splits;
  let row = item % params.rows;
  let head = item / params.rows % params.heads;
  let batch = item / params.rows / params.heads;
  let at = q_offset(batch, head, row);
  for (var j = local; j < size4; j += threads) { q_row[j] = load4_q(at, j); }
  let slot = local / size4;
  let column = local % size4;
  var peak = lowest;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  let end = min((split + 1u) * params.split_keys, keys_of(row));
  for (var first = split * params.split_keys; first < end; first += tile) {
    workgroupBarrier();
    for (var i = local; i < tile * team; i += threads) {
      let key = first + i / team;
      var part = 0.0;
      if (key < end) {
        let k_at = k_offset(batch, head, key);
        for (var j = i % team; j < size4; j += team) { part += dot(q_row[j], load4_k(k_at, j)); }
      }
      parts[i] = part;
    }
    workgroupBarrier();
    let inside = local < tile && first + local < end;
    var score = lowest;
    if (inside) {
      score = 0.0;
      for (var i = 0u; i < team; i++) { score += parts[local * team + i]; }
      score = masked(score * params.scale, batch, head, row, first + local);
    }
    if (local < tile) { weights[local] = score; }
    workgroupBarrier();
    if (local < 16u) {
      var highest = lowest;
      for (var i = local; i < tile; i += 16u) { highest = max(highest, weights[i]); }
      peaks[local] = highest;
    }
    workgroupBarrier();
    var next = peak;
    for (var i = 0u; i < 16u; i++) { next = max(next, peaks[i]); }
    let fade = decay(peak - next);
    peak = next;
    if (local < tile) { weights[local] = select(0.0, decay(score - peak), inside); }
    workgroupBarrier();
    total *= fade;
    sum *= fade;
    if (slot < slots) {
      for (var key = slot; key < min(tile, end - first); key += slots) {
        let weight = weights[key];
        total += weight;
        sum += weight * load4_v(v_offset(batch, head, first + key), column);
      }
    }
  }
  sums[local] = sum;
  if (column == 0u) { totals[slot] = total; }
  workgroupBarrier();
  if (local >= size4) { return; }
  sum = vec4<f32>(0.0);
  total = 0.0;
  for (var s = 0u; s < slots; s++) {
    sum += sums[s * size4 + local];
    total += totals[s];
  }
#if split
  let to = (item * params.splits + split) * (size4 + 1u);
  partial[to + local] = sum;
  if (local == 0u) { partial[to + size4] = vec4<f32>(peak, total, 0.0, 0.0); }
#else
  put4_y(y_offset(batch, head, row), local, sum / total);
#end
}
