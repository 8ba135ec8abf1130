// What waits. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/blocking.h"

#include "pteryx/llm.h"
#include "pteryx/session/native/blocking.h"
#include "pteryx/session/steps.h"

namespace pteryx::llm {

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const ModelOptions& options) {
  ModelOptions opened = options;
  PTERYX_ASSIGN(const Files files, open_files(path, opened.load));
  ModelLoad load(files.program, files.data, opened);
  PTERYX_TRY(gpu::finish(*opened.load.device, load));
  return load.take();
}

Result<Piece> Generator::step() {
  PTERYX_TRY(gpu::finish(sequence_.steps().device(), *this));
  return piece();
}

Result<std::vector<std::byte>> Sequence::save() const {
  SequenceBytes job(*this);
  PTERYX_TRY(gpu::finish(steps_->device(), job));
  return job.take();
}

}  // namespace pteryx::llm
