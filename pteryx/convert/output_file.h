// A file that appears under its name only when it is complete. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

class OutputFile {
 public:
  // Opens a file beside `path`. Errors: kIo, here and below.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) noexcept = delete;
  ~OutputFile();  // removes it unless commit() succeeded

  Status seek(uint64_t offset);  // past the end: what lies between is zeros
  Status write(Bytes bytes);
  // Gives the file its name, in place of one that was there.
  Status commit();

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  OutputFile(std::string path, std::string temporary, std::FILE* file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}
  Status failed(std::string_view what) const;

  std::string path_;
  std::string temporary_;  // empty once it has its name
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace pteryx::convert
