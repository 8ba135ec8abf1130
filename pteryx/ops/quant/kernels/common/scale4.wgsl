// scales_at(n, k): the scales at k of columns n .. n+3, past the end that of the last, as they are: two of f16 in a word.
// minimums_at(n, k): the same of what code 0 stands for, with has_minimums.
// Who includes it declares `scales_type` and, with has_minimums, `minimums_type`.
#option scale_loads one | four | eight  // eight: of columns n .. n+7. One load each, n a multiple of 4 or 8; else as numbers
#if scale_loads == one
#tensor scales read f16 | f32
alias Scales = vec4<f32>;
#elif scale_loads == eight
#tensor scales raw vec4<u32>
alias Scales = vec4<u32>;
#elif scales_type == f32
#tensor scales raw vec4<f32>
alias Scales = vec4<f32>;
#else
#tensor scales raw vec2<u32>
alias Scales = vec2<u32>;
#end
#option has_minimums
#if has_minimums && scale_loads == one
#tensor minimums read f16 | f32
#elif has_minimums && scale_loads == eight
#tensor minimums raw vec4<u32>
#elif has_minimums && scales_type == f32
#tensor minimums raw vec4<f32>
#elif has_minimums
#tensor minimums raw vec2<u32>
#end
#include "quant/kernels/common/scale_index.wgsl"

fn scales_at(n: u32, k: u32) -> Scales {
#if scale_loads == one
  let last = params.n - 1u;
  return vec4<f32>(load_scales(scale_index(n, k)), load_scales(scale_index(min(n + 1u, last), k)),
                   load_scales(scale_index(min(n + 2u, last), k)), load_scales(scale_index(min(n + 3u, last), k)));
#elif scale_loads == eight
  return scales[scale_index(n, k) / 8u];
#else
  return scales[scale_index(n, k) / 4u];
#end
}
#if has_minimums
fn minimums_at(n: u32, k: u32) -> Scales {
#if scale_loads == one
  let last = params.n - 1u;
  return vec4<f32>(load_minimums(scale_index(n, k)), load_minimums(scale_index(min(n + 1u, last), k)),
                   load_minimums(scale_index(min(n + 2u, last), k)), load_minimums(scale_index(min(n + 3u, last), k)));
#elif scale_loads == eight
  return minimums[scale_index(n, k) / 8u];
#else
  return minimums[scale_index(n, k) / 4u];
#end
}
#end
