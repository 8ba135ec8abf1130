// Adds up the parts of a product whose k was cut: y[i] = epilogue(sum over splits of parts[split, i]).
// One invocation per four of y, or per word of it; all parts are asked for before the first is added.
// Bytes: 4 * splits + the size of y per result.
// Host guarantees: parts is [splits, batches, m, n], m and n up to multiples of fill_m and fill_n; n before and after are
// multiples of four where it goes by `fours`.
#option splits 1..16
#option fours
#option fill_m 1..128
#option fill_n 1..128
#option has_add
#if has_add
#option add_type f16 | f32
#end
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#if has_scale
#option scale_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#if fours
#option y_type f16 | f32
#tensor parts raw vec4<f32>
#else
#tensor parts read f32
#end
#include "matmul/common/matmul.wgsl"
#include "matmul/common/epilogue.wgsl"
#if !fours
#tensor y words f16 | f32
#elif y_type == f32
#tensor y raw_write vec4<f32>
#else
#tensor y raw_write vec2<u32>
#end

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.batches * params.m * params.n;
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  let part = params.batches * part_m * part_n;
#if fours
  let i = w * 4u;
  if (i >= count) { return; }
  let batch = i / params.n / params.m;
  let m = i / params.n % params.m;
  let n = i % params.n;
  let at = ((batch * part_m + m) * part_n + n) / 4u;
#for s in 0..splits
  let part$s = parts[at + $(s)u * (part / 4u)];
#end
  var sum = part0;
#for s in 1..splits
  sum += part$s;
#end
  let v = vec4<f32>(epilogue(sum.x, batch, m, n), epilogue(sum.y, batch, m, n + 1u), epilogue(sum.z, batch, m, n + 2u),
                    epilogue(sum.w, batch, m, n + 3u));
#if y_type == f32
  y[w] = v;
#else
  y[w] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
#end
#else
  if (w * y_lanes >= count) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let batch = i / params.n / params.m;
    let m = i / params.n % params.m;
    let n = i % params.n;
    let at = (batch * part_m + m) * part_n + n;
#for s in 0..splits
    let part$s = load_parts(at + $(s)u * part);
#end
    var sum = part0;
#for s in 1..splits
    sum += part$s;
#end
    word |= encode_y(lane, epilogue(sum, batch, m, n));
  }
  y[w] = word;
#end
}
