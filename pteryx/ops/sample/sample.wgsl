// y = the drawn id, -1 where a logit is NaN or +inf, which no model means, or none is finite.
// One workgroup per 1024 ids. It gives each id a number: its logit after penalties and temperature, the lowest where the id
// may not be drawn or the logit is not finite; and notes the highest of them. The last workgroup to be counted finds the
// highest of all. At temperature 0 that is it. Else it finds the lowest number that top_k, top_p and min_p leave, digit by
// digit (8 bits a pass) in numbers mapped to integers of the same order, then the highest sum of a number and its noise.
// Shares are integers of 2^-30 of the highest: sums do not hang on the order of invocations.
// WGSL has no release fence between workgroups: what they leave is put down by exchanges, and the counter is raised behind
// a barrier that waits for what these gave back.
// Host guarantees: start + count <= positions, the size of history. params.start is live; `first` is the first element of the
// last row.
// `partial` has counters, which are 0 and are left so, a number for each id, and two words for each workgroup.
#option threads 256 | 1024
#option lanes 0 | 4 | 8 | 16 | 32  // see best.wgsl
#option counters 1..4096  // words of partial before the first that is data
#option feeds  // the run that comes next: see feed.wgsl. What is drawn is then in the history, too
#option live_slots
#tensor logits read f16 | f32
#tensor partial raw_write atomic<u32>
const threads: u32 = $(threads)u;
#include "common/index.wgsl"
#if feeds
#option most_moves 1..64
#tensor history raw_write i32
#include "sample/common/feed.wgsl"
#option embeds  // the drawn token for that run, too
// What others only read, this run's last workgroup writes.
var<workgroup> given: array<u32, 12>;  // settings, then the first position
fn live(word: u32) -> i32 { return select(i32(word), bitcast<i32>(staging[word & 0x7fffffffu]), (word >> 31u) == 1u); }
fn load_history(i: u32) -> i32 { return history[i]; }
#else
#tensor settings read i32
#tensor history read i32
#tensor y raw_write u32
#include "common/live.wgsl"
#end
#include "sample/common/best.wgsl"
#include "sample/common/settings.wgsl"

struct Params {
  vocabulary: u32, blocks: u32, first: u32, count: u32, start: u32, positions: u32,
  rows: u32, width: u32, row_bytes: u32, group: u32, scale_row: u32,  // of the table, where this embeds
}
@group(0) @binding(0) var<uniform> params: Params;
#if feeds
#if embeds
#option low_first
#option scale_order rows | groups | blocks
#tensor weight read u8
#tensor scales read f16 | f32
#tensor x raw_write f32
#include "common/scaled_table.wgsl" bytes=0
#end
#end

const block = 1024u;
const z_from = $(counters)u;
const nothing = 0xffffffffu;
const spoiled = 0xffffffffu;  // the key of a logit that is no number to draw by: no number has it
var<workgroup> seen: array<atomic<u32>, block>;
var<workgroup> is_last: u32;
var<workgroup> low: array<atomic<u32>, 256>;   // of a digit: how many, or their share
var<workgroup> high: array<atomic<u32>, 256>;  // carries of the share
var<workgroup> found: vec2<u32>;               // digit, and what is still wanted below it (count, or f32 bits)

fn number_at(i: u32) -> f32 { return bitcast<f32>(atomicLoad(&partial[i])); }

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
      let v = number_at(z_from + id);
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

// Numbers of a block of ids and the highest of them, put down for the last workgroup. `first` is the logit of id `local` of it.
fn scale(s: Settings, start: u32, unit: u32, local: u32, first: f32) {
  let base = unit * block;
  let held_back = s.repetition != 1.0 || s.presence != 0.0 || s.frequency != 0.0;
  if (held_back) {
    for (var i = local; i < block; i += threads) { atomicStore(&seen[i], 0u); }
    workgroupBarrier();
    let end = start + params.count;
    let begin = select(0u, end - min(end, s.window), s.window > 0u);
    for (var i = begin + local; i < end; i += threads) { mark(load_history(i), base); }
    workgroupBarrier();
  }
  var highest = Best(0u, nothing);
  var old = 0u;
  for (var i = local; i < block; i += threads) {
    let id = base + i;
    if (id >= params.vocabulary) { break; }
    var v = first;
    if (i >= threads) { v = load_logits(params.first + id); }
    let is_bad = is_spoiled(v);
    if (held_back) {
      let times = atomicLoad(&seen[i]);
      if (times > 0u) {
        v = select(v * s.repetition, v / s.repetition, v > 0.0);
        v -= s.presence + s.frequency * f32(times);
      }
    }
    if (s.temperature > 0.0) { v /= s.temperature; }
    let allowed = (s.vocabulary == 0u || id < s.vocabulary) && abs(v) <= 3.4028234e38;
    v = select(lowest, v, allowed);
    if (s.temperature > 0.0) { old |= atomicExchange(&partial[z_from + id], bitcast<u32>(v)); }
    highest = better(highest, Best(select(key_of(v), spoiled, is_bad), id));
  }
  highest = reduce_best(local, highest);
  if (local == 0u) {
    let at = z_from + params.vocabulary + unit * 2u;
    old |= atomicExchange(&partial[at], highest.key);
    old |= atomicExchange(&partial[at + 1u], highest.id);
  }
  if (old == 0xffffffffu) { is_last = 2u; }  // written again by the caller: only so that the exchanges are waited for
}

#if feeds
fn put(local: u32, ahead: Ahead, start: u32, token: u32) {
#if embeds
  // A row has an even number of codes. Where there is no token, its row is that of token 0.
  let row = select(token, 0u, token >= params.rows);
  for (var e = 2u * local; e < params.width; e += 2u * threads) {
    let even = code(row, e) * load_scales(scale_place(row, e));
    let odd = code(row, e + 1u) * load_scales(scale_place(row, e + 1u));
    x[e] = even;
    x[e + 1u] = odd;
  }
#end
  feed(local, ahead, token);
  let next = start + params.count;
  if (local == 0u && next < params.positions) { history[next] = bitcast<i32>(token); }
}
#else
fn put(local: u32, token: u32) {
  if (local == 0u) { y[0] = token; }
}
#end

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups);
  // Fetched while settings, which it does not wait for, are on their way.
  let first = load_logits(params.first + min(unit * block + local, params.vocabulary - 1u));
#if feeds
  let ahead = look_ahead(local);
  if (local < 11u) { given[local] = staging[feed_rule[1] + local]; }
  if (local == 11u) { given[11] = u32(live(params.start)); }
  let words = workgroupUniformLoad(&given);
  let s = settings_of(words);
  let start = words[11];
#else
  let s = read_settings();
  let start = u32(live(params.start));
#end
  if (unit >= params.blocks) { return; }
  scale(s, start, unit, local, first);
  storageBarrier();
  workgroupBarrier();
  if (local == 0u) {
    is_last = select(0u, 1u, atomicAdd(&partial[0], 1u) == params.blocks - 1u);
    if (is_last == 1u) { atomicStore(&partial[0], 0u); }
  }
  if (workgroupUniformLoad(&is_last) == 0u) { return; }
  storageBarrier();
  var highest = Best(0u, nothing);
  for (var i = local; i < params.blocks; i += threads) {
    let at = z_from + params.vocabulary + i * 2u;
    highest = better(highest, Best(atomicLoad(&partial[at]), atomicLoad(&partial[at + 1u])));
  }
  let top = reduce_best(local, highest);
  let peak = number_of(top.key);
  let none = top.key == key_of(lowest) || top.key == spoiled;
  if (!(s.temperature > 0.0)) {
#if feeds
    put(local, ahead, start, select(top.id, nothing, none));
#else
    put(local, select(top.id, nothing, none));
#end
    return;
  }
  var bottom = 0u;
  if (s.top_k > 0u && s.top_k < params.vocabulary) { bottom = last_kept(local, peak, 0u, s.top_k, 0.0, false); }
  if (s.top_p < 1.0) { bottom = max(bottom, last_kept(local, peak, bottom, 0u, s.top_p, true)); }
  bottom = max(bottom, key_of(peak + log(max(s.min_p, 1e-30))));
  let kept = number_of(bottom);
  let position = start + params.count;
  highest = Best(0u, top.id);
  for (var id = local; id < params.vocabulary; id += threads) {
    let v = number_at(z_from + id);
    if (!(v >= kept) || v == lowest) { continue; }
    highest = better(highest, Best(key_of(v - peak + noise(s, position, id)), id));
  }
  workgroupBarrier();
  let drawn = reduce_best(local, highest);
#if feeds
  put(local, ahead, start, select(drawn.id, nothing, none));
#else
  put(local, select(drawn.id, nothing, none));
#end
}
