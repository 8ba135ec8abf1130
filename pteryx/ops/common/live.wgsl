// An int that is known only while running: a literal, or a slot of the live scalars.
#option live_slots
#if live_slots
#tensor live_scalars raw i32
fn live(word: u32) -> i32 {
  if ((word >> 31u) == 0u) { return i32(word); }
  return live_scalars[word & 0x7fffffffu];
}
#else
fn live(word: u32) -> i32 { return i32(word); }
#end
