// Files in memory, as sources. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/base/file.h"
#include "pteryx/base/source.h"

namespace pteryx {
namespace {

class MappedSource final : public Source {
 public:
  MappedSource(const std::string& path, std::shared_ptr<const MappedFile> file)
      : Source(path), file_(std::move(file)) {}
  uint64_t size() const override { return file_->bytes().size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    const auto part = view(offset, out.size());
    if (!part) return ended(size(), offset, out.size());
    std::copy(part->begin(), part->end(), out.begin());
    return true;
  }
  std::optional<Bytes> view(uint64_t offset, uint64_t size) const override {
    return slice(file_->bytes(), offset, size);
  }

 private:
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace

Result<SourcePtr> map_source(const std::string& path) {
  PTERYX_ASSIGN(auto file, MappedFile::open(path));
  return SourcePtr(std::make_shared<MappedSource>(path, std::move(file)));
}

}  // namespace pteryx
