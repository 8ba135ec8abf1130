// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/generate/testing/models.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/llm.h"
#include "pteryx/program/testing/damaged_program.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx::llm {
namespace {

using Ids = std::vector<TokenId>;

// A token for every byte, spelled as byte-level BPE spells them, and <|endoftext|>.
std::string byte_tokenizer() {
  std::string vocabulary;
  int other = 0;
  for (int b = 0; b < 256; ++b) {
    const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    vocabulary += fmt::format("\"\\u{:04x}\": {}, ", plain ? b : 256 + other++, b);
  }
  return fmt::format(
      R"({{"added_tokens": [{{"id": 256, "content": "<|endoftext|>", "special": true, "single_word": false,
           "lstrip": false, "rstrip": false, "normalized": false}}],
          "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}},
          "decoder": {{"type": "ByteLevel"}},
          "model": {{"type": "BPE", "vocab": {{{}"<|endoftext|>": 256}}, "merges": []}}}})",
      vocabulary);
}

SourcePtr open(const std::string& path) {
  auto source = open_source(path);
  EXPECT_TRUE(source.ok()) << source.status().message();
  return source.ok() ? std::move(source).value() : nullptr;
}

std::unique_ptr<Model> load(const std::string& tokenizer = "") {
  ModelOptions options;
  if (!tokenizer.empty()) options.tokenizer = open(tokenizer);
  return load_fixture("qwen3_like_q4", options);
}

// With text.
class WithTokenizer : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("pteryx_tokenizer_{}.json", static_cast<const void*>(this));
    std::ofstream(path_) << byte_tokenizer();
    model_ = load(path_.string());
    ASSERT_NE(model_, nullptr);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::filesystem::path path_;
  std::unique_ptr<Model> model_;
};

struct Outcome {
  Ids ids;  // drawn
  std::string text;
  std::vector<std::string> pieces;
  std::vector<double> log_probabilities;
  StopReason reason = StopReason::kNone;
};
Outcome run(Generator& g, const Ids& prompt, const GenerateOptions& options) {
  const Status s = g.begin(prompt, options);
  EXPECT_TRUE(s.ok()) << s.message();
  Outcome o;
  while (s.ok() && !g.done()) {
    auto piece = g.step();
    EXPECT_TRUE(piece.ok()) << piece.status().message();
    if (!piece.ok()) break;
    o.text += piece->text;
    if (!piece->text.empty()) o.pieces.push_back(piece->text);
    if (piece->log_probability) o.log_probabilities.push_back(*piece->log_probability);
  }
  o.ids.assign(g.ids().begin() + static_cast<ptrdiff_t>(prompt.size()), g.ids().end());
  o.reason = g.reason();
  return o;
}

const Ids kPrompt = {1, 2, 3, 4, 5};

TEST(Generator, StopsAfterTheTokensAskedFor) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const Outcome o = run(g, kPrompt, {.max_new_tokens = 7});
  EXPECT_EQ(o.ids.size(), 7U);
  EXPECT_EQ(o.reason, StopReason::kLength);
  EXPECT_EQ(g.timings().prompt_tokens, 5);
  EXPECT_EQ(g.timings().new_tokens, 7);
  EXPECT_EQ(run(g, kPrompt, {.max_new_tokens = 0}).ids.size(), 0U);
}

TEST(Generator, AResponsiveOneReadsThePromptInPieces) {
  const auto m = load();
  Ids prompt;
  const int64_t size = m->info().chunk + 40;
  ASSERT_GT(m->info().context, size + 8);
  for (int64_t i = 0; i < size; ++i) prompt.push_back(static_cast<TokenId>(i * 7 % 300));
  const auto whole_sequence = sequence(*m);
  Generator whole(*whole_sequence);
  const Outcome wanted = run(whole, prompt, {.max_new_tokens = 6});
  whole_sequence->trim(0);

  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const auto read_in_pieces = [&] {
    std::vector<int64_t> read;
    EXPECT_TRUE(g.begin(prompt, {.max_new_tokens = 6, .responsive = true}).ok());
    while (!g.done()) {
      const auto piece = g.step();
      if (!piece.ok()) ADD_FAILURE() << piece.status().message();
      if (!piece.ok()) break;
      if (!piece->token) read.push_back(g.prompt_read());
    }
    EXPECT_EQ(Ids(g.ids().begin() + size, g.ids().end()), wanted.ids);
    return read;
  };
  const std::vector<int64_t> read = read_in_pieces();
  ASSERT_GE(read.size(), 2U);  // the caller could have cancelled in between
  EXPECT_EQ(read[0], 32);
  for (size_t i = 1; i < read.size(); ++i) EXPECT_GT(read[i], read[i - 1]);
  // The next text begins with what was learnt of the speed.
  const int64_t learnt = read.back() - read[read.size() - 2];
  g_sequence->trim(0);
  EXPECT_GE(read_in_pieces().at(0) * 2, learnt);
}

TEST(Generator, StopsAtTheEndOfTheContext) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const Outcome o = run(g, kPrompt, {.ignore_end = true});
  EXPECT_EQ(o.reason, StopReason::kContext);
  // The last token has no position of its own.
  EXPECT_EQ(static_cast<int64_t>(kPrompt.size() + o.ids.size()), m->info().context + 1);
}

TEST(Generator, APromptOfManyChunksGivesWhatOneGives) {
  const auto m = load();
  Ids prompt;
  for (TokenId i = 0; i < m->info().context; ++i) prompt.push_back(i % 250);
  ASSERT_GT(m->info().context, m->info().chunk);
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const Outcome o = run(g, prompt, {.max_new_tokens = 3, .ignore_end = true});
  EXPECT_EQ(o.ids.size(), 1U);
  EXPECT_EQ(o.reason, StopReason::kContext);
  // One token at a time.
  auto drawn = blocking::run(g_sequence->steps(), std::span(prompt).first(1), 0);
  for (size_t i = 1; i < prompt.size(); ++i)
    drawn = blocking::run(g_sequence->steps(), std::span(prompt).subspan(i, 1),
                          static_cast<int64_t>(i));
  ASSERT_TRUE(drawn.ok());
  EXPECT_EQ(drawn->token, o.ids[0]);
}

TEST(Generator, GoesOnFromWhatTheCachesHold) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const Outcome first = run(g, kPrompt, {.max_new_tokens = 9, .ignore_end = true});
  Ids turn = kPrompt;
  turn.insert(turn.end(), first.ids.begin(), first.ids.end());
  turn.insert(turn.end(), {11, 12, 13});
  const Outcome second = run(g, turn, {.max_new_tokens = 6, .ignore_end = true});
  EXPECT_GE(g.timings().cached_tokens, 5 + 8);
  // A text that parts from the last one after four tokens.
  Ids other(turn.begin(), turn.begin() + 4);
  other.push_back(99);
  const Outcome third = run(g, other, {.max_new_tokens = 6, .ignore_end = true});
  EXPECT_EQ(g.timings().cached_tokens, 4);

  const auto fresh = load();
  const auto h_sequence = sequence(*fresh);
  Generator h(*h_sequence);
  EXPECT_EQ(run(h, turn, {.max_new_tokens = 6, .ignore_end = true}).ids, second.ids);
  h_sequence->trim(0);
  EXPECT_EQ(run(h, other, {.max_new_tokens = 6, .ignore_end = true}).ids, third.ids);
  EXPECT_EQ(h.timings().cached_tokens, 0);
}

TEST(Generator, StopIdsEndTheText) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const Ids all = run(g, kPrompt, {.max_new_tokens = 12, .ignore_end = true}).ids;
  const auto stop = std::find(all.begin(), all.end(), all[6]);
  const Outcome o =
      run(g, kPrompt, {.max_new_tokens = 12, .stop_ids = {all[6]}, .ignore_end = true});
  EXPECT_EQ(o.reason, StopReason::kStopId);
  EXPECT_EQ(o.ids, Ids(all.begin(), stop));
  // What ran ahead does not show in the next text.
  EXPECT_EQ(run(g, kPrompt, {.max_new_tokens = 12, .ignore_end = true}).ids, all);
}

TEST(Generator, LogProbabilitiesAreThoseOfTheLogits) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  GenerateOptions options{
      .sampling = {.temperature = 1, .seed = 5}, .max_new_tokens = 6, .ignore_end = true};
  const Ids want = run(g, kPrompt, options).ids;
  options.log_probabilities = true;
  const Outcome o = run(g, kPrompt, options);
  EXPECT_EQ(o.ids, want);
  ASSERT_EQ(o.log_probabilities.size(), want.size());
  Ids tokens = kPrompt;
  int64_t position = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto drawn = blocking::run(g_sequence->steps(), tokens, position);
    ASSERT_TRUE(drawn.ok());
    double sum = 0;
    for (const float v : drawn->logits) sum += std::exp(static_cast<double>(v));
    EXPECT_NEAR(o.log_probabilities[i], drawn->logits[static_cast<size_t>(want[i])] - std::log(sum),
                1e-4);
    position += static_cast<int64_t>(tokens.size());
    tokens = {want[i]};
  }
}

TEST(Generator, ShiftForgetsTheOlderHalfAndGoesOn) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const auto count = m->info().context * 2;
  const Outcome o = run(g, kPrompt, {.max_new_tokens = count, .ignore_end = true, .shift = true});
  EXPECT_EQ(o.reason, StopReason::kLength);
  EXPECT_EQ(static_cast<int64_t>(o.ids.size()), count);
}

TEST(Generator, CanBeCancelled) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  ASSERT_TRUE(g.begin(kPrompt, {.ignore_end = true}).ok());
  ASSERT_TRUE(g.step().ok());
  g.cancel();
  EXPECT_EQ(g.reason(), StopReason::kCancelled);
  EXPECT_EQ(g_sequence->steps().under_way(), 0U);
  EXPECT_EQ(g.step().status().code(), Code::kInvalidArgument);
  EXPECT_EQ(run(g, kPrompt, {.max_new_tokens = 2, .ignore_end = true}).ids.size(), 2U);
}

TEST(Generator, LogitsThatAreNotFiniteEndTheText) {
  const program::testing::DamagedProgram damaged(std::string(PTERYX_TEST_DATA) +
                                                 "/fixtures/llm/qwen3_like_q4.pte");
  ModelOptions model_options;
  model_options.load.device = gpu::shared_device();
  const auto m = Model::load(damaged.path(), model_options);
  ASSERT_TRUE(m.ok()) << m.status().message();
  const auto g_sequence = sequence(**m);
  Generator g(*g_sequence);
  for (const bool log_probabilities : {false, true}) {
    for (const float temperature : {0.0F, 1.0F}) {
      ASSERT_TRUE(g.begin(kPrompt, {.sampling = {.temperature = temperature},
                                    .max_new_tokens = 8,
                                    .log_probabilities = log_probabilities})
                      .ok());
      Status s;
      while (!g.done() && s.ok()) {
        auto piece = g.step();
        if (!piece.ok()) s = std::move(piece).status();
      }
      EXPECT_EQ(s.code(), Code::kInvalidProgram);
      EXPECT_TRUE(s.message().starts_with("the model's logits are not finite at position "))
          << s.message();
      EXPECT_TRUE(g.done());
      EXPECT_EQ(g_sequence->steps().under_way(), 0U);
      EXPECT_EQ(g.ids(), kPrompt);
    }
  }
}

TEST(Generator, RefusesPromptsThatCannotBeRead) {
  const auto m = load();
  const auto g_sequence = sequence(*m);
  Generator g(*g_sequence);
  const auto refuses = [&](const Ids& prompt, std::string_view text) {
    const Status s = g.begin(prompt, {});
    EXPECT_EQ(s.code(), Code::kInvalidArgument);
    EXPECT_NE(s.message().find(text), std::string_view::npos) << s.message();
    EXPECT_TRUE(g.done());
  };
  refuses({}, "the prompt has no tokens");
  const auto most = static_cast<size_t>(m->info().context);
  refuses(Ids(most + 1, 1),
          fmt::format("the prompt has {} tokens, the context has room for {}", most + 1, most));
  refuses({1, 300}, "token 1 of the prompt is 300, outside the vocabulary of 300");
  refuses({0xFFFFFFFF}, "token 0 of the prompt is 4294967295");
}

TEST_F(WithTokenizer, PiecesAreWholeCharacters) {
  const auto g_sequence = sequence(*model_);
  Generator g(*g_sequence);
  GenerateOptions options{.sampling = {.temperature = 3}, .max_new_tokens = 80, .ignore_end = true};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    options.sampling.seed = seed;
    const Outcome o = run(g, kPrompt, options);
    for (const int64_t id : o.ids)
      EXPECT_LT(id, 257);  // ids that the tokenizer lacks are not drawn
    for (const std::string& piece : o.pieces) {
      // A character begins every piece, and none is cut at its end.
      EXPECT_NE(static_cast<uint8_t>(piece[0]) & 0xC0U, 0x80U);
      size_t at = piece.size();
      while (at > 0 && (static_cast<uint8_t>(piece[at - 1]) & 0xC0U) == 0x80U) --at;
      if (at == 0) continue;
      const auto lead = static_cast<uint8_t>(piece[at - 1]);
      const size_t need = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
      EXPECT_EQ(piece.size() - at + 1, need) << piece;
    }
  }
}

TEST_F(WithTokenizer, StopTextsAreNotShown) {
  const auto g_sequence = sequence(*model_);
  Generator g(*g_sequence);
  GenerateOptions options{.sampling = {.temperature = 1, .seed = 3, .vocabulary = 127},
                          .max_new_tokens = 40,
                          .ignore_end = true};
  const Outcome all = run(g, kPrompt, options);
  ASSERT_GE(all.text.size(), 20U);
  const std::string stop = all.text.substr(11, 3);
  options.stop = {"never to be found", stop};
  const Outcome o = run(g, kPrompt, options);
  EXPECT_EQ(o.reason, StopReason::kStopText);
  EXPECT_EQ(o.text, all.text.substr(0, all.text.find(stop)));
  for (const std::string& piece : o.pieces) EXPECT_EQ(piece.find(stop), std::string::npos);
  // A beginning of a stop text that does not come true is shown after all.
  options.stop = {all.text.substr(11, 3) + "\x01\x01"};
  EXPECT_EQ(run(g, kPrompt, options).text, all.text);
}

TEST_F(WithTokenizer, TheEndTokenEndsTheText) {
  ASSERT_EQ(model_->info().eos, Ids{256});
  const auto g_sequence = sequence(*model_);
  Generator g(*g_sequence);
  GenerateOptions options{.sampling = {.temperature = 5}, .max_new_tokens = 80};
  for (uint64_t seed = 0; seed < 100; ++seed) {  // until one is drawn
    options.sampling.seed = seed;
    options.ignore_end = true;
    const Ids all = run(g, kPrompt, options).ids;
    const auto end = std::find(all.begin(), all.end(), 256);
    if (end == all.end()) continue;
    options.ignore_end = false;
    const Outcome o = run(g, kPrompt, options);
    EXPECT_EQ(o.reason, StopReason::kEnd);
    EXPECT_EQ(o.ids, Ids(all.begin(), end));
    return;
  }
  FAIL() << "no text of a hundred ended";
}

TEST_F(WithTokenizer, AChatWithoutATemplateIsPlainText) {
  const auto chat = Chat::of(*model_);
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  EXPECT_FALSE(chat->has_template());
  const auto prompt = chat->prompt({{.role = "system", .content = "Be kind."},
                                    {.role = "user", .content = "Hi"},
                                    {.role = "assistant", .content = " Ho"},
                                    {.role = "user", .content = "So?"}});
  ASSERT_TRUE(prompt.ok()) << prompt.status().message();
  const auto text = model_->decode(*prompt);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "Be kind.\nUser: Hi\nAssistant: Ho\nUser: So?\nAssistant:");
}

}  // namespace
}  // namespace pteryx::llm
