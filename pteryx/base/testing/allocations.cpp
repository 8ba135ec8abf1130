// Counting operator new. Linked into a test binary that uses AllocationCount, and into no other.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/testing/allocations.h"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>

#include <dlfcn.h>

#include <execinfo.h>

namespace {

thread_local bool counting = false;
thread_local int counted = 0;

}  // namespace

// ThreadSanitizer has its own operator new, and tells of every allocation.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTERYX_HAS_HOOKS
#endif
#endif

#ifdef PTERYX_HAS_HOOKS
#include <sanitizer/allocator_interface.h>

namespace {

void count_one(const volatile void* /*memory*/, size_t /*size*/) {
  if (counting) ++counted;
}
void count_none(const volatile void* /*memory*/) {}
const int hooks = __sanitizer_install_malloc_and_free_hooks(count_one, count_none);

}  // namespace
#else
namespace {

// Whether the nearest caller outside the C++ library is this executable. The WebGPU library and its
// drivers end up in this file's operator new, too.
bool called_by_pteryx() {
  std::array<void*, 12> frames;
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  Dl_info self = {};
  dladdr(reinterpret_cast<void*>(&called_by_pteryx), &self);
  for (int i = 3; i < depth; ++i) {  // below this function, allocate and operator new
    Dl_info caller = {};
    if (dladdr(frames[static_cast<size_t>(i)], &caller) == 0) return false;
    if (std::string_view(caller.dli_fname).find("libstdc++") != std::string_view::npos) continue;
    return caller.dli_fbase == self.dli_fbase;
  }
  return false;
}

[[gnu::noinline]] void* allocate(size_t size, size_t alignment) {
  if (counting) {
    counting = false;
    counted += called_by_pteryx() ? 1 : 0;
    counting = true;
  }
  void* const p =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size == 0 ? 1 : size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  return p;
}

void* or_abort(void* p) {
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) { return or_abort(allocate(size, 1)); }
[[gnu::noinline]] void* operator new[](size_t size) { return or_abort(allocate(size, 1)); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t a) {
  return or_abort(allocate(size, static_cast<size_t>(a)));
}
[[gnu::noinline]] void* operator new[](size_t size, std::align_val_t a) {
  return or_abort(allocate(size, static_cast<size_t>(a)));
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
[[gnu::noinline]] void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 1);
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t a,
                                     const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(a));
}
[[gnu::noinline]] void* operator new[](size_t size, std::align_val_t a,
                                       const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<size_t>(a));
}
void operator delete(void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { std::free(p); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace pteryx::testing {

AllocationCount::AllocationCount() {
  std::array<void*, 1> frame{};
  backtrace(frame.data(), 1);  // loads the unwinder
#ifdef PTERYX_HAS_HOOKS
  if (hooks == 0) std::abort();  // nothing would be counted
#endif
  counted = 0;
  counting = true;
}

AllocationCount::~AllocationCount() { counting = false; }

int AllocationCount::stop() {
  counting = false;
  return counted;
}

}  // namespace pteryx::testing
