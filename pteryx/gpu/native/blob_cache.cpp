// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/blob_cache.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "pteryx/base/output_file.h"
#include "pteryx/base/private_folder.h"

namespace pteryx::gpu::native {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

constexpr std::string_view kExtension = ".blob";
constexpr std::string_view kPartial = ".partial";    // of a file that is being written
constexpr auto kFresh = std::chrono::hours(24);      // a use is noted once in that time
constexpr auto kPartialAge = std::chrono::hours(1);  // nobody writes to a file that long untouched
constexpr uint64_t kLargest = uint64_t{64} << 20;    // of an entry

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Stands before an entry's value.
struct Header {
  std::array<char, 8> magic = {'p', 't', 'e', 'r', 'y', 'x', 'B', '1'};
  Hash128 name;
  uint64_t size = 0;
  Hash128 checksum;
};
static_assert(sizeof(Header) == 48);

Hash128 checksum_of(const Hash128& name, Bytes value) {
  Hasher h;
  h.add(name.a);
  h.add(name.b);
  h.add(text_of(value));
  return h.hash();
}

std::optional<std::vector<std::byte>> read_file(const std::string& path) {
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error || size < sizeof(Header) || size > kLargest) return std::nullopt;
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return std::nullopt;
  std::vector<std::byte> bytes(size);
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return std::nullopt;
  return bytes;
}

// So that entries in use do not age. Should it fail, they do.
void note_use(const std::string& path) {
  std::error_code error;
  const auto now = FileClock::now();
  const auto used = fs::last_write_time(path, error);
  if (!error && now - used > kFresh) fs::last_write_time(path, now, error);
}

struct Entry {
  fs::file_time_type used;
  uint64_t bytes = 0;
  fs::path path;
};

// With those that were only begun.
std::vector<Entry> entries_in(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    const fs::path kind = at->path().extension();
    if (kind != kExtension && kind != kPartial) continue;
    std::error_code gone;
    Entry e = {.used = at->last_write_time(gone), .bytes = at->file_size(gone), .path = at->path()};
    if (!gone) entries.push_back(std::move(e));
  }
  return entries;
}

}  // namespace

BlobCache::Content BlobCache::content_of(const std::string& folder) {
  Content content;
  for (const Entry& e : entries_in(folder)) {
    if (e.path.extension() != kExtension) continue;
    ++content.entries;
    content.bytes += e.bytes;
  }
  return content;
}

Status BlobCache::clear(const std::string& folder) {
  for (const Entry& e : entries_in(folder)) {
    std::error_code error;
    fs::remove(e.path, error);
    if (error)
      return io_error(fmt::format("cannot remove {}: {}", e.path.string(), error.message()));
  }
  return {};
}

std::unique_ptr<BlobCache> BlobCache::open(const std::string& folder, std::string_view maker,
                                           uint64_t limit) {
  if (!PrivateFolder::open(folder).ok()) return nullptr;
  return std::unique_ptr<BlobCache>(new BlobCache(folder, maker, limit));
}

BlobCache::~BlobCache() {
  if (kept_ > 0) make_room();
}

Hash128 BlobCache::name_of(Bytes key) const {
  Hasher h;
  h.add(maker_);
  h.add(text_of(key));
  return h.hash();
}

std::string BlobCache::path_of(const Hash128& name) const {
  return (fs::path(folder_) / fmt::format("{:016x}{:016x}{}", name.a, name.b, kExtension)).string();
}

std::optional<std::vector<std::byte>> BlobCache::find(Bytes key) {
  const Hash128 name = name_of(key);
  const std::string path = path_of(name);
  std::optional<std::vector<std::byte>> bytes = read_file(path);
  if (!bytes) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes->data(), sizeof(header));
  const Bytes value = Bytes(*bytes).subspan(sizeof(header));
  if (header.magic != Header().magic || header.name != name || header.size != value.size() ||
      header.checksum != checksum_of(name, value)) {
    return std::nullopt;
  }
  note_use(path);
  ++found_;
  bytes->erase(bytes->begin(), bytes->begin() + sizeof(header));
  return bytes;
}

void BlobCache::keep(Bytes key, Bytes value) {
  if (full_ || value.empty() || value.size() > kLargest - sizeof(Header)) return;
  Header header;
  header.name = name_of(key);
  header.size = value.size();
  header.checksum = checksum_of(header.name, value);
  const auto write = [&]() -> Status {
    PTERYX_ASSIGN(OutputFile file, OutputFile::create(path_of(header.name)));
    PTERYX_TRY(file.write(std::as_bytes(std::span(&header, 1))));
    PTERYX_TRY(file.write(value));
    return file.commit();
  };
  if (write().ok()) {
    ++kept_;
  } else {
    full_ = true;
  }
}

// Down to three quarters, so that not every process has to. Another may do the same: what is gone
// already is gone.
void BlobCache::make_room() const {
  std::vector<Entry> entries = entries_in(folder_);
  uint64_t sum = 0;
  std::error_code error;
  std::erase_if(entries, [&](const Entry& e) {
    const bool partial = e.path.extension() == kPartial;
    if (partial && FileClock::now() - e.used > kPartialAge) fs::remove(e.path, error);
    if (!partial) sum += e.bytes;
    return partial;
  });
  if (sum <= limit_) return;
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& e : entries) {
    if (sum <= limit_ / 4 * 3) break;
    fs::remove(e.path, error);
    sum -= e.bytes;
  }
}

size_t BlobCache::load(size_t key_size, const uint8_t* key, size_t value_size, uint8_t* value,
                       void* cache, void* /*unused*/) {
  if (key_size > kLargest) return 0;
  auto& c = *static_cast<BlobCache*>(cache);
  const Bytes wanted = std::as_bytes(std::span(key, key_size));
  const Hash128 name = c.name_of(wanted);
  const std::lock_guard lock(c.mutex_);
  if (value == nullptr || c.asked_ != name) {
    c.asked_ = name;
    c.answer_ = c.find(wanted).value_or(std::vector<std::byte>());
  }
  const size_t size = c.answer_.size();
  if (value == nullptr) return size;
  c.asked_ = {};
  const std::vector<std::byte> answer = std::move(c.answer_);
  c.answer_ = {};
  if (size == 0 || size > value_size) return 0;
  std::memcpy(value, answer.data(), size);
  return size;
}

void BlobCache::store(size_t key_size, const uint8_t* key, size_t value_size, const uint8_t* value,
                      void* cache, void* /*unused*/) {
  if (key_size > kLargest) return;
  static_cast<BlobCache*>(cache)->keep(std::as_bytes(std::span(key, key_size)),
                                       std::as_bytes(std::span(value, value_size)));
}

}  // namespace pteryx::gpu::native
