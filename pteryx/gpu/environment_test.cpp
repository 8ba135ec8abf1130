// What a main does with the environment. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/environment.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

namespace pteryx::gpu {
namespace {

// Gives a variable a value, or none, for the time of a test, which may change it.
class Variable {
 public:
  explicit Variable(const char* name, const char* value = nullptr) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_ ? before_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  std::string value() const { return variable(name_); }

 private:
  void set(const char* value) const {
    value == nullptr ? unsetenv(name_) : setenv(name_, value, 1);
  }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(Environment, FillsWhatTheOptionsLeaveEmpty) {
  const Variable adapter("PTERYX_ADAPTER", "a"), provider("PTERYX_PROVIDER", "p");
  const Variable library("PTERYX_WEBGPU_LIBRARY", "l"), disable("PTERYX_DISABLE", "d");
  const Variable checks("PTERYX_BOUNDS_CHECKS", "1");
  const DeviceOptions all = options_from_environment();
  EXPECT_EQ(all.adapter + all.provider + all.library + all.disable, "apld");
  EXPECT_TRUE(all.bounds_checks);
  const DeviceOptions none =
      options_from_environment({.adapter = "1", .provider = "2", .library = "3", .disable = "4"});
  EXPECT_EQ(none.adapter + none.provider + none.library + none.disable, "1234");
}

TEST(Environment, NothingSetChangesNothing) {
  const Variable adapter("PTERYX_ADAPTER"), provider("PTERYX_PROVIDER", "");
  const Variable library("PTERYX_WEBGPU_LIBRARY"), disable("PTERYX_DISABLE");
  const Variable checks("PTERYX_BOUNDS_CHECKS", "0");
  const DeviceOptions options = options_from_environment();
  EXPECT_EQ(options.adapter + options.provider + options.library + options.disable, "");
  EXPECT_FALSE(options.bounds_checks);
}

// With the variables of the Vulkan loader unset, and a file that could be a manifest.
class SoftwareDriver : public ::testing::Test {
 protected:
  SoftwareDriver() : manifest_(::testing::TempDir() + "pteryx_driver.json") {
    std::ofstream(manifest_) << "{}";
  }
  ~SoftwareDriver() override { std::filesystem::remove(manifest_); }

  const std::string manifest_;
  const Variable alone_{"VK_ICD_FILENAMES"}, chosen_{"VK_DRIVER_FILES"};
  const Variable beside_{"VK_ADD_DRIVER_FILES"};
  const Variable runtime_{"XDG_RUNTIME_DIR"}, select_{"NODEVICE_SELECT"};
};

TEST_F(SoftwareDriver, IsAddedToThoseOfTheSystem) {
  show_software_driver("", manifest_.c_str());
  EXPECT_EQ(beside_.value(), manifest_);
  EXPECT_EQ(alone_.value(), "");
}

TEST_F(SoftwareDriver, IsAloneWhereItIsAskedFor) {
  show_software_driver("software", manifest_.c_str());
  EXPECT_EQ(alone_.value(), manifest_);
  EXPECT_EQ(beside_.value(), "");
}

TEST_F(SoftwareDriver, GivesWayToTheUsersChoice) {
  for (const char* name : {"VK_ICD_FILENAMES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES"}) {
    const Variable chosen(name, "/their.json");
    show_software_driver("software", manifest_.c_str());
    show_software_driver("", manifest_.c_str());
    EXPECT_EQ(alone_.value() + chosen_.value() + beside_.value(), "/their.json") << name;
  }
}

TEST_F(SoftwareDriver, MayBeMissing) {
  show_software_driver("software", "/nowhere/driver.json");
  show_software_driver("", "");
  EXPECT_EQ(alone_.value() + beside_.value(), "");
}

TEST_F(SoftwareDriver, SilencesDeviceSelectWithoutADisplay) {
  show_software_driver("", manifest_.c_str());
  EXPECT_EQ(select_.value(), "1");
}

TEST_F(SoftwareDriver, LeavesDeviceSelectAloneWithADisplay) {
  const Variable display("XDG_RUNTIME_DIR", "/run/user/1");
  show_software_driver("", manifest_.c_str());
  EXPECT_EQ(select_.value(), "");
}

}  // namespace
}  // namespace pteryx::gpu
