// rotate_q(w) or rotate_k(w): makes one word of a result of rope.wgsl.
#option which q | k
fn rotate_$(which)(w: u32) {
  var word = 0u;
  for (var lane = 0u; lane < y$(which)_lanes; lane++) {
    let i = w * y$(which)_lanes + lane;
    if (i >= params.n_$(which)) { break; }
    let d = i % params.size;
    var v = load_x$(which)(i);
    if (d < params.rotary) {
      let t = turn(table_row(i / params.size, params.heads_$(which)), d);
      v = v * t.x + load_x$(which)(i - d + partner(d)) * t.y;
    }
    word |= encode_y$(which)(lane, v);
  }
  y$(which)[w] = word;
}
