// Elements inside u32 words, for results that are written a word at a time: needs `y` bound that way.
const lane_bits = 32u / y_lanes;

// Element `at` of a tensor with y's element type, out of its word, as bits of `lane` of another.
fn moved(word: u32, at: u32, lane: u32) -> u32 {
  return extractBits(word, (at % y_lanes) * lane_bits, lane_bits) << (lane * lane_bits);
}
