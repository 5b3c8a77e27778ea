// SPDX-License-Identifier: Apache-2.0
#include "dashboard/key_decoder.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::dashboard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Key> decode(std::string_view bytes) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.feed(bytes, keys);
  return keys;
}

Key letter(const std::string& text) { return {Key::Kind::kText, text, 0, 0}; }
Key named(Key::Kind kind) { return {kind, {}, 0, 0}; }

TEST(KeyDecoder, KnowsLettersAlsoThoseOfSeveralBytes) {
  EXPECT_THAT(decode("q?\xc3\xa4"), ElementsAre(letter("q"), letter("?"), letter("\xc3\xa4")));
}

TEST(KeyDecoder, KnowsTheNamedKeysOfCommonTerminals) {
  const std::vector<std::pair<std::string, Key::Kind>> known = {
      {"\x1b[A", Key::Kind::kUp},      {"\x1bOA", Key::Kind::kUp},
      {"\x1b[B", Key::Kind::kDown},    {"\x1b[C", Key::Kind::kRight},
      {"\x1b[D", Key::Kind::kLeft},    {"\x1b[H", Key::Kind::kHome},
      {"\x1b[1~", Key::Kind::kHome},   {"\x1b[F", Key::Kind::kEnd},
      {"\x1bOF", Key::Kind::kEnd},     {"\x1b[4~", Key::Kind::kEnd},
      {"\x1b[5~", Key::Kind::kPageUp}, {"\x1b[6~", Key::Kind::kPageDown},
      {"\r", Key::Kind::kEnter},       {"\t", Key::Kind::kTab},
      {"\x7f", Key::Kind::kBackspace}, {"\b", Key::Kind::kBackspace},
      {"\x1b[Z", Key::Kind::kTab}};

  for (const auto& [bytes, kind] : known) {
    EXPECT_THAT(decode(bytes), ElementsAre(named(kind))) << testing::PrintToString(bytes);
  }
}

TEST(KeyDecoder, PutsASequenceTogetherThatComesInPieces) {
  KeyDecoder decoder;
  std::vector<Key> keys;

  for (const char byte : std::string_view("\x1b[5~\xe2\x82\xac")) {
    decoder.feed({&byte, 1}, keys);
  }

  EXPECT_THAT(keys, ElementsAre(named(Key::Kind::kPageUp), letter("\xe2\x82\xac")));
}

TEST(KeyDecoder, TakesALoneEscapeForTheKeyWhenNothingFollows) {
  KeyDecoder decoder;
  std::vector<Key> keys;
  decoder.feed("\x1b", keys);
  ASSERT_THAT(keys, IsEmpty());
  ASSERT_TRUE(decoder.is_waiting());

  decoder.flush(keys);

  EXPECT_THAT(keys, ElementsAre(named(Key::Kind::kEscape)));
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(KeyDecoder, KnowsTheMouse) {
  EXPECT_THAT(
      decode("\x1b[<0;12;5M\x1b[<0;12;5m\x1b[<64;1;1M\x1b[<65;300;100M"),
      ElementsAre(Key{Key::Kind::kMousePress, {}, 11, 4}, Key{Key::Kind::kWheelUp, {}, 0, 0},
                  Key{Key::Kind::kWheelDown, {}, 299, 99}));
}

// A click in column 81 has a byte like that of the key that quits.
TEST(KeyDecoder, KnowsTheOldReportsOfTheMouseToo) {
  EXPECT_THAT(decode("\x1b[M qA\x1b[M#qA\x1b[M`!!x"),
              ElementsAre(Key{Key::Kind::kMousePress, {}, 80, 32},
                          Key{Key::Kind::kWheelUp, {}, 0, 0}, letter("x")));
  EXPECT_THAT(decode("\x1b[M q"), IsEmpty()) << "more must come";
  EXPECT_THAT(decode(std::string("\x1b[M \0\0", 6)), IsEmpty()) << "too far right to be told";
  EXPECT_THAT(decode("\x1bOM"), ElementsAre(named(Key::Kind::kEnter))) << "of the number block";
}

TEST(KeyDecoder, NamesControlKeysByTheirLetter) {
  EXPECT_THAT(decode("\x0c"), ElementsAre(Key{Key::Kind::kControl, "l", 0, 0}));
}

TEST(KeyDecoder, SwallowsWhatItDoesNotKnow) {
  EXPECT_THAT(decode("\x1b[200~x"), ElementsAre(letter("x")));
  EXPECT_THAT(decode("\x1b[<9;;M\x1b[<0;0;0M"), IsEmpty());
  EXPECT_THAT(decode("\xff\xfe"), IsEmpty());
  EXPECT_THAT(decode(std::string("\0\x1c", 2)), IsEmpty());
  EXPECT_THAT(decode("\x1b[" + std::string(100, '1')), IsEmpty());
}

}  // namespace
}  // namespace tidemark::dashboard
