// y[row] = sum over keys of softmax(scale q[row] . k[key] + mask) v[key] for few query rows.
// One workgroup per query row, head and split of the keys. Teams of 8 lanes take `steps` keys at a time, each every
// teams-th key, and keep a running maximum of their own (online softmax); a lane owns every eighth group of four columns.
// The loads of a pass all come before their first use. Teams are joined once, at the end: by shuffles within `block`
// lanes, then through workgroup memory.
// Host guarantees: keys > 0, size is a multiple of 4, block is a power of two from 8 to the size of a subgroup,
// neighbouring invocations share subgroups, threads is a multiple of block and larger than size4.
// The prelude gives `threads`, `block`, `steps`; `finish(item, split, at, column, sum, total, peak)`, which keeps four
// columns of a result; and for rows that this call puts into the caches `held()`: keys from there on are not read from k
// and v but with `new_k(batch, head, key, j)` and `new_v`, and `keep(batch, head, row, j)` writes them.
#include "attention/common/attention.wgsl"

const team = 8u;
const teams = threads / team;
const reach = teams * steps;  // keys of a pass
const columns = (size4 + team - 1u) / team;
const loads = steps * columns;
const cells = threads / block;

var<workgroup> sums: array<vec4<f32>, cells * size4>;
var<workgroup> marks: array<vec2<f32>, cells>;  // peak, total

fn column_of(lane: u32, c: u32) -> u32 { return min(lane + team * c, size4 - 1u); }

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
  let lane = local % team;
  var q4: array<vec4<f32>, columns>;
  var k4: array<vec4<f32>, loads>;
  var v4: array<vec4<f32>, loads>;
  var sum: array<vec4<f32>, columns>;
  for (var c = 0u; c < columns; c++) {
    let q_c = load4_q(at, column_of(lane, c));
    q4[c] = select(vec4<f32>(0.0), q_c * params.scale, lane + team * c < size4);
    sum[c] = vec4<f32>(0.0);
  }
  var score: array<f32, steps>;
  var peak = lowest;
  var total = 0.0;
  let end = min((split + 1u) * params.split_keys, keys_of(row));
  for (var first = split * params.split_keys; first < end; first += reach) {
    let key = first + local / team;
    if (first + reach <= held()) {
      for (var i = 0u; i < loads; i++) {
        let k_at = k_offset(batch, head, min(key + i / columns * teams, end - 1u));
        k4[i] = load4_k(k_at, column_of(lane, i % columns));
      }
      for (var i = 0u; i < loads; i++) {
        let k_at = k_offset(batch, head, min(key + i / columns * teams, end - 1u));
        v4[i] = load4_v(k_at, column_of(lane, i % columns));
      }
    } else {
      for (var i = 0u; i < loads; i++) {
        let one = min(key + i / columns * teams, end - 1u);
        let j = column_of(lane, i % columns);
        if (one < held()) {
          k4[i] = load4_k(k_offset(batch, head, one), j);
          v4[i] = load4_v(k_offset(batch, head, one), j);
        } else {
          k4[i] = new_k(batch, head, one, j);
          v4[i] = new_v(batch, head, one, j);
        }
      }
    }
    var next = peak;
    for (var s = 0u; s < steps; s++) {
      var part = 0.0;
      for (var c = 0u; c < columns; c++) { part += dot(q4[c], k4[s * columns + c]); }
      part += subgroupShuffleXor(part, 1u);
      part += subgroupShuffleXor(part, 2u);
      part += subgroupShuffleXor(part, 4u);
      let at_key = key + s * teams;
      score[s] = select(lowest, masked(part, batch, head, row, min(at_key, end - 1u)), at_key < end);
      next = max(next, score[s]);
    }
    let fade = decay(peak - next);
    peak = next;
    total *= fade;
    for (var c = 0u; c < columns; c++) { sum[c] *= fade; }
    for (var s = 0u; s < steps; s++) {
      let weight = select(0.0, decay(score[s] - peak), key + s * teams < end);
      total += weight;
      for (var c = 0u; c < columns; c++) { sum[c] += weight * v4[s * columns + c]; }
    }
  }
  for (var step = team; step < block; step <<= 1u) {
    let next = max(peak, subgroupShuffleXor(peak, step));
    let fade = decay(peak - next);
    peak = next;
    total *= fade;
    total += subgroupShuffleXor(total, step);
    for (var c = 0u; c < columns; c++) {
      sum[c] *= fade;
      sum[c] += subgroupShuffleXor(sum[c], step);
    }
  }
  let cell = local / block;
  if (local % block < team) {
    for (var c = 0u; c < columns; c++) {
      if (lane + team * c < size4) { sums[cell * size4 + lane + team * c] = sum[c]; }
    }
    if (lane == 0u) { marks[cell] = vec2<f32>(peak, total); }
  }
  workgroupBarrier();
  if (local >= size4) {
    if (split > 0u || head % params.group > 0u) { return; }
    for (var j = local - size4; j < size4; j += threads - size4) { keep(batch, head, row, j); }
    return;
  }
  for (var i = 0u; i < cells; i++) { peak = max(peak, marks[i].x); }
  total = 0.0;
  var joined = vec4<f32>(0.0);
  for (var i = 0u; i < cells; i++) {
    let weight = decay(marks[i].x - peak);
    total += weight * marks[i].y;
    joined += weight * sums[i * size4 + local];
  }
  finish(item, split, at, local, joined, total, peak);
}
