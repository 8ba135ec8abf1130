// The products of qlinear_dot4.wgsl: units of weights in w.. and s.. times x, added to sum... Who includes it has the options,
// constants and names of that file.
// Codes are taken apart once for four rows of x.
#for s in 0..steps
#for f in 0..fours
  {
#if x_form == prepared
    let at = first_unit + own_unit + $(s * lanes)u;
#else
    let at = own_unit + $(s * lanes)u;
#end
#for r in 0..4
#if f * 4 + r < rows
    let about$r = x_scale[$(f * 4 + r)u * $(x_row)u + at];
#for c in 0..columns
    var low$(r)_$c = bitcast<i32>(about$(r).y);
    var middle$(r)_$c = 0;
#if planes == 3
    var high$(r)_$c = x_high[$(f * 4 + r)u * $(x_row)u + at];
#end
#end
#end
#end
#for h in 0..eights / 2
    {
#for r in 0..4
#if f * 4 + r < rows
#for p in 0..planes
#if x_form == prepared
      let x$(r)_$p = x_bytes[$(((f * 4 + r) * planes + p) * (eights / 2) + h)u * $(x_row)u + at];
#else
      let x$(r)_$p = vec4<u32>(x_bytes[($(((f * 4 + r) * planes + p) * (eights / 2) + h)u * wide + at) * 2u],
                               x_bytes[($(((f * 4 + r) * planes + p) * (eights / 2) + h)u * wide + at) * 2u + 1u]);
#end
#end
#end
#end
#for c in 0..columns
      {
#for j in 0..4
#if codes == nibbles
        let code$j = (w$(s)_$c[$(h * 2 + j / 2)] >> $(j % 2 * 4)u) & 0x0f0f0f0fu;
#else
        let code$j = w$(s)_$c[$j];
#end
#for r in 0..4
#if f * 4 + r < rows
        low$(r)_$c += dot4I8Packed(code$j, x$(r)_0[$j]);
        middle$(r)_$c += dot4I8Packed(code$j, x$(r)_1[$j]);
#if planes == 3
        high$(r)_$c += dot4I8Packed(code$j, x$(r)_2[$j]);
#end
#end
#end
#end
      }
#end
    }
#end
#for c in 0..columns
    {
#if scales_type == f16 && scale_loads != one
      let scale = unpack2x16float(s$(s)_$(c / scales_loaded)[$(c % scales_loaded / 2)])[$(c % 2)];
#else
      let scale = s$(s)_$(c / 4)[$(c % 4)];
#end
#for r in 0..4
#if f * 4 + r < rows
#if planes == 3
      let product$r = fma(f32(high$(r)_$c), 65536.0, f32(middle$(r)_$c * 256 + low$(r)_$c));
#else
      let product$r = f32(middle$(r)_$c * 256 + low$(r)_$c);
#end
      sum$(f * 4 + r)_$(columns)_$c = fma(product$r * about$(r).x, scale, sum$(f * 4 + r)_$(columns)_$c);
#end
#end
    }
#end
  }
#end
#end
