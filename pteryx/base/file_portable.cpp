// Files read whole into aligned memory, for systems without memory maps.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/file.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/path.h"

namespace pteryx {
namespace {

constexpr std::align_val_t kAlignment{64};

Status failed(const std::string& path, int error) {
  return io_error(fmt::format("{}: {}", path, std::generic_category().message(error)));
}

struct Closer {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  PTERYX_TRY(check_path(path));
  const std::unique_ptr<std::FILE, Closer> stream(std::fopen(path.c_str(), "rb"));
  if (stream == nullptr) return failed(path, errno);
  // Reading first tells a folder, which opens and even has a size on some systems, from a file.
  if (std::fgetc(stream.get()) == EOF && std::ferror(stream.get()) != 0) return failed(path, errno);
  if (std::fseek(stream.get(), 0, SEEK_END) != 0) return failed(path, errno);
  const long end = std::ftell(stream.get());
  if (end < 0) return failed(path, errno);
  if (std::fseek(stream.get(), 0, SEEK_SET) != 0) return failed(path, errno);
  const auto size = static_cast<size_t>(end);

  std::shared_ptr<MappedFile> file(new MappedFile());
  if (size != 0) {
    auto* const start = static_cast<std::byte*>(::operator new(size, kAlignment, std::nothrow));
    if (start == nullptr) {
      return memory_error(fmt::format("{}: no memory for its {} bytes", path, size));
    }
    file->bytes_ = Bytes(start, size);
    const size_t got = std::fread(start, 1, size, stream.get());
    if (got != size) return io_error(fmt::format("{}: read {} of {} bytes", path, got, size));
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::operator delete(const_cast<std::byte*>(bytes_.data()), kAlignment);
}

}  // namespace pteryx
