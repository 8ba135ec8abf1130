// The main of every test that needs a GPU. SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "pteryx/gpu/environment.h"

int main(int argc, char** argv) {
  using namespace pteryx::gpu;
  show_software_driver(options_from_environment().adapter, PTERYX_SOFTWARE_ICD);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
