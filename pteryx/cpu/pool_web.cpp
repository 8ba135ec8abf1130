// A page has one thread. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pool.h"

namespace pteryx::cpu {

size_t usable_cores() { return 1; }

struct Pool::Workers {};

Pool::Pool(size_t /*threads*/) : threads_(1) {}
Pool::~Pool() = default;

std::shared_ptr<Pool> shared_pool(size_t /*threads*/) { return std::make_shared<Pool>(1); }

void Pool::run_erased(size_t count, Function function, void* body) {
  for (size_t item = 0; item < count; ++item) function(body, item, 0);
}

}  // namespace pteryx::cpu
