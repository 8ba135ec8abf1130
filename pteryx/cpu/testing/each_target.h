// Kernels are compiled for several sets of instructions: tests run each that the machine has.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

namespace pteryx::cpu::testing {

// Calls the body with one target forced after the other, on any thread; failures name it.
void for_each_target(const std::function<void()>& body);

}  // namespace pteryx::cpu::testing
