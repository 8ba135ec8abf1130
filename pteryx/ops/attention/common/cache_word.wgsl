// write_k(batch, w) or write_v: makes word w of a batch's new rows of a cache. Words that lie half outside keep their
// other half.
#option which k | v
fn write_$(which)(batch: u32, w: u32) {
  const bits = 32u / $(which)_cache_lanes;
  let begin = batch * params.pitch + u32(live(params.start)) * params.row;
  let word = begin / $(which)_cache_lanes + w;
  if (word * $(which)_cache_lanes >= begin + params.n) { return; }
  var value = $(which)_cache[word];
  for (var lane = 0u; lane < $(which)_cache_lanes; lane++) {
    let i = word * $(which)_cache_lanes + lane;
    if (i < begin || i >= begin + params.n) { continue; }
    let keep = ~((0xffffffffu >> (32u - bits)) << (lane * bits));
    value = (value & keep) | encode_$(which)_cache(lane, load_$(which)(batch * params.n + i - begin));
  }
  $(which)_cache[word] = value;
}
