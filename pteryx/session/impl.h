// What a session holds.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/program/program.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/exec/constants.h"
#include "pteryx/session/exec/method.h"
#include "pteryx/session/exec/state_group.h"

namespace pteryx {

struct Session::Impl {
  program::Program program;
  std::shared_ptr<gpu::Device> device;
  std::unique_ptr<exec::ConstantPool> constants;
  std::deque<exec::StateGroup> states;
  std::vector<MethodInfo> infos;
  MemoryUse memory;
  size_t threads = 1;
  std::vector<std::unique_ptr<exec::Method>> methods;
};

}  // namespace pteryx
