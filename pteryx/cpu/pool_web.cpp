// Without memory that is shared, a page has one thread. web/module/threads.cpp stands in for this
// file where there are more.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/processors.h"

namespace pteryx::cpu {

size_t usable_cores() { return 1; }

struct Pool::Workers {};

const int Pool::kSpins = 1;
void Pool::sleep(const std::atomic<uint32_t>& /*value*/, uint32_t /*old*/, size_t /*thread*/) {}
void Pool::wake(std::atomic<uint32_t>& /*value*/) {}

Pool::Pool(size_t /*threads*/) : threads_(1) {}
Pool::~Pool() = default;

std::shared_ptr<Pool> shared_pool(size_t /*threads*/) { return std::make_shared<Pool>(1); }

}  // namespace pteryx::cpu
