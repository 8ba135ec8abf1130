// put2(part, m, n, v): stores the sums at (m, n) and (m, n+1), n even, where they exist. finish2(m, n, v, f) does so with what
// finishing(m, n) has fetched before. Who includes it declares `y_type` and what finish.wgsl asks for.
#option results 1..4  // y, y1, ..: each has the columns that follow those of the one before
#option parts         // y is [splits, m, n] in f32, of sums that are not finished
#option row_words     // rows of results are whole words
#if parts
#tensor y raw_write u32

fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {
  if (m >= params.m || n >= params.n) { return; }
  let i = (part * params.m + m) * params.n + n;
  y[i] = bitcast<u32>(v.x);
  if (n + 1u < params.n) { y[i + 1u] = bitcast<u32>(v.y); }
}
#else
#include "quant/kernels/common/finish.wgsl"
#if row_words
#tensor y raw_write u32
#else
#tensor y elements f16 | f32
#end
#if results > 1
#tensor y1 raw_write u32
#end
#if results > 2
#tensor y2 raw_write u32
#end
#if results > 3
#tensor y3 raw_write u32
#end

alias Finishing = vec2<f32>;
fn finishing(m: u32, n: u32) -> Finishing {
  let last = params.n - 1u;
  let i = m * params.n;
  return vec2<f32>(added(i + min(n, last), min(n, last)), added(i + min(n + 1u, last), min(n + 1u, last)));
}
fn put2(part: u32, m: u32, n: u32, v: vec2<f32>) {
  if (m < params.m && n < params.n) { finish2(m, n, v, finishing(m, n)); }
}
fn finish2(m: u32, n: u32, v: vec2<f32>, f: Finishing) {
  if (m >= params.m || n >= params.n) { return; }
  let pair = v * factor() + f;
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
#include "quant/kernels/common/store2.wgsl" to=y
#else
#include "quant/kernels/common/store2.wgsl" to=y$j
#end
  }
#end
}
#end
