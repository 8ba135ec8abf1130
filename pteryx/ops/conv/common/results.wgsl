// y = clamp(activation(norm(sum + bias)) + residual): what becomes of finished sums, four neighbours of a row at a time.
#option has_bias
#option has_norm  // weight, bias, mean and variance of each channel
#option activation none | silu | hardswish
#option has_residual 0..2  // 2: one for each channel of an image
#option has_lo  // results are clamped
#option has_hi
#option y_rows fours | pairs | ones | any  // what a row of y is a whole number of; any: rows share words, there is no put
#if y_rows == fours && y_type == f32
#tensor y raw_write vec4<f32>
#elif y_rows == fours
#tensor y raw_write vec2<u32>
#elif y_rows == pairs && y_type == f32
#tensor y raw_write vec2<f32>
#elif y_rows == pairs
#tensor y raw_write u32
#elif y_rows == any
#tensor y words f16 | f32
#else
#tensor y elements f16 | f32
#end

fn finish(at: u32, count: u32, channel: u32, sum: vec4<f32>) -> vec4<f32> {
  var v = sum;
#if has_bias
  v += load_bias(channel);
#end
#if has_norm
  let channels = params.groups * params.out_channels;
  v -= load_norm(2u * channels + channel);
  v *= inverseSqrt(load_norm(3u * channels + channel) + params.eps) * load_norm(channel);
  v += load_norm(channels + channel);
#end
#if activation == silu
  v = v / (1.0 + exp(min(-v, vec4<f32>(88.0))));
#elif activation == hardswish
  v = v * clamp(v / 6.0 + 0.5, vec4<f32>(), vec4<f32>(1.0));
#end
#if has_residual == 2
  v += load_residual(at / params.out_size.w);
#elif has_residual
#for e in 0..4
  if (count > $(e)u) { v[$e] += load_residual(at + $(e)u); }
#end
#end
#if has_lo
  v = max(v, vec4<f32>(params.lo));
#end
#if has_hi
  v = min(v, vec4<f32>(params.hi));
#end
  return v;
}

#if y_rows != any
// The first `count` of four neighbours in a row of `channel`; a row is the host's y_rows.
fn put(at: u32, count: u32, channel: u32, sum: vec4<f32>) {
  let v = finish(at, count, channel, sum);
#if y_rows == fours && y_type == f32
  y[at / 4u] = v;
#elif y_rows == fours
  y[at / 4u] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
#elif y_rows == pairs && y_type == f32
  y[at / 2u] = v.xy;
  if (count > 2u) { y[at / 2u + 1u] = v.zw; }
#elif y_rows == pairs
  y[at / 2u] = pack2x16float(v.xy);
  if (count > 2u) { y[at / 2u + 1u] = pack2x16float(v.zw); }
#else
#for e in 0..4
  if (count > $(e)u) { store_y(at + $(e)u, v[$e]); }
#end
#end
}
#end
