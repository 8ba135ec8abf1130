// How a module ends that cannot go on: the script throws what the C++ library has to say, which
// would otherwise print it with all of printf.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdarg>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "pteryx/base/web/host.h"

extern "C" {
PTERYX_IMPORT(stop) [[noreturn]] void pteryx_stop(const char* text, size_t size);

// What the library says of a pure virtual function that was called.
[[noreturn]] void __abort_message(const char* format, ...) {  // NOLINT: the library's name
  const std::string_view text = format;
  pteryx_stop(text.data(), text.size());
}
}

namespace std {
inline namespace _LIBCPP_ABI_NAMESPACE {

// What it says instead of throwing, such as "bad_alloc was thrown in -fno-exceptions mode".
[[noreturn]] void __libcpp_verbose_abort(const char* format, ...) noexcept {  // NOLINT
  string_view text = format;
  if (text.find("%s") != text.npos) {  // the one thing that it has to tell
    va_list arguments;
    va_start(arguments, format);
    text = va_arg(arguments, const char*);
    va_end(arguments);
  }
  pteryx_stop(text.data(), text.size());
}

[[noreturn]] void __throw_system_error(int, const char* what) {  // NOLINT: of a clock
  const string_view text = what;
  pteryx_stop(text.data(), text.size());
}

}  // namespace _LIBCPP_ABI_NAMESPACE
}  // namespace std
