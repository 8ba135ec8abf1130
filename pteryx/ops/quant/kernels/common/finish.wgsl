// finish(v, i, n): a sum as it is stored in element i of y, of column n. added(i, n): what is added to it. Who includes it
// declares `bias_type` and `residual_type`.
#option has_bias
#option has_residual
#if has_bias
#tensor bias read f16 | f32
#end
#if has_residual
#tensor residual read f16 | f32
#end

fn added(i: u32, n: u32) -> f32 {
  var sum = 0.0;
#if has_bias
  sum += load_bias(n);
#end
#if has_residual
  sum += load_residual(i);
#end
  return sum;
}
fn finish(v: f32, i: u32, n: u32) -> f32 { return v * factor() + added(i, n); }
