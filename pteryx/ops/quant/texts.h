// The texts that the matrix routes still put in front of their kernels.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "pteryx/ops/quant/parts.h"

namespace pteryx::ops::qlinear {

Bind bind_vectors(const QLinear& d);
std::string scale_text(const QLinear& d);
std::string fetch_text(const QLinear& d);
std::string quad_text(const QLinear& d);
Bind bind_x(const QLinear& d);
std::string x4_text(const QLinear& d);
std::string finish_text(const QLinear& d);
std::string put_text(const QLinear& d);
std::string put_parts_text();
void bind_texts(const QLinear& d, std::vector<Bind>& bind);

}  // namespace pteryx::ops::qlinear
