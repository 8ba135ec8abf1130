// chat MODEL.pte: a conversation with a language model, a line at a time.
// SPDX-License-Identifier: BSD-3-Clause
#include <iostream>
#include <string>
#include <vector>

#include <pteryx/llm.h>

namespace llm = pteryx::llm;

namespace {

int fail(const pteryx::Status& status) {
  std::cerr << status.message() << "\n";
  return 1;
}

// Prints the answer as it comes, and gives it back.
pteryx::Result<std::string> answer(llm::Generator& generator,
                                   const std::vector<pteryx::TokenId>& prompt) {
  llm::GenerateOptions options;
  options.sampling = {.temperature = 0.7F, .top_p = 0.9F};
  options.max_new_tokens = 200;
  PTERYX_TRY(generator.begin(prompt, options));
  std::string text;
  while (!generator.done()) {
    PTERYX_ASSIGN(const llm::Piece piece, generator.step());
    std::cout << piece.text << std::flush;
    text += piece.text;
  }
  std::cout << "\n";
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: chat MODEL.pte\n", 2;
  const auto model = llm::Model::load(argv[1]);
  if (!model.ok()) return fail(model.status());
  const auto chat = llm::Chat::of(**model);
  if (!chat.ok()) return fail(chat.status());
  const auto sequence = llm::Sequence::create(**model);
  if (!sequence.ok()) return fail(sequence.status());
  llm::Generator generator(**sequence);

  std::vector<llm::Message> messages;
  for (std::string line; std::cout << "> " << std::flush && std::getline(std::cin, line);) {
    messages.push_back({.role = "user", .content = line});
    const auto prompt = chat->prompt(messages);
    if (!prompt.ok()) return fail(prompt.status());
    auto text = answer(generator, *prompt);
    if (!text.ok()) return fail(text.status());
    messages.push_back({.role = "assistant", .content = std::move(text).value()});
  }
  std::cout << "\n";
  return 0;
}
