// Conversions of GGUF files into programs, which the script around the module writes down.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <string>

#include "../module/result.h"

#include "pteryx/base/web/host.h"
#include "pteryx/convert/conversion.h"

extern "C" {
// Takes a copy of bytes that belong at a place of the program.
PTERYX_IMPORT(output_write)
void pteryx_output_write(uint32_t output, double offset, const void* data, size_t size);
}

using namespace pteryx;       // NOLINT: all here is exports
using namespace pteryx::web;  // NOLINT

namespace {

// Keeping up with what is written, and what goes wrong with it, is the script's business.
class HostOutput final : public convert::ProgramOutput {
 public:
  explicit HostOutput(uint32_t id) : id_(id) {}
  Status write_at(uint64_t offset, Bytes bytes) override {
    if (!bytes.empty()) {
      pteryx_output_write(id_, static_cast<double>(offset), bytes.data(), bytes.size());
    }
    return {};
  }

 private:
  uint32_t id_;
};

struct Job {
  Job(SourcePtr gguf, uint32_t output_id)
      : output(output_id), conversion(std::move(gguf), {}, output) {}
  HostOutput output;
  convert::Conversion conversion;
};

Table<Job> jobs;

}  // namespace

PTERYX_EXPORT(converter_version) int32_t export_converter_version() {
  return convert::kConverterVersion;
}

// Converts a source that the script has under a number.
PTERYX_EXPORT(convert_begin)
int32_t export_convert_begin(uint32_t output, uint32_t source, double source_bytes,
                             const char* name, size_t size) {
  auto gguf = std::make_shared<HostSource>(source, std::string(name, size),
                                           static_cast<uint64_t>(source_bytes));
  return give(jobs.add(std::make_unique<Job>(std::move(gguf), output)));
}

// Once it is done, result() is {"bytes", "warnings"}.
PTERYX_EXPORT(convert_advance) int32_t export_convert_advance(Handle handle) {
  Job* const job = jobs.find(handle);
  if (job == nullptr) return fail_handle("conversion");
  const Result<bool> done = job->conversion.advance();
  if (!done.ok()) return fail(done.status());
  if (!*done) return kLater;
  Json j;
  j.set("bytes", job->conversion.file_bytes());
  j.set("warnings", Json::list(job->conversion.warnings()));
  return give(j);
}

// Whether the source's header was accepted, so that all of it will be read.
PTERYX_EXPORT(convert_is_open) int32_t export_convert_is_open(Handle handle) {
  const Job* const job = jobs.find(handle);
  return job != nullptr && job->conversion.is_open() ? 1 : 0;
}

// How far it is, from 0 to 1.
PTERYX_EXPORT(convert_fraction) double export_convert_fraction(Handle handle) {
  const Job* const job = jobs.find(handle);
  return job == nullptr ? 0 : job->conversion.fraction();
}

// Bytes of the program; 0 until that is known.
PTERYX_EXPORT(convert_bytes) double export_convert_bytes(Handle handle) {
  const Job* const job = jobs.find(handle);
  return job == nullptr ? 0 : static_cast<double>(job->conversion.file_bytes());
}

PTERYX_EXPORT(convert_free) void export_convert_free(Handle handle) { jobs.erase(handle); }
