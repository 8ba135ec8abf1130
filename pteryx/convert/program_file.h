// From the path of a model to a program: what is no program is converted, once.
//
//   auto program = convert::ProgramFile::find("model.gguf", {.folder = "/var/cache/server"});
//   if (!program.ok()) return fail(program.status().message());
//   if (const Status s = program->make(); !s.ok()) return fail(s.message());
//   auto session = Session::load(program->path());
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/private_folder.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/cache.h"

namespace pteryx::convert {

// As LoadOptions::progress: what is being done and how far it is (total 0: not known); false
// cancels it (kCancelled).
using NamedProgress = std::function<bool(std::string_view what, uint64_t done, uint64_t total)>;
// What it says while somebody else converts into the same cache; else it is "converting PATH".
inline constexpr std::string_view kWaiting = "waiting for another conversion to finish";

// A program is itself. A GGUF file, a Hugging Face folder or a llama2.c checkpoint is one that the
// cache has, or that is to be made.
class ProgramFile {
 public:
  // Looks what there is, which takes no time to speak of. A cache that cannot be used is no error:
  // a note says so, and nothing is kept. Errors: kIo, kInvalidProgram where the path is neither a
  // program nor a source, those of source_files.
  static Result<ProgramFile> find(const std::string& path, const CacheOptions& cache);
  ProgramFile(ProgramFile&& other) noexcept;
  ProgramFile& operator=(ProgramFile&&) = delete;
  ~ProgramFile();  // removes a program that is not kept

  bool ready() const { return ready_; }        // path() is there
  bool was_kept() const { return was_kept_; }  // ... by an earlier conversion: repeat() may help
  bool keeps() const { return cache_.has_value(); }  // what make() makes is found the next time
  const std::string& path() const { return program_; }

  // Converts, unless it is ready. Waits while somebody else converts into the same cache, and takes
  // what they made if it is the same. Errors: kIo, kCancelled, those of convert(); no file is
  // left behind then, and it may be called again.
  Status make(const NamedProgress& progress = nullptr);
  // Makes anew what was kept and, as loading it has shown, cannot be used. Errors: kInvalidArgument
  // where it was not kept, those of make().
  Status repeat(const NamedProgress& progress = nullptr);

  // What a user may want to know, each told once; `progress` may ask as well.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  ProgramFile() = default;
  Result<PrivateFolder> lock(const NamedProgress& progress) const;
  Status write(const NamedProgress& progress);

  std::string source_;
  std::string program_;
  std::optional<Cache> cache_;
  std::string scratch_;    // where a temporary folder may be made
  std::string temporary_;  // such a folder
  uint32_t threads_ = 0;   // of a conversion
  bool ready_ = false;
  bool was_kept_ = false;
  std::vector<std::string> notes_;
};

}  // namespace pteryx::convert
