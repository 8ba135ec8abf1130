// put4(part, m, n, v): stores, finished, sums at (m, n .. n+3), n a multiple of 4, where they exist. Who includes it declares
// `y_type` and what finish.wgsl asks for.
#option results 1..4
#option store whole | fours | elements
#if store == elements
#include "quant/kernels/common/results.wgsl" parts=0
fn put4(part: u32, m: u32, n: u32, v: vec4<f32>) {
  put2(part, m, n, v.xy);
  put2(part, m, n + 2u, v.zw);
}
#else
#if store == whole  // f32, factor 1
#let element = f32
#elif y_type == f32
#let element = vec4f
#else
#let element = vec2u
#end
#option has_bias
#option has_residual
#if has_bias
#if bias_type == f32
#tensor bias raw vec4<f32>
fn bias4(n: u32) -> vec4<f32> { return bias[n / 4u]; }
#else
#tensor bias raw vec2<u32>
fn bias4(n: u32) -> vec4<f32> { return vec4<f32>(unpack2x16float(bias[n / 4u].x), unpack2x16float(bias[n / 4u].y)); }
#end
#end
#if has_residual
#if store == whole
#tensor residual raw f32
fn residual4(i: u32) -> vec4<f32> { return vec4<f32>(residual[i], residual[i + 1u], residual[i + 2u], residual[i + 3u]); }
#elif residual_type == f32
#tensor residual raw vec4<f32>
fn residual4(i: u32) -> vec4<f32> { return residual[i / 4u]; }
#else
#tensor residual raw vec2<u32>
fn residual4(i: u32) -> vec4<f32> { return vec4<f32>(unpack2x16float(residual[i / 4u].x), unpack2x16float(residual[i / 4u].y)); }
#end
#end
#tensor y raw_write $element
#if results > 1
#tensor y1 raw_write $element
#end
#if results > 2
#tensor y2 raw_write $element
#end
#if results > 3
#tensor y3 raw_write $element
#end

fn put4(part: u32, m: u32, n: u32, v: vec4<f32>) {
  if (m >= params.m || n >= params.n) { return; }
#if store == whole
  var done = v;
#else
  var done = v * factor();
#if has_bias
  done += bias4(n);
#end
#end
#if has_residual
  done += residual4(m * params.n + n);
#end
#for j in 0..results
#if j == 0
  const first$j = 0u;
#else
  let first$j = params.ends[$(j - 1)];
#end
  let last$j = params.ends[$j];
  if (n >= first$j && n < last$j) {
    let at = m * (last$j - first$j) + n - first$j;
#if j == 0
#include "quant/kernels/common/store4.wgsl" to=y
#else
#include "quant/kernels/common/store4.wgsl" to=y$j
#end
  }
#end
}
#end
