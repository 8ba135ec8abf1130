// The invocation's part of a tile of k or v, from key `at` on, on its way to registers; keys beyond the last are the last.
#option name k | v
#option at text
#option ahead
#option loads 1..16
#if ahead
#for i in 0..loads
next_$(name)$i = fetch4_$(name)($(name)_offset(batch, head, min($at + (local + $(i * 128)u) / size4, end - 1u)),
                                (local + $(i * 128)u) % size4);
#end
#end
