// y = the drawn id, -1 where a logit is NaN or +inf or none is finite. One workgroup: the highest of all, then the lowest
// number that top_k, top_p and min_p leave, found digit by digit (8 bits a pass) in numbers mapped to integers of the same
// order, then the highest sum of a number and its noise. Shares are integers of 2^-30 of the highest: sums do not hang on
// the order of invocations.
// Host guarantees: z and the peaks of its blocks come from sample_scale. params.start is live.
#option threads 256..1024  // 256 or 1024
#option live_slots
#tensor z read f32
#tensor peaks read f32
#tensor peak_ids read i32
#tensor settings read i32
#tensor y raw_write u32
const threads: u32 = $(threads)u;
#include "common/live.wgsl"
#include "sample/common/best.wgsl"
#include "sample/common/settings.wgsl"

struct Params { vocabulary: u32, blocks: u32, position: u32, start: u32 }
@group(0) @binding(0) var<uniform> params: Params;

var<workgroup> low: array<atomic<u32>, 256>;   // of a digit: how many, or their share
var<workgroup> high: array<atomic<u32>, 256>;  // carries of the share
var<workgroup> spoiled: atomic<u32>;           // a block has no peak
var<workgroup> found: vec2<u32>;               // digit, and what is still wanted below it (count, or f32 bits)

fn key_of(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}
fn number_of(key: u32) -> f32 {
  return bitcast<f32>(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u));
}
fn share_of(difference: f32) -> u32 {
  if (difference < -21.0) { return 0u; }
  return u32(exp(min(difference, 0.0)) * 1073741824.0 + 0.5);
}

fn mix(x: u32) -> u32 {
  var h = x;
  h ^= h >> 16u;
  h *= 0x85ebca6bu;
  h ^= h >> 13u;
  h *= 0xc2b2ae35u;
  return h ^ (h >> 16u);
}
fn noise(s: Settings, position: u32, id: u32) -> f32 {
  let h = mix(mix(mix(id + 0x9e3779b9u) ^ s.seed_low) ^ mix(position ^ s.seed_high));
  let above = (16777215.5 - f32(h >> 8u)) / 16777216.0;  // 1 - u
  let e = select(-log(max(1.0 - above, 1e-9)), above * (1.0 + above * (0.5 + above / 3.0)), above < 0.01);
  return -log(e);
}

// The key of the last number to keep, of those from `bottom` on: the wanted-th highest, or the one at which the shares
// from the top on reach `part` of all.
fn last_kept(local: u32, peak: f32, bottom: u32, wanted: u32, part: f32, shares: bool) -> u32 {
  var prefix = 0u;
  var want_count = wanted;
  var want_share = 0.0;
  for (var pass_ = 0u; pass_ < 4u; pass_++) {
    let shift = 24u - 8u * pass_;
    for (var i = local; i < 256u; i += threads) {
      atomicStore(&low[i], 0u);
      atomicStore(&high[i], 0u);
    }
    workgroupBarrier();
    for (var id = local; id < params.vocabulary; id += threads) {
      let v = load_z(id);
      let key = key_of(v);
      if (key < bottom || (pass_ > 0u && (key >> (shift + 8u)) != prefix)) { continue; }
      let digit = (key >> shift) & 255u;
      if (shares) {
        let share = share_of(v - peak);
        let before = atomicAdd(&low[digit], share);
        if (before > 0xffffffffu - share) { atomicAdd(&high[digit], 1u); }
      } else {
        atomicAdd(&low[digit], 1u);
      }
    }
    workgroupBarrier();
    if (local == 0u) {
      if (shares && pass_ == 0u) {
        var total = 0.0;
        for (var i = 256u; i > 0u; i--) { total += share_sum(i - 1u); }
        want_share = part * total;
      }
      var digit = 255u;
      for (; digit > 0u; digit--) {
        if (shares) {
          let here = share_sum(digit);
          if (here >= want_share) { break; }
          want_share -= here;
        } else {
          let here = atomicLoad(&low[digit]);
          if (here >= want_count) { break; }
          want_count -= here;
        }
      }
      found = vec2<u32>(digit, select(want_count, bitcast<u32>(want_share), shares));
    }
    workgroupBarrier();
    let f = workgroupUniformLoad(&found);
    prefix = (prefix << 8u) | f.x;
    want_count = f.y;
    want_share = bitcast<f32>(f.y);
  }
  return prefix;
}
fn share_sum(digit: u32) -> f32 { return f32(atomicLoad(&high[digit])) * 4294967296.0 + f32(atomicLoad(&low[digit])); }

@compute @workgroup_size(threads)
fn main(@builtin(local_invocation_index) local: u32) {
  let s = read_settings();
  if (local == 0u) { atomicStore(&spoiled, 0u); }
  workgroupBarrier();
  best[local] = lowest;
  best_id[local] = 0xffffffffu;
  for (var i = local; i < params.blocks; i += threads) {
    let v = load_peaks(i);
    let id = load_peak_ids(i);
    if (id < 0) { atomicStore(&spoiled, 1u); }
    if (v > best[local] || best_id[local] == 0xffffffffu) {
      best[local] = v;
      best_id[local] = u32(id);
    }
  }
  reduce_best(local);
  let peak = best[0];
  let peak_id = best_id[0];
  let nothing = peak == lowest || atomicLoad(&spoiled) != 0u;
  workgroupBarrier();
  if (!(s.temperature > 0.0)) {
    if (local == 0u) { y[0] = select(peak_id, 0xffffffffu, nothing); }
    return;
  }
  var bottom = 0u;
  if (s.top_k > 0u && s.top_k < params.vocabulary) { bottom = last_kept(local, peak, 0u, s.top_k, 0.0, false); }
  if (s.top_p < 1.0) { bottom = max(bottom, last_kept(local, peak, bottom, 0u, s.top_p, true)); }
  bottom = max(bottom, key_of(peak + log(max(s.min_p, 1e-30))));
  let kept = number_of(bottom);
  let position = u32(live(params.start)) + params.position;
  var highest = lowest;
  var highest_id = peak_id;
  for (var id = local; id < params.vocabulary; id += threads) {
    let v = load_z(id);
    if (!(v >= kept) || v == lowest) { continue; }
    let score = v - peak + noise(s, position, id);
    if (score > highest) {
      highest = score;
      highest_id = id;
    }
  }
  best[local] = highest;
  best_id[local] = highest_id;
  reduce_best(local);
  if (local == 0u) { y[0] = select(best_id[0], 0xffffffffu, nothing); }
}
