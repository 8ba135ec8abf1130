// y[m, n] = finish(sum over k of x[m, k] * code[n, k] * scale(n, k)).
// A few rows of x with integer dot products. x becomes integers of `planes` signed bytes with a scale for each unit of k,
// once per workgroup, in workgroup memory; a product with the codes of a unit is then exact, and is turned into a float
// once. A team of invocations shares out k for `columns` columns of every row of x, `sets` teams make up a workgroup.
// Bytes: the weights once, all fetched before x is looked at. 2 * planes * rows dot products per 8 codes.
// Host guarantees: m <= rows, one scale per unit, block >= eights.
// Codes and sums have names, and what is done with them is written out: compilers may keep arrays of them in memory.
// The prelude also gives fold_many.wgsl with rows * columns / 4 vectors, `nibbles`, `code_offset` as an integer `zero_code`,
//   struct Codes, fn codes_at(n: u32, u: u32) -> Codes   unit u of the columns n .., and its scales
//   struct Sums, fn add_products(sums: ptr<function, Sums>, codes: Codes, lane: u32), fn fold_sums(sums: Sums, local: u32)
//   fn eight_of(m: u32, k: u32) -> Eight   x at (m, k .. k+7) as integers, called by all invocations of the workgroup, with
//                                          k / 8 consecutive in neighbours
#include "quant/common/qlinear.wgsl"

struct Eight { low: vec4<i32>, high: vec4<i32>, scale: f32 }

const eights: u32 = unit / 8u;
const items: u32 = rows * team * eights;
const ones: u32 = 0x01010101u;

// [row][plane][eight][first, second][unit]: neighbours read side by side.
var<workgroup> x_bytes: array<u32, rows * planes * eights * 2u * team>;
var<workgroup> x_scale: array<f32, rows * team>;
var<workgroup> x_shift: array<i32, rows * planes * team>;  // what zero_code adds to the product with all codes

fn packed(b: vec4<i32>) -> u32 {
  let u = bitcast<vec4<u32>>(b) & vec4<u32>(255u);
  return u.x | (u.y << 8u) | (u.z << 16u) | (u.w << 24u);
}

fn store_x(item: u32, eight: Eight, inside: bool) {
  let e = item % eights;
  let u = item / eights % team;
  let m = item / (eights * team);
  // A u32 of weights has its even codes in the low nibbles.
  var first = eight.low;
  var second = eight.high;
  if (nibbles) {
    first = vec4<i32>(eight.low.xz, eight.high.xz);
    second = vec4<i32>(eight.low.yw, eight.high.yw);
  }
  for (var p = 0u; p < planes; p++) {
    let a = (first << vec4<u32>(24u)) >> vec4<u32>(24u);
    let b = (second << vec4<u32>(24u)) >> vec4<u32>(24u);
    first = (first - a) >> vec4<u32>(8u);
    second = (second - b) >> vec4<u32>(8u);
    let pa = packed(a);
    let pb = packed(b);
    var sum = dot4I8Packed(pa, ones) + dot4I8Packed(pb, ones);
    for (var step = 1u; step < eights; step <<= 1u) { sum += subgroupShuffleXor(sum, step); }
    if (inside) {
      let at = (((m * planes + p) * eights + e) * 2u) * team + u;
      x_bytes[at] = pa;
      x_bytes[at + team] = pb;
      if (e == 0u) { x_shift[(m * planes + p) * team + u] = -zero_code * sum; }
    }
  }
  if (inside && e == 0u) { x_scale[m * team + u] = eight.scale; }
}

// One unit of a row of x, as the products read it: a and b of each plane go with the first and second codes of eights.
struct Unit {
  a0: vec4<u32>, b0: vec4<u32>, a1: vec4<u32>, b1: vec4<u32>, a2: vec4<u32>, b2: vec4<u32>, shift: vec3<i32>, scale: f32
}

fn words_of(first: u32) -> vec4<u32> {
  if (eights == 2u) { return vec4<u32>(x_bytes[first], x_bytes[first + 2u * team], 0u, 0u); }
  return vec4<u32>(x_bytes[first], x_bytes[first + 2u * team], x_bytes[first + 4u * team], x_bytes[first + 6u * team]);
}
fn unit_of(m: u32, lane: u32) -> Unit {
  const plane = eights * 2u * team;
  let at = m * planes * plane + lane;
  var x: Unit;
  x.a0 = words_of(at);
  x.b0 = words_of(at + team);
  x.a1 = words_of(at + plane);
  x.b1 = words_of(at + plane + team);
  x.shift = vec3<i32>(x_shift[m * planes * team + lane], x_shift[(m * planes + 1u) * team + lane], 0);
  if (planes == 3u) {
    x.a2 = words_of(at + 2u * plane);
    x.b2 = words_of(at + 2u * plane + team);
    x.shift.z = x_shift[(m * planes + 2u) * team + lane];
  }
  x.scale = x_scale[m * team + lane];
  return x;
}

fn dots(a: vec4<u32>, b: vec4<u32>, xa: vec4<u32>, xb: vec4<u32>) -> i32 {
  let half = dot4I8Packed(a.x, xa.x) + dot4I8Packed(b.x, xb.x) + dot4I8Packed(a.y, xa.y) + dot4I8Packed(b.y, xb.y);
  if (eights == 2u) { return half; }
  return half + dot4I8Packed(a.z, xa.z) + dot4I8Packed(b.z, xb.z) + dot4I8Packed(a.w, xa.w) + dot4I8Packed(b.w, xb.w);
}

// The codes of a unit times x, but for the scales.
fn product(w: vec4<u32>, x: Unit) -> f32 {
  var a = vec4<u32>(w.x, w.z, 0u, 0u);
  var b = vec4<u32>(w.y, w.w, 0u, 0u);
  if (nibbles) {
    a = w & vec4<u32>(0x0f0f0f0fu);
    b = (w >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
  }
  let low = x.shift.x + dots(a, b, x.a0, x.b0) + 256 * (x.shift.y + dots(a, b, x.a1, x.b1));
  if (planes == 2u) { return f32(low); }
  return fma(f32(x.shift.z + dots(a, b, x.a2, x.b2)), 65536.0, f32(low));
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let lane = local % team;
    let first_n = flat_group(group, groups) * sets * columns;
  let n = first_n + local / team * columns;
  let units = (params.k + unit - 1u) / unit;
  var sums: Sums;
  for (var first_u = 0u; first_u < units; first_u += team) {
    // Units and columns past the end repeat the last; x is 0 there, or nothing is stored.
    let u = min(first_u + lane, units - 1u);
    let codes = codes_at(n, u);
    workgroupBarrier();
    for (var i = 0u; i < items; i += wg_size) {
      let item = min(i + local, items - 1u);
      let eight = eight_of(item / (eights * team), (first_u * eights + item % (eights * team)) * 8u);
      store_x(item, eight, i + local < items);
    }
    workgroupBarrier();
    add_products(&sums, codes, lane);
  }

  fold_sums(sums, local);
  workgroupBarrier();
  const pairs = columns / 2u;
  for (var i = local; i < sets * rows * pairs; i += wg_size) {
    let which = i / (rows * pairs);
    let m = i / pairs % rows;
    let c = i % pairs * 2u;
    put2(0u, m, first_n + which * columns + c, folded(which, m * (columns / 4u) + c / 4u, c % 4u));
  }
}
