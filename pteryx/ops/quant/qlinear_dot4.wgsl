// A few rows of x with integer dot products. x becomes integers of `planes` signed bytes with a scale for each unit of k,
// once per workgroup, in workgroup memory; a product with the codes of a unit is then exact, and is turned into a float
// once. A team of invocations shares out k for `columns` columns of every row of x, `sets` teams make up a workgroup.
// Bytes: the weights once, all fetched before x is looked at. 2 * planes * rows dot products per 8 codes.
// Host guarantees: m <= rows, one scale per unit, block >= eights.
// The prelude also gives fold_many.wgsl with sums of rows * columns, `nibbles`, `code_offset` as an integer `zero_code`, and
//   fn scale4(n: u32, k: u32) -> vec4<f32>   the scales of columns n .. n+3, n a multiple of 4; any numbers past the end
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

// Eight codes as signed bytes, in the order of x_bytes.
fn codes8(w: vec4<u32>, e: u32) -> vec2<u32> {
  if (nibbles) { return vec2<u32>(w[e] & 0x0f0f0f0fu, (w[e] >> 4u) & 0x0f0f0f0fu); }
  return vec2<u32>(w[e * 2u], w[e * 2u + 1u]);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let lane = local % team;
    let first_n = flat_group(group, groups) * sets * columns;
  let n = first_n + local / team * columns;
  let units = (params.k + unit - 1u) / unit;
  var sums: array<f32, rows * columns>;
  for (var i = 0u; i < rows * columns; i++) { sums[i] = 0.0; }

  for (var first_u = 0u; first_u < units; first_u += team) {
    // Units and columns past the end repeat the last; x is 0 there, or nothing is stored.
    let u = min(first_u + lane, units - 1u);
    var w: array<vec4<u32>, columns>;
    var s: array<vec4<f32>, columns / 4u>;
    for (var c = 0u; c < columns; c++) { w[c] = fetch(min(n + c, params.n - 1u), u); }
    for (var c = 0u; c < columns; c += 4u) { s[c / 4u] = scale4(n + c, u * unit); }
    workgroupBarrier();
    for (var i = 0u; i < items; i += wg_size) {
      let item = min(i + local, items - 1u);
      let eight = eight_of(item / (eights * team), (first_u * eights + item % (eights * team)) * 8u);
      store_x(item, eight, i + local < items);
    }
    workgroupBarrier();
    for (var m = 0u; m < rows; m++) {
      var x: array<u32, planes * eights * 2u>;
      for (var i = 0u; i < planes * eights * 2u; i++) { x[i] = x_bytes[(m * planes * eights * 2u + i) * team + lane]; }
      let scale_x = x_scale[m * team + lane];
      for (var c = 0u; c < columns; c++) {
        var dots: array<i32, planes>;
        for (var p = 0u; p < planes; p++) { dots[p] = x_shift[(m * planes + p) * team + lane]; }
        for (var e = 0u; e < eights; e++) {
          let codes = codes8(w[c], e);
          for (var p = 0u; p < planes; p++) {
            dots[p] += dot4I8Packed(codes.x, x[(p * eights + e) * 2u]) + dot4I8Packed(codes.y, x[(p * eights + e) * 2u + 1u]);
          }
        }
        var total = f32(dots[planes - 1u]);
        for (var p = 1u; p < planes; p++) { total = fma(total, 256.0, f32(dots[planes - 1u - p])); }
        sums[m * columns + c] = fma(total * scale_x, s[c / 4u][c % 4u], sums[m * columns + c]);
      }
    }
  }

  fold_many(sums, local);
  const pairs = columns / 2u;
  for (var i = local; i < sets * rows * pairs; i += wg_size) {
    let which = i / (rows * pairs);
    let m = i / pairs % rows;
    let c = i % pairs * 2u;
    let total = vec2<f32>(folded(which, m * columns + c), folded(which, m * columns + c + 1u));
    put2(0u, m, first_n + which * columns + c, total);
  }
}
