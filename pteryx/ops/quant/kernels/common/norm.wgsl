// norm4(k): the factors of an RMS norm for k .. k+3, k a multiple of 4; any numbers past the end. Who includes it declares
// `norm_type` and says by `k_whole` that nothing is past the end.
#if norm_type == f32
#tensor norm raw vec4<f32>
#else
#tensor norm raw vec2<u32>
#end

fn norm4(k: u32) -> vec4<f32> {
#if k_whole
  let i = k / 4u;
#else
  let i = min(k, params.k - 4u) / 4u;
#end
#if norm_type == f32
  return norm[i];
#else
  return vec4<f32>(unpack2x16float(norm[i].x), unpack2x16float(norm[i].y));
#end
}
