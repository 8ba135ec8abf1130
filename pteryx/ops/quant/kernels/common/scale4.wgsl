// scale4(n, k): the scales of columns n .. n+3 at k; past the end that of the last column. Who includes it declares
// `scales_type`.
#option grouped
#option scale_fours  // n is a multiple of 4, and four scales are one load
#if !scale_fours
#tensor scales read f16 | f32
#elif scales_type == f32
#tensor scales raw vec4<f32>
#else
#tensor scales raw vec2<u32>
#end

fn scale4(n: u32, k: u32) -> vec4<f32> {
#if grouped
  let i = k / params.group * params.scale_row + n;
#else
  let i = n;
#end
#if !scale_fours
  let more = params.n - 1u - n;
  return vec4<f32>(load_scales(i), load_scales(i + min(1u, more)), load_scales(i + min(2u, more)),
                   load_scales(i + min(3u, more)));
#elif scales_type == f32
  return scales[i / 4u];
#else
  let w = scales[i / 4u];
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
#end
}
