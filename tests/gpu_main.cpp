// The main of every test that needs a GPU, or, with PTERYX_DEVICE=cpu, stands on the CPU instead.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <string_view>

#include <gtest/gtest.h>

#include "pteryx/cpu/use_target.h"
#include "pteryx/gpu/environment.h"

// Tests ask for more memory than there is and expect to be told; sanitizers end the process then,
// unless asked not to.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#elif __has_feature(thread_sanitizer)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif
#endif

int main(int argc, char** argv) {
  using namespace pteryx;
  if (argc == 2 && std::string_view(argv[1]) == "--cpu_targets") {  // for tests/each_target.py
    for (const std::string& name : cpu::targets()) std::puts(name.c_str());
    return 0;
  }
  if (const Status s = cpu::use_target(gpu::variable("PTERYX_CPU_TARGET")); !s.ok()) {
    std::fprintf(stderr, "PTERYX_CPU_TARGET: %s\n", std::string(s.message()).c_str());
    return 2;
  }
  gpu::show_software_driver(gpu::options_from_environment().adapter, PTERYX_SOFTWARE_ICD);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
