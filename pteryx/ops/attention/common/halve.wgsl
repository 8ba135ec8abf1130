// A step of adding up part_STAGE_0, ... over lanes `distance` apart: where their count is even, each of two lanes goes on
// with the sums of one half of them, else both with all. `part_first` and `part_owner` say what a lane has in the end.
#option stage 0..2
#option count 1..64
#option distance 4..16
  let upper_$(stage) = (local & $(distance)u) != 0u;
#if count % 2 == 0
#let half = count / 2
#for p in 0..half
  let part_$(stage + 1)_$(p) = select(part_$(stage)_$(p), part_$(stage)_$(p + half), upper_$(stage)) +
      subgroupShuffleXor(select(part_$(stage)_$(p + half), part_$(stage)_$(p), upper_$(stage)), $(distance)u);
#end
  part_first += select(0u, $(half)u, upper_$(stage));
#else
#for p in 0..count
  let part_$(stage + 1)_$(p) = part_$(stage)_$(p) + subgroupShuffleXor(part_$(stage)_$(p), $(distance)u);
#end
  part_owner = part_owner && !upper_$(stage);
#end
