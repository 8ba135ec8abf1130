// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/testing/faults.h"

#include "pteryx/gpu/native/native_device.h"

namespace pteryx::gpu {

void lose(Device& device) { static_cast<native::NativeDevice&>(device).drop_device(); }

void refuse_next_buffer(Device& device) {
  static_cast<native::NativeDevice&>(device).refuse_next_buffer();
}

}  // namespace pteryx::gpu
