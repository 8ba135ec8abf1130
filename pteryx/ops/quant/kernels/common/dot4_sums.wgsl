// The products of qlinear_dot4.wgsl: units of weights in w.. and s.. times x, added to sum... Who includes it has the options,
// constants and names of that file.
// Codes are taken apart once, then a row of x at a time is multiplied with those of all columns.
#for s in 0..steps
  {
#if x_form == prepared
    let at = first_unit + own_unit + $(s * lanes)u;
#else
    let at = own_unit + $(s * lanes)u;
#end
#for c in 0..columns
#if codes == nibbles
    let even$c = w$(s)_$c & vec4<u32>(0x0f0f0f0fu);
    let odd$c = (w$(s)_$c >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
#end
#if scales_type == f16 && scale_loads != one
    let scale$c = unpack2x16float(s$(s)_$(c / scales_loaded)[$(c % scales_loaded / 2)])[$(c % 2)];
#if has_minimums
    let minimum$c = unpack2x16float(z$(s)_$(c / scales_loaded)[$(c % scales_loaded / 2)])[$(c % 2)];
#end
#else
    let scale$c = s$(s)_$(c / 4)[$(c % 4)];
#if has_minimums
    let minimum$c = z$(s)_$(c / 4)[$(c % 4)];
#end
#end
#end
#for m in 0..rows
    {
      let about = x_scale[$(m)u * $(x_row)u + at];
#for h in 0..eights / 2
#for p in 0..planes
#if x_form == prepared
      let x$(p)_$h = x_bytes[$((m * planes + p) * (eights / 2) + h)u * $(x_row)u + at];
#else
      let x$(p)_$h = vec4<u32>(x_bytes[($((m * planes + p) * (eights / 2) + h)u * wide + at) * 2u],
                               x_bytes[($((m * planes + p) * (eights / 2) + h)u * wide + at) * 2u + 1u]);
#end
#end
#end
#if planes == 3
      let first_high = x_high[$(m)u * $(x_row)u + at];
#end
#if has_minimums && planes == 3
      let x_sum = fma(f32(first_high), 65536.0, f32(bitcast<i32>(about.y))) * (about.x * -0.125);
#elif has_minimums
      let x_sum = f32(bitcast<i32>(about.y)) * (about.x * -0.125);  // what code 0 adds is -8 times the sum of x
#end
#for c in 0..columns
      {
        var low = bitcast<i32>(about.y);
        var middle = 0;
#if planes == 3
        var high = first_high;
#end
#for h in 0..eights / 2
#for j in 0..4
#if codes == bytes
        let code$(h)_$j = w$(s)_$c[$j];
#elif j % 2 == 0
        let code$(h)_$j = even$c[$(h * 2 + j / 2)];
#else
        let code$(h)_$j = odd$c[$(h * 2 + j / 2)];
#end
        low += dot4I8Packed(code$(h)_$j, x0_$h[$j]);
        middle += dot4I8Packed(code$(h)_$j, x1_$h[$j]);
#if planes == 3
        high += dot4I8Packed(code$(h)_$j, x2_$h[$j]);
#end
#end
#end
#if planes == 3
        let product = fma(f32(high), 65536.0, f32(middle * 256 + low));
#else
        let product = f32(middle * 256 + low);
#end
#if has_minimums
        sum$(m)_$(columns)_$c = fma(product * about.x, scale$c, fma(x_sum, minimum$c, sum$(m)_$(columns)_$c));
#else
        sum$(m)_$(columns)_$c = fma(product * about.x, scale$c, sum$(m)_$(columns)_$c);
#end
      }
#end
    }
#end
  }
#end
