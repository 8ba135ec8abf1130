// Several conversations on one model. SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/generate/testing/models.h"
#include "pteryx/gpu/device.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/llm.h"

namespace pteryx::llm {
namespace {

using Ids = std::vector<TokenId>;

std::unique_ptr<Model> load(const std::string& name,
                            const std::shared_ptr<gpu::Device>& on = gpu::shared_device()) {
  ModelOptions options;
  options.load.device = on;
  return load_fixture(name, options);
}

GenerateOptions options(uint64_t seed, int64_t count) {
  GenerateOptions o;
  o.sampling = {.temperature = 0.9F, .repetition = 1.2F, .top_k = 50, .seed = seed};
  o.max_new_tokens = count;
  o.ignore_end = true;
  return o;
}

Ids drawn(const Generator& g, size_t prompt) {
  return {g.ids().begin() + static_cast<ptrdiff_t>(prompt), g.ids().end()};
}

Ids run(Generator& g, const Ids& prompt, const GenerateOptions& o) {
  EXPECT_TRUE(g.begin(prompt, o).ok());
  while (!g.done()) {
    const auto piece = g.step();
    EXPECT_TRUE(piece.ok()) << piece.status().message();
    if (!piece.ok()) break;
  }
  return drawn(g, prompt.size());
}

Ids run(Sequence& s, const Ids& prompt, const GenerateOptions& o) {
  Generator g(s);
  return run(g, prompt, o);
}

const Ids kOne = {1, 2, 3, 4, 5};
const Ids kTwo = {40, 30, 20, 10, 7, 6, 5};
const Ids kThree = {8};

// A piece of each in turn, with tokens of all of them under way: each gives what it gives alone.
TEST(Sequence, InterleavedOnesGiveWhatEachGivesAlone) {
  for (const char* name : {"qwen3_like_q4", "qwen2_like_fp32"}) {
    for (const auto& on : gpu::gpu_and_cpu()) {
      SCOPED_TRACE(std::string(name) + " on " + on->caps().adapter);
      const int64_t count = on->caps().cpu ? 6 : 20;
      const auto m = load(name, on);
      const std::vector<Ids> prompts = {kOne, kTwo, kThree};
      std::vector<Ids> want;
      want.reserve(prompts.size());
      for (size_t i = 0; i < prompts.size(); ++i)
        want.push_back(run(*sequence(*m), prompts[i], options(i + 1, count)));
      std::vector<std::unique_ptr<Sequence>> sequences;
      std::vector<std::unique_ptr<Generator>> generators;
      for (size_t i = 0; i < prompts.size(); ++i) {
        sequences.push_back(sequence(*m));
        generators.push_back(std::make_unique<Generator>(*sequences.back()));
        ASSERT_TRUE(generators[i]->begin(prompts[i], options(i + 1, count)).ok());
      }
      for (bool more = true; more;) {
        more = false;
        for (const auto& g : generators) {
          if (g->done()) continue;
          more = true;
          const auto piece = g->step();
          ASSERT_TRUE(piece.ok()) << piece.status().message();
        }
      }
      for (size_t i = 0; i < prompts.size(); ++i)
        EXPECT_EQ(drawn(*generators[i], prompts[i].size()), want[i]) << i;
    }
  }
}

TEST(Sequence, AForkGoesItsOwnWay) {
  const auto m = load("qwen3_like_q4");
  const auto one = sequence(*m);
  const Ids text = run(*one, kOne, options(1, 10));
  Ids so_far = kOne;
  so_far.insert(so_far.end(), text.begin(), text.end());
  const auto fork = one->fork();
  ASSERT_TRUE(fork.ok()) << fork.status().message();
  EXPECT_EQ((*fork)->ids(), one->ids());
  Ids question = so_far;
  question.push_back(17);
  Ids other = so_far;
  other.push_back(99);
  Generator a(*one);
  Generator b(**fork);
  const Ids first = run(a, question, options(3, 8));
  const Ids second = run(b, other, options(4, 8));
  EXPECT_GT(b.timings().cached_tokens, 10) << "the caches came along";
  EXPECT_EQ(first, run(*sequence(*m), question, options(3, 8)));
  EXPECT_EQ(second, run(*sequence(*m), other, options(4, 8)));
  EXPECT_EQ(run(*one, question, options(3, 8)), first) << "as if there were no fork";
}

TEST(Sequence, TrimmedItReadsTheRestAgain) {
  const auto m = load("qwen3_like_q4");
  const auto s = sequence(*m);
  Generator g(*s);
  const Ids want = run(g, kTwo, options(1, 6));
  s->trim(3);
  EXPECT_EQ(s->ids(), Ids(kTwo.begin(), kTwo.begin() + 3));
  EXPECT_EQ(run(g, kTwo, options(1, 6)), want);
  EXPECT_EQ(g.timings().cached_tokens, 3);
  s->trim(1000);
  EXPECT_GE(s->ids().size(), kTwo.size());
}

TEST(Sequence, SavedAndRestoredItGoesOn) {
  const auto m = load("qwen3_like_q4");
  const auto s = sequence(*m);
  const Ids text = run(*s, kOne, options(1, 10));
  Ids question = kOne;
  question.insert(question.end(), text.begin(), text.end());
  question.push_back(17);
  const auto saved = s->save();
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  const Ids want = run(*s, question, options(3, 8));

  const auto again = load("qwen3_like_q4");
  const auto restored = sequence(*again);
  ASSERT_TRUE(restored->restore(*saved).ok());
  Generator g(*restored);
  EXPECT_EQ(run(g, question, options(3, 8)), want);
  EXPECT_GT(g.timings().cached_tokens, 10);

  for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, saved->size() - 1}) {
    const Status refused = restored->restore(Bytes(*saved).first(size));
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << size;
  }
  const auto other = load("qwen2_like_fp32");
  EXPECT_EQ(sequence(*other)->restore(*saved).code(), Code::kInvalidArgument);
  std::vector<std::byte> damaged = *saved;
  damaged[16] = damaged[19] = std::byte{0xFF};  // a token
  EXPECT_EQ(restored->restore(damaged).code(), Code::kInvalidArgument);
  EXPECT_EQ(run(g, question, options(3, 8)), want) << "refused, nothing has changed";
}

// The first takes the caches that are there; each further one costs what caches cost, and gives it
// back.
TEST(Sequence, CachesAreMadeWhenThereAreSeveral) {
  const auto m = load("qwen3_like_q4");
  const auto bytes = [] { return gpu::shared_device()->counters().buffer_bytes_alive; };
  const auto one = sequence(*m);
  const uint64_t before = bytes();
  run(*one, kOne, options(1, 2));
  const uint64_t with_one = bytes();
  {
    const auto two = sequence(*m);
    run(*two, kOne, options(1, 2));
    const uint64_t caches = m->session().methods().front().gpu_bytes;
    EXPECT_GT(bytes(), with_one);
    EXPECT_LT(bytes() - with_one, caches);
  }
  EXPECT_EQ(bytes(), with_one);
  EXPECT_GE(with_one, before);
}

TEST(Chat, NeedsATokenizer) {
  const auto m = load("qwen3_like_q4");
  const auto chat = Chat::of(*m);
  ASSERT_EQ(chat.status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(chat.status().message().ends_with("qwen3_like_q4.pte has no tokenizer"))
      << chat.status().message();
}

}  // namespace
}  // namespace pteryx::llm
