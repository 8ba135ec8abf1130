// What a run leaves for the next, which reads the token that this one has drawn, at the position behind its last.
//   look_ahead(local)           fetches what that needs, before anybody writes
//   feed(local, ahead, token)   puts the token into y and, with what a position that is one more means, where the next run
//                               finds it; one workgroup of `threads` invocations does
// A token above 0x7fffffff says that there is none. The run after it reads 0, which is in every table, and nobody takes what it
// makes. Where a node has reported something, the token is 0x80000000.
#tensor y raw_write u32
#tensor staging raw_write u32  // live scalars and small inputs of a run
#tensor feed_rule raw u32      // the words of the token and of settings, the number of moves, then word and amount of each
#tensor faults raw vec4<u32>

struct Ahead {
  token_at: u32, moves: u32, word: u32, moved: u32, reported: bool,
}
fn look_ahead(local: u32) -> Ahead {
  let word = feed_rule[3u + 2u * min(local, $(most_moves - 1)u)];
  let moved = staging[word] + feed_rule[4u + 2u * min(local, $(most_moves - 1)u)];
  var reported = false;
  for (var i = 0u; i < arrayLength(&faults); i++) { reported = reported || faults[i].x != 0u; }
  return Ahead(feed_rule[0], feed_rule[2], word, moved, reported);
}
fn feed(local: u32, ahead: Ahead, drawn: u32) {
  if (local == 0u) {
    let token = select(drawn, 0x80000000u, ahead.reported);
    y[0] = token;
    staging[ahead.token_at] = select(token, 0u, token > 0x7fffffffu);
  }
  if (local < ahead.moves) { staging[ahead.word] = ahead.moved; }
}
