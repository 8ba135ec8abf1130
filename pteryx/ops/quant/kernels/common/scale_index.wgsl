// scale_index(n, k): which of the scales column n has at k.
#option scale_order flat | groups | blocks  // [n]; [k / group, n]; [n / 8, k / group, n % 8]

fn scale_index(n: u32, k: u32) -> u32 {
#if scale_order == flat
  return n;
#elif scale_order == groups
  return k / params.group * params.scale_row + n;
#else
  return n / 8u * params.scale_row + k / params.group * 8u + n % 8u;
#end
}
