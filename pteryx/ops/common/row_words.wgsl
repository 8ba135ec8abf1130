// y by rows: in whole words where every row starts and ends with one, else element by element. Either way there are
// `y_lanes` and `encode_y`, and an invocation that writes y[w] is the only one that does.
#option row_words
#if row_words
#tensor y words f16 | f32
#else
#tensor y elements f16 | f32
const y_lanes: u32 = 1u;
fn encode_y(lane: u32, v: f32) -> u32 { return bitcast<u32>(v); }
#end
