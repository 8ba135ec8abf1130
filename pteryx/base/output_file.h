// A file that appears under its name only when it is complete.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

// Where the system can, the file has no name until commit(), so that nothing is left behind even
// when the process is killed; elsewhere it is "PATH.xxxxxxxx.partial" until then.
class OutputFile {
 public:
  // A link is followed; anything but a regular file in the place of `path` is refused.
  // Errors: kIo, here and below.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) noexcept = delete;
  ~OutputFile();  // the file is gone unless commit() succeeded

  Status seek(uint64_t offset);  // past the end: what lies between is zeros
  Status write(Bytes bytes);
  Status write(std::string_view text);
  // At a place of its own, whatever seek() said; from several threads at once.
  Status write_at(uint64_t offset, Bytes bytes);
  // Gives the file its name, in place of one that was there.
  Status commit();

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  OutputFile(std::string path, std::string temporary, std::FILE* file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  Status failed(int error) const { return cannot_write(path_, error); }
  static Status cannot_write(const std::string& path, int error);

  std::string path_;
  std::string temporary_;  // empty while it has no name, and once it has its own
  std::unique_ptr<std::FILE, Close> file_;
};

// The whole of a file at once: all of it is there, or the file is as it was.
Status write_file(const std::string& path, std::string_view text);

}  // namespace pteryx
