// Operators by the part of their name that tells them apart. SPDX-License-Identifier: BSD-3-Clause

/** `et_vk.rms_norm.default` → `rms_norm`, `aten::add.Tensor` → `add.Tensor`. */
export function shortName(name: string): string {
  return name.replace(/^[a-z_]+(?:::|\.)(?=[A-Za-z_])/i, "").replace(/\.(default|out)$/, "") || name;
}
