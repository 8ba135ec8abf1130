// What reads as it goes (the header, vectors) is started over until its bytes are there; the rows
// of matrices, which are nearly all of a file, pass by once for each look at them.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/conversion.h"

#include <fmt/format.h>

#include "pteryx/convert/gguf.h"
#include "pteryx/convert/replayed_source.h"
#include "pteryx/convert/write_model.h"
#include "pteryx/llm/tokenizer/embedded.h"

namespace pteryx::convert {
namespace {

// Of the whole, by how long things take: choosing looks at most matrices once, writing at all.
constexpr double kChooseShare = 0.4;

}  // namespace

Conversion::Conversion(SourcePtr gguf, ConvertOptions options, ProgramOutput& output)
    : source_(std::make_shared<ReplayedSource>(std::move(gguf))),
      options_(std::move(options)),
      output_(output) {}

Conversion::~Conversion() = default;

Result<bool> Conversion::advance() {
  switch (stage_) {
    case Stage::kOpen: return open();
    case Stage::kLoad: return load();
    case Stage::kChoose: return choose();
    case Stage::kWrite: return write();
    case Stage::kDone: break;
  }
  return true;
}

double Conversion::fraction() const {
  switch (stage_) {
    case Stage::kOpen:
    case Stage::kLoad: return 0;
    case Stage::kChoose:
      return kChooseShare * static_cast<double>(decided_elems_) / static_cast<double>(elems_);
    case Stage::kWrite:
      return kChooseShare + (1 - kChooseShare) * static_cast<double>(writer_->written()) /
                                static_cast<double>(writer_->data_bytes());
    case Stage::kDone: break;
  }
  return 1;
}

uint64_t Conversion::file_bytes() const { return writer_ == nullptr ? 0 : writer_->file_bytes(); }

Result<Model> Conversion::read_model() const {
  PTERYX_ASSIGN(GgufFile file, GgufFile::parse(source_));
  if (file.split().parts > 1) {
    return unsupported(fmt::format("part {} of {} of a split model: join the parts first",
                                   file.split().part + 1, file.split().parts));
  }
  std::vector<GgufFile> parts;
  parts.push_back(std::move(file));
  return model_from_gguf(std::move(parts), TokenizerFrom::kSource);
}

Result<bool> Conversion::open() {
  PTERYX_ASSIGN(const bool there, source_->fetch());
  if (!there) return false;
  PTERYX_TRY(check_options(options_));
  auto model = read_model();
  if (!model.ok()) {
    if (source_->lacks_bytes()) return false;
    return std::move(model).status().during("reading " + source_->name());
  }
  model_ = std::move(model).value();
  source_->forget();  // a header is large beside what follows
  const auto read = [](Bytes tokenizer, std::string_view /*kind*/) {
    return llm::read_gguf_tokenizer(tokenizer);
  };
  PTERYX_TRY(check_texts(*model_, read, source_->name(), source_->name()));
  warnings_ = std::move(model_->warnings);
  PTERYX_ASSIGN(decoder_options_, decoder_options(model_->shape, options_));
  stage_ = Stage::kLoad;
  return false;
}

Result<bool> Conversion::load() {
  PTERYX_ASSIGN(const bool there, source_->fetch());
  if (!there) return false;
  auto loaded = load_decoder(*model_, options_);
  if (!loaded.ok()) {
    if (source_->lacks_bytes()) return false;
    return std::move(loaded).status();
  }
  loaded_ = std::move(loaded).value();
  source_->pass_through();
  for (const auto& u : loaded_->undecided) elems_ += u->elems();
  stage_ = Stage::kChoose;
  return false;
}

Result<bool> Conversion::choose() {
  if (next_ < loaded_->undecided.size()) {
    PTERYX_ASSIGN(const bool done, loaded_->undecided[next_]->advance());
    if (done) decided_elems_ += loaded_->undecided[next_++]->elems();
    return false;
  }
  ProgramSpec spec = decoder_program(loaded_->decoder, decoder_options_);
  spec.attachments = std::move(model_->texts).attachments();
  model_.reset();
  writer_ = std::make_unique<ProgramWriter>(std::move(spec), output_);
  pieces_ = writer_->pieces();
  next_ = 0;
  stage_ = Stage::kWrite;
  return false;
}

Result<bool> Conversion::write() {
  if (next_ < pieces_.size()) {
    PTERYX_ASSIGN(const bool done, pieces_[next_]->advance());
    if (done) ++next_;
    return false;
  }
  PTERYX_TRY(writer_->finish());
  stage_ = Stage::kDone;
  return true;
}

}  // namespace pteryx::convert
