// y[o, k, i] = exp(x - max) / sum exp(x - max) over k, or its logarithm. A team of invocations works on one (o, i), or
// on one of `splits` parts of it, of `chunk` items: then a first pass leaves each part's (max, sum), a second uses them.
// Host guarantees: x and y are [outer, length, inner], rows = outer * inner; y_lanes divides chunk and length if inner
// is 1, else is 1.
#option result text  // over x, peak and total
#option pass all | parts | merge
#option held 0..16   // words of y that cover an invocation's share, which then stays in registers; 0: it is read anew
#option row_words
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#tensor x read f16 | f32
#if pass == parts
#tensor parts raw_write vec2<f32>
const y_lanes: u32 = 1u;
#else
#if pass == merge
#tensor parts raw vec2<f32>
#end
#option y_type f16 | f32
#include "common/row_words.wgsl"
#end
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, inner: u32, splits: u32, chunk: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// (largest x, sum of exp(x - largest)) of a part of a row.
alias acc = vec2<f32>;
const lowest: f32 = -3.4028234e38;
const held: u32 = $(held)u;

// exp of a difference that is not positive. Below -103 the result is 0; the clamp keeps infinities out of exp.
fn decay(difference: f32) -> f32 { return select(0.0, exp(max(difference, -104.0)), difference > -103.0); }

fn combine(a: acc, b: acc) -> acc {
  let peak = max(a.x, b.x);
  return acc(peak, a.y * decay(a.x - peak) + b.y * decay(b.x - peak));
}

#include "common/fold.wgsl"

#if pass != parts
fn result(x: f32, peak: f32, total: f32) -> f32 { return $result; }
#end

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let row = unit / params.splits;
  let inside = row < params.rows;
  let base = row / params.inner * params.inner * params.length + row % params.inner;
  let start = unit % params.splits * params.chunk;
  let end = select(0u, min(start + params.chunk, params.length), inside);
  let first = start + lane * y_lanes;
  let step = team * y_lanes;

#if held > 0
  var kept: array<f32, held * y_lanes>;
  for (var s = 0u; s < held * y_lanes; s++) {
    let k = first + s / y_lanes * step + s % y_lanes;
    if (k < end) { kept[s] = load_x(base + k * params.inner); }
  }
#end
  // Infinities stay out of sums; a result is made from x as it is.
  var own = acc(lowest, 0.0);
#if pass == merge
  for (var s = lane; s < select(0u, params.splits, inside); s += team) {
    own = combine(own, parts[row * params.splits + s]);
  }
#elif held > 0
  for (var s = 0u; s < held * y_lanes; s++) {
    if (first + s / y_lanes * step + s % y_lanes < end) { own.x = max(own.x, kept[s]); }
  }
  for (var s = 0u; s < held * y_lanes; s++) {
    if (first + s / y_lanes * step + s % y_lanes < end) { own.y += decay(max(kept[s], lowest) - own.x); }
  }
#else
  for (var k = start + lane; k < end; k += team) { own.x = max(own.x, load_x(base + k * params.inner)); }
  for (var block_start = start + lane; block_start < end; block_start += team * 32u) {
    var sum = 0.0;
    for (var k = block_start; k < min(block_start + team * 32u, end); k += team) {
      sum += decay(max(load_x(base + k * params.inner), lowest) - own.x);
    }
    own.y += sum;
  }
#end
  let whole = fold(own, local);
#if pass == parts
  if (lane == 0u && inside) { parts[unit] = whole; }
#elif held > 0
  for (var i = 0u; i < held; i++) {
    let k = first + i * step;
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) { word |= encode_y(j, result(kept[i * y_lanes + j], whole.x, whole.y)); }
    if (k < end) { y[(base + k * params.inner) / y_lanes] = word; }
  }
#else
  for (var k = first; k < end; k += step) {
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) {
      word |= encode_y(j, result(load_x(base + (k + j) * params.inner), whole.x, whole.y));
    }
    y[(base + k * params.inner) / y_lanes] = word;
  }
#end
}
