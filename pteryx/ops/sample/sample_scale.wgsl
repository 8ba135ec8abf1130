// z[id] = the logit of id after penalties and temperature, and the highest of every 1024. One workgroup per 1024 ids.
// Ids that may not be drawn, and logits that are not finite, get the lowest number. A block with a logit that is NaN or
// +inf, which no model means, has the peak id -1.
// Host guarantees: start + count <= size of history. params.start is live; `first` is the first element of the last row.
#option live_slots
#tensor logits read f16 | f32
#tensor settings read i32
#tensor history read i32
#tensor z elements f32
#tensor peaks elements f32
#tensor peak_ids elements i32
#include "common/index.wgsl"
#include "common/live.wgsl"
#include "sample/common/best.wgsl"
#include "sample/common/settings.wgsl"

struct Params { vocabulary: u32, first: u32, count: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;

const block = 1024u;
const threads = 256u;
var<workgroup> seen: array<atomic<u32>, block>;
var<workgroup> spoiled: atomic<u32>;

// By its bits: a compiler may assume that numbers are.
fn is_spoiled(v: f32) -> bool {
  let bits = bitcast<u32>(v);
  let exponent = 0x7f800000u;
  let negative = 0x80000000u;
  return (bits & exponent) == exponent && bits != (negative | exponent);
}

fn mark(token: i32, base: u32) {
  let at = bitcast<u32>(token) - base;  // wraps for tokens below
  if (at < block) { atomicAdd(&seen[at], 1u); }
}

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let s = read_settings();
  let unit = flat_group(group, groups);
  let base = unit * block;
  if (base >= params.vocabulary) { return; }
  let held_back = s.repetition != 1.0 || s.presence != 0.0 || s.frequency != 0.0;
  for (var i = local; i < block; i += threads) { atomicStore(&seen[i], 0u); }
  if (local == 0u) { atomicStore(&spoiled, 0u); }
  workgroupBarrier();
  if (held_back) {
    let end = u32(live(params.start)) + params.count;
    let begin = select(0u, end - min(end, s.window), s.window > 0u);
    for (var i = begin + local; i < end; i += threads) { mark(load_history(i), base); }
  }
  workgroupBarrier();
  var highest = lowest;
  var highest_id = base;
  for (var i = local; i < block; i += threads) {
    let id = base + i;
    if (id >= params.vocabulary) { break; }
    var v = load_logits(params.first + id);
    if (is_spoiled(v)) { atomicStore(&spoiled, 1u); }
    let times = atomicLoad(&seen[i]);
    if (times > 0u) {
      v = select(v * s.repetition, v / s.repetition, v > 0.0);
      v -= s.presence + s.frequency * f32(times);
    }
    if (s.temperature > 0.0) { v /= s.temperature; }
    let allowed = (s.vocabulary == 0u || id < s.vocabulary) && abs(v) <= 3.4028234e38;
    v = select(lowest, v, allowed);
    store_z(id, v);
    if (v > highest) {
      highest = v;
      highest_id = id;
    }
  }
  best[local] = highest;
  best_id[local] = highest_id;
  reduce_best(local);
  if (local == 0u) {
    store_peaks(unit, best[0]);
    store_peak_ids(unit, select(i32(best_id[0]), -1, atomicLoad(&spoiled) != 0u));
  }
}
