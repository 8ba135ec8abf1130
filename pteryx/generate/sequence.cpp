// Conversations on a model. SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "pteryx/llm.h"
#include "pteryx/session/exec/state.h"
#include "pteryx/session/steps.h"

namespace pteryx::llm {
namespace {

// A saved sequence: this, the number of tokens, the tokens, what the caches hold.
struct Head {
  char mark[8] = {'p', 't', 'e', 'r', 'y', 'x', 's', '1'};
  uint64_t count = 0;
};

}  // namespace

Sequence::Sequence(Model& model) : model_(&model) {}

Result<std::unique_ptr<Sequence>> Sequence::create(Model& model) {
  std::unique_ptr<Sequence> s(new Sequence(model));
  s->borrows_caches_ = !model.lends_caches_;
  const auto caches = s->borrows_caches_ ? Steps::Caches::kSession : Steps::Caches::kOwn;
  PTERYX_ASSIGN(s->steps_, Steps::open(model.session_, model.depth_, caches));
  model.lends_caches_ = true;
  return s;
}

Sequence::~Sequence() {
  if (borrows_caches_ && steps_ != nullptr) model_->lends_caches_ = false;
}

void Sequence::trim(size_t count) {
  if (count < ids_.size()) ids_.resize(count);
}

Result<std::unique_ptr<Sequence>> Sequence::fork() const {
  PTERYX_ASSIGN(std::unique_ptr<Sequence> other, create(*model_));
  PTERYX_TRY(other->steps_->state().copy(steps_->state()));
  other->ids_ = ids_;
  return other;
}

Status Sequence::restore(Bytes bytes) {
  const auto refuse = [&](std::string_view why) {
    return invalid_argument(
        fmt::format("this is no saved sequence of {}: {}", model_->name(), why));
  };
  Head head;
  const Head expected;
  if (bytes.size() < sizeof(head)) return refuse(fmt::format("{} bytes", bytes.size()));
  std::memcpy(&head, bytes.data(), sizeof(head));
  bytes = bytes.subspan(sizeof(head));
  if (std::memcmp(head.mark, expected.mark, sizeof(head.mark)) != 0)
    return refuse("it begins otherwise");
  if (head.count > static_cast<uint64_t>(model_->info().context) ||
      bytes.size() < head.count * sizeof(TokenId)) {
    return refuse(fmt::format("{} tokens in {} bytes, where the context has {}", head.count,
                              bytes.size(), model_->info().context));
  }
  std::vector<TokenId> ids(head.count);
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(TokenId));
  PTERYX_TRY(model_->check(ids));
  PTERYX_TRY(steps_->state().restore(bytes.subspan(ids.size() * sizeof(TokenId))));
  ids_ = std::move(ids);
  return {};
}

struct SequenceBytes::Impl {
  const Sequence& sequence;
  exec::StateBytes state;
};

SequenceBytes::SequenceBytes(const Sequence& sequence)
    : impl_(new Impl{sequence, {sequence.steps().state(), sequence.steps().shared_device()}}) {}
SequenceBytes::~SequenceBytes() = default;

Result<bool> SequenceBytes::advance() {
  PTERYX_ASSIGN(const bool there, impl_->sequence.steps().state().advance());
  if (!there) return false;
  return impl_->state.advance();
}

std::vector<std::byte> SequenceBytes::take() {
  const std::vector<TokenId>& ids = impl_->sequence.ids();
  const std::vector<std::byte> state = impl_->state.take();
  Head head;
  head.count = ids.size();
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(head) + ids.size() * sizeof(TokenId) + state.size());
  const auto append = [&](Bytes part) { bytes.insert(bytes.end(), part.begin(), part.end()); };
  append(std::as_bytes(std::span(&head, 1)));
  append(std::as_bytes(std::span(ids)));
  append(state);
  return bytes;
}

}  // namespace pteryx::llm
