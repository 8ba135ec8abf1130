// y = activation((x - mean) * rstd * weight + bias) with mean and rstd of each row, for rows that are too few to fill the
// GPU: a workgroup takes one of `splits` parts of a row, of `chunk` items. A first pass leaves each part's (mean, sum of
// squares around it), a second joins those of its row and writes.
// Bytes: x twice, the second time from the cache where it fits, and y once.
// Host guarantees: length and chunk are multiples of 4, chunk is at most 16 * wg_size; inner is a multiple of 4 where rows
// are groups, weight and bias then are read once for four.
#option pass parts | merge
#option rows dense | groups
#option x_type f16 | f32
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#if x_type == f16
#tensor x raw vec2<u32>
#else
#tensor x raw vec4<f32>
#end
#if pass == parts
#tensor parts raw_write vec2<f32>
#else
#option has_weight
#option has_bias
#option activation none | silu
#option y_type f16 | f32
#tensor parts raw vec2<f32>
#if has_weight
#tensor weight read f16 | f32
#end
#if has_bias
#tensor bias read f16 | f32
#end
#if y_type == f16
#tensor y raw_write vec2<u32>
#else
#tensor y raw_write vec4<f32>
#end
#include "common/affine.wgsl"
#if activation == silu
#include "common/math.wgsl"
#end
#end
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, groups: u32, channels: u32, inner: u32, eps: f32, splits: u32, chunk: u32 }
@group(0) @binding(0) var<uniform> params: Params;

alias acc = f32;
fn combine(a: acc, b: acc) -> acc { return a + b; }
#include "common/fold.wgsl"

fn four(i: u32) -> vec4<f32> {
#if x_type == f16
  let v = x[i];
  return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y));
#else
  return x[i];
#end
}
fn total(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }
fn items_of(part: u32) -> u32 { return min(params.chunk, params.length - part * params.chunk); }

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups);
  if (unit >= params.rows * params.splits) { return; }
  let row = unit / params.splits;
  let part = unit % params.splits;
  let first = (row * params.length + part * params.chunk) / 4u;
  let fours = items_of(part) / 4u;
#if pass == parts
#for i in 0..4
  let inside$i = local + $(i)u * wg_size < fours;
  var v$i = vec4<f32>();
  if (inside$i) { v$i = four(first + local + $(i)u * wg_size); }
#end
  let mean = fold((total(v0) + total(v1)) + (total(v2) + total(v3)), local) / f32(fours * 4u);
  var squares = 0.0;
#for i in 0..4
  let d$i = select(vec4<f32>(), v$i - mean, inside$i);
  squares += dot(d$i, d$i);
#end
  let around = fold(squares, local);
  if (local == 0u) { parts[unit] = vec2<f32>(mean, around); }
#else
  var mean = 0.0;
  for (var s = 0u; s < params.splits; s++) { mean += parts[row * params.splits + s].x * f32(items_of(s)); }
  mean /= f32(params.length);
  var around = 0.0;
  for (var s = 0u; s < params.splits; s++) {
    let other = parts[row * params.splits + s];
    around += other.y + (other.x - mean) * (other.x - mean) * f32(items_of(s));
  }
  let scale = inverseSqrt(around / f32(params.length) + params.eps);
#for i in 0..4
  {
    let at = local + $(i)u * wg_size;
    if (at < fours) {
      let v = (four(first + at) - mean) * scale;
      let k = part * params.chunk + at * 4u;
#if rows == groups
      let c = row % params.groups * params.channels + k / params.inner;
      var w = vec4<f32>(affine(v.x, c), affine(v.y, c), affine(v.z, c), affine(v.w, c));
#else
      var w = vec4<f32>(affine(v.x, k), affine(v.y, k + 1u), affine(v.z, k + 2u), affine(v.w, k + 3u));
#end
#if activation == silu
      w = vec4<f32>(silu_of(w.x), silu_of(w.y), silu_of(w.z), silu_of(w.w));
#end
#if y_type == f16
      y[first + at] = vec2<u32>(pack2x16float(w.xy), pack2x16float(w.zw));
#else
      y[first + at] = w;
#end
    }
  }
#end
#end
}
