// finish(v, i, n): a sum as it is stored in element i of y, of column n. Who includes it declares `bias_type` and
// `residual_type`.
#option has_bias
#option has_residual
#if has_bias
#tensor bias read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end

fn finish(v: f32, i: u32, n: u32) -> f32 {
  var done = v * factor();
#if has_bias
  done += load_bias(n);
#end
#if has_residual
  done += load_residual(i);
#end
  return done;
}
