// Where element i of a result finds its operands. params.dims are those of the result, merged and right-aligned, with
// params.first = 8 - rank; params.A are the strides of an operand, 0 along dims that it repeats.
//   #include "common/walk.wgsl" name=offsets operands=2 a=a_strides b=b_strides
// gives fn offsets(i: u32) -> vec2<u32>; with one operand, a u32.
#option name text
#option operands 1..3
#option a text
#if operands == 1
fn $(name)(i: u32) -> u32 {
  var at = 0u;
#else
fn $(name)(i: u32) -> vec$(operands)<u32> {
  var at = vec$(operands)<u32>();
#end
  var rest = i;
  for (var d = 8u; d > params.first; d--) {
    let q = (d - 1u) >> 2u;
    let r = (d - 1u) & 3u;
    let size = params.dims[q][r];
    let c = rest % size;
    rest /= size;
#if operands == 1
    at += c * params.$(a)[q][r];
#elif operands == 2
#option b text
    at += c * vec2<u32>(params.$(a)[q][r], params.$(b)[q][r]);
#else
#option b text
#option c text
    at += c * vec3<u32>(params.$(a)[q][r], params.$(b)[q][r], params.$(c)[q][r]);
#end
  }
  return at;
}
