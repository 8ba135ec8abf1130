// fn epilogue(v: f32, batch: u32, m: u32, n: u32) -> f32: activation(alpha * v + beta * what is added) * scale + residual,
// as far as there are these; a residual lies as y does.
#option has_add
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#option has_residual
#if has_add
#tensor add read f16 | f32
#end
#if has_scale
#tensor scale read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end
#if activation != none
#include "common/math.wgsl"
#end
fn epilogue(v: f32, batch: u32, m: u32, n: u32) -> f32 {
#if has_add
  let at = batch * params.add_batch + m * params.add_row + n * params.add_column;
  let sum = params.alpha * v + params.beta * load_add(at);
#else
  let sum = params.alpha * v;
#end
#if activation == none
  let activated = sum;
#else
  let activated = $(activation)_of(sum);
#end
#if has_scale
  let scaled = activated * load_scale(m * params.scale_row + n * params.scale_column);
#else
  let scaled = activated;
#end
#if has_residual
  return scaled + load_residual((batch * params.m + m) * params.n + n);
#else
  return scaled;
#end
}
