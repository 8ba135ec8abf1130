// What waits. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/blocking.h"

#include "pteryx/generate/generator.h"
#include "pteryx/generate/model.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx::generate {

Result<std::unique_ptr<Model>> Model::load(const std::string& path, const ModelOptions& options) {
  ModelOptions opened = options;
  PTERYX_ASSIGN(const Files files, open_files(path, opened.load));
  ModelLoad load(files.program, files.data, opened);
  PTERYX_TRY(gpu::finish(*opened.load.device, load));
  return load.take();
}

Result<Piece> Generator::step() {
  PTERYX_TRY(gpu::finish(model_.steps().device(), *this));
  return piece();
}

}  // namespace pteryx::generate
