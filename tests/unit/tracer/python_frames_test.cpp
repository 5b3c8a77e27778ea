// SPDX-License-Identifier: Apache-2.0
// The walk of Python frames, on memory that is laid out as that of an interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/tracer/python/code_table.h"
#include "profiler/tracer/python/interpreter.h"
#include "profiler/tracer/python/layout.h"
#include "profiler/tracer/python/mixed_stack.h"
#include "profiler/tracer/unwind/unwind.h"
#include "tests/unit/tracer/no_alloc_scope.h"
#include "tests/unit/tracer/store_folder.h"

namespace tidemark::tracer {
namespace {

using testing::ElementsAre;
using State = PythonInterpreter::State;

constexpr std::uint16_t kNone = PythonLayout::kNone;

// Objects of an interpreter, as far as they are read. One at a time.
class FakePython {
 public:
  explicit FakePython(std::uint16_t minor) {
    start_unwinder();  // memory can be probed from now on
    PythonLayout layout;
    if (!known_layout(minor, layout)) {
      publish(minor);
    }
    s_thread = make(256);
    symbols_.module = {0x1000, 0x9000};
    symbols_.evaluate = {0x2000, 0x3000};
    symbols_.get_thread_state = [] { return reinterpret_cast<void*>(s_thread); };
    symbols_.is_ending = [] { return s_is_ending ? 1 : 0; };
    symbols_.types = {make(64), make(64), make(64), make(64), make(64), make(64)};
    for (const std::uint64_t type : {symbols_.types.code, symbols_.types.function}) {
      store(type, kObjectType, symbols_.types.type);
    }
    function_ = add_object(symbols_.types.function);
    symbols_.minor = minor;
    python_.adopt(symbols_);
  }
  ~FakePython() {
    s_thread = 0;
    s_is_ending = false;
  }
  FakePython(const FakePython&) = delete;
  FakePython& operator=(const FakePython&) = delete;

  PythonInterpreter& python() { return python_; }
  const PythonLayout& layout() const { return python_.layout(); }

  void store(std::uint64_t object, std::uint16_t offset, std::uint64_t value,
             std::size_t bytes = 8) {
    std::memcpy(reinterpret_cast<char*>(object) + offset, &value, bytes);
  }

  static void begin_to_end() { s_is_ending = true; }
  std::uint64_t innermost() const { return innermost_; }
  const PythonTypes& types() const { return symbols_.types; }

  std::uint64_t add_object(std::uint64_t type) {
    const std::uint64_t object = make(64);
    store(object, kObjectReferences, 1);
    store(object, kObjectType, type);
    return object;
  }

  // `width`: bytes for each character; 1 with `ascii` or without.
  std::uint64_t add_text(const std::vector<std::uint32_t>& letters, unsigned width, bool ascii) {
    const std::uint64_t text = make(128 + letters.size() * 4);
    store(text, kObjectType, symbols_.types.text);
    store(text, kTextLength, letters.size());
    store(text, kTextState, (width << 2U) | (1U << 5U) | (ascii ? 1U << 6U : 0U), 4);
    std::uint16_t at = ascii ? layout().ascii_data : layout().compact_data;
    for (const std::uint32_t letter : letters) {
      store(text, at, letter, width);
      at = static_cast<std::uint16_t>(at + width);
    }
    return text;
  }
  std::uint64_t add_text(std::string_view letters) {
    return add_text({letters.begin(), letters.end()}, 1, true);
  }
  // Of a class that is derived from str.
  std::uint64_t add_derived_text(std::string_view letters) {
    const std::uint64_t type = make(256);
    store(type, kTypeFlags, kIsText);
    const std::uint64_t text = make(128);
    store(text, kObjectType, type);
    store(text, kTextLength, letters.size());
    store(text, kTextState, symbols_.minor >= 14 ? 1U << 16U : 1U << 2U, 4);
    store(text, layout().compact_data, add_text(letters) + layout().ascii_data);
    return text;
  }
  void set_file(std::uint64_t text) { file_ = text; }

  std::uint64_t add_code(std::uint64_t name, std::string_view lines = "xy") {
    const std::uint64_t bytes = make(64 + lines.size());
    store(bytes, kObjectType, symbols_.types.bytes);
    store(bytes, kBytesSize, lines.size());
    std::memcpy(reinterpret_cast<char*>(bytes) + kBytesData, lines.data(), lines.size());
    const std::uint64_t code = make(512);
    store(code, kObjectReferences, 1);
    store(code, kObjectType, symbols_.types.code);
    if (layout().code_start != kNone) {
      store(code, kObjectSize, kUnits);
    } else {
      const std::uint64_t instructions = make(kBytesData + 2 * kUnits);
      store(instructions, kObjectReferences, 1);
      store(instructions, kObjectType, symbols_.types.bytes);
      store(instructions, kBytesSize, 2 * kUnits);
      store(code, layout().code_identity, instructions);
    }
    store(code, layout().code_file, file_ == 0 ? file_ = add_text("/job/train.py") : file_);
    store(code, layout().code_name, name);
    store(code, layout().code_lines, bytes);
    store(code, layout().code_first_line, 40, 4);
    return code;
  }
  std::uint64_t add_code(std::string_view name) { return add_code(add_text(name)); }

  // Calls a function from the innermost frame; `unit` is the instruction that it is at.
  void call(std::uint64_t code, std::uint32_t unit) {
    const std::uint64_t frame = make(256);
    if (layout().frame_is_object) {
      store(frame, kObjectType, symbols_.types.frame);
    }
    if (layout().frame_function != kNone) {
      store(frame, layout().frame_function, function_);
    }
    if (layout().frame_globals != kNone) {
      store(frame, layout().frame_globals, function_);
    }
    store(frame, layout().frame_code, code);
    if (layout().code_start != kNone) {
      store(frame, layout().frame_instruction, code + layout().code_start + 2 * unit);
    } else {
      store(frame, layout().frame_instruction, layout().minor == 9 ? 2 * unit : unit, 4);
    }
    push(frame);
  }
  // The interpreter is called from native code: what it evaluates from now on has this anchor.
  std::uint64_t enter() {
    if (layout().frame_owner != kNone) {
      const std::uint64_t frame = make(256);
      store(frame, layout().frame_owner, kFirstInterpreterOwner, 1);
      push(frame);
      return frame;
    }
    if (layout().thread_c_frame == kNone) {
      return 0;
    }
    const std::uint64_t c_frame = make(64);
    store(c_frame, layout().c_frame_previous, c_frame_);
    store(s_thread, layout().thread_c_frame, c_frame);
    c_frame_ = c_frame;
    next_is_entry_ = true;
    return c_frame;
  }

 private:
  std::uint64_t make(std::size_t bytes) {
    return reinterpret_cast<std::uint64_t>(
        memory_.emplace_back((bytes + 7) / 8, std::uint64_t{0}).data());
  }
  void push(std::uint64_t frame) {
    store(frame, layout().frame_previous, innermost_);
    innermost_ = frame;
    if (layout().frame_is_entry != kNone && next_is_entry_) {
      store(frame, layout().frame_is_entry, 1, 1);
      next_is_entry_ = false;
    }
    if (layout().thread_frame != kNone) {
      store(s_thread, layout().thread_frame, frame);
    } else {
      if (c_frame_ == 0) {
        c_frame_ = make(64);
        store(s_thread, layout().thread_c_frame, c_frame_);
      }
      store(c_frame_, layout().c_frame_frame, frame);
    }
  }
  void publish(std::uint16_t minor) {
    runtime_ = make(kPublishedWords * 8);
    const std::vector<std::uint64_t> offsets = {72, 8, 0, 56, 70, 112, 128, 136, 68, 200};
    const std::vector<std::uint16_t> words =
        minor == 13 ? std::vector<std::uint16_t>{23, 29, 30, 31, 33, 35, 37, 38, 39, 43}
                    : std::vector<std::uint16_t>{26, 32, 33, 34, 36, 40, 42, 43, 44, 48};
    std::memcpy(reinterpret_cast<char*>(runtime_), "xdebugpy", 8);
    store(runtime_, 8, (std::uint64_t{3} << 24U) | (std::uint64_t{minor} << 16U) | 0xf0);
    for (std::size_t i = 0; i < words.size(); ++i) {
      store(runtime_, static_cast<std::uint16_t>(words[i] * 8), offsets[i]);
    }
    symbols_.runtime = {runtime_, runtime_ + kPublishedWords * 8};
  }

  static constexpr std::uint64_t kUnits = 20;
  static inline std::uint64_t s_thread = 0;
  static inline bool s_is_ending = false;
  std::deque<std::vector<std::uint64_t>> memory_;
  PythonInterpreter::Symbols symbols_;
  PythonInterpreter python_;
  std::uint64_t runtime_ = 0;
  std::uint64_t file_ = 0;
  std::uint64_t function_ = 0;
  std::uint64_t innermost_ = 0;
  std::uint64_t c_frame_ = 0;
  bool next_is_entry_ = false;
};

class PythonFramesOf : public testing::TestWithParam<std::uint16_t> {};
INSTANTIATE_TEST_SUITE_P(EachVersion, PythonFramesOf, testing::Values(9, 10, 11, 12, 13, 14),
                         [](const auto& version) {
                           return "Python3_" + std::to_string(version.param);
                         });

TEST_P(PythonFramesOf, AreReadFromTheInnermostOutwards) {
  FakePython fake(GetParam());
  const std::uint64_t main = fake.add_code("main");
  const std::uint64_t step = fake.add_code("step");
  const std::uint64_t outer = fake.enter();
  fake.call(main, 7);
  const std::uint64_t inner = fake.enter();
  fake.call(step, 3);
  PythonFrames frames;

  {
    const tests::NoAllocScope trap;
    ASSERT_TRUE(fake.python().read_frames(frames));
  }

  EXPECT_EQ(fake.python().state(), State::kOn);
  ASSERT_EQ(frames.depth, 2U);
  EXPECT_EQ(frames.frame[0].code, step);
  EXPECT_EQ(frames.frame[0].unit, 3U);
  EXPECT_EQ(frames.frame[0].anchor, inner);
  EXPECT_TRUE(frames.frame[0].ends_call);
  EXPECT_EQ(frames.frame[1].code, main);
  EXPECT_EQ(frames.frame[1].unit, 7U);
  EXPECT_EQ(frames.frame[1].anchor, outer);
}

TEST_P(PythonFramesOf, AreToldApartByTheInstructionAndByTheCode) {
  FakePython fake(GetParam());
  fake.enter();
  fake.call(fake.add_code("main"), 7);
  const std::uint64_t one = fake.python().hash_frames();
  fake.call(fake.add_code("step"), 1);
  const std::uint64_t two = fake.python().hash_frames();
  fake.call(fake.add_code("step"), 2);
  const std::uint64_t three = fake.python().hash_frames();

  EXPECT_NE(one, 0U);
  EXPECT_NE(one, two);
  EXPECT_NE(two, three);
  EXPECT_EQ(three, fake.python().hash_frames());
}

// Code that is compiled by the thousand takes the addresses of what was freed before.
TEST_P(PythonFramesOf, KnowACodeObjectThatTookThePlaceOfAnother) {
  FakePython fake(GetParam());
  const std::uint64_t code = fake.add_code("first");
  fake.enter();
  fake.call(code, 1);
  const std::uint64_t before = fake.python().hash_frames();
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));
  const std::uint64_t identity = frames.frame[0].identity;

  const std::uint64_t lines = load_word(code + fake.layout().code_lines);
  const std::uint64_t file = load_word(code + fake.layout().code_file);
  fake.store(lines, kBytesData, 'z', 1);  // all addresses are the same again
  EXPECT_NE(fake.python().hash_frames(), before);
  fake.store(lines, kBytesData, 'x', 1);
  EXPECT_EQ(fake.python().hash_frames(), before);
  fake.store(file, static_cast<std::uint16_t>(fake.layout().ascii_data + 12), 'x', 1);
  EXPECT_NE(fake.python().hash_frames(), before);
  fake.store(file, static_cast<std::uint16_t>(fake.layout().ascii_data + 12), 'y', 1);
  const std::uint64_t name = load_word(code + fake.layout().code_name);
  fake.store(name, static_cast<std::uint16_t>(fake.layout().ascii_data + 4), 'x', 1);
  EXPECT_NE(fake.python().hash_frames(), before);  // "firsx"
  fake.store(name, static_cast<std::uint16_t>(fake.layout().ascii_data + 4), 't', 1);
  EXPECT_EQ(fake.python().hash_frames(), before);
  fake.store(code, fake.layout().code_name, fake.add_text("second"));

  EXPECT_NE(fake.python().hash_frames(), before);
  ASSERT_TRUE(fake.python().read_frames(frames));
  EXPECT_NE(frames.frame[0].identity, identity);
}

TEST_P(PythonFramesOf, AreNotReadWhereTheLayoutIsWrong) {
  FakePython fake(GetParam());
  const std::uint64_t code = fake.add_code("main");
  fake.store(code, fake.layout().code_lines, 0x10);  // no object is there
  fake.enter();
  fake.call(code, 1);
  PythonFrames frames;

  EXPECT_FALSE(fake.python().read_frames(frames));

  EXPECT_EQ(fake.python().state(), State::kOff);
  EXPECT_STREQ(fake.python().problem(),
               "the interpreter's frames are not where its version has them");
  EXPECT_EQ(fake.python().hash_frames(), 0U);
}

// What a patch release of the interpreter may move.
TEST_P(PythonFramesOf, AreNotReadWhereAFrameLooksDifferent) {
  const auto is_refused = [](const auto& damage) {
    FakePython fake(GetParam());
    const std::uint64_t code = fake.add_code("main");
    fake.enter();
    fake.call(code, 1);
    fake.enter();
    fake.call(code, 2);
    damage(fake, code);
    PythonFrames frames;
    return !fake.python().read_frames(frames) && fake.python().state() == State::kOff;
  };
  EXPECT_FALSE(is_refused([](FakePython&, std::uint64_t) {}));
  // An instruction behind the last one.
  EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t code) { fake.call(code, 20); }));
  // What called it is no frame.
  EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t) {
    fake.store(fake.innermost(), fake.layout().frame_previous, 0x10);
  }));
  EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t code) {
    fake.store(fake.innermost(), fake.layout().frame_previous, code);
  }));
  EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t code) {
    fake.store(code, fake.layout().code_first_line, 1U << 30U, 4);
  }));
  if (GetParam() <= 12) {
    EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t) {
      fake.store(fake.innermost(), fake.layout().frame_globals, 0);
    }));
  }
  if (GetParam() == 11) {  // another frame than the one that called
    EXPECT_TRUE(is_refused([](FakePython& fake, std::uint64_t code) {
      const std::uint64_t c_frame = fake.enter();
      fake.call(code, 1);
      fake.store(c_frame, fake.layout().c_frame_previous, c_frame);
    }));
  }
}

// Then the states of threads that still run are freed.
TEST_P(PythonFramesOf, AreNotReadOnceTheInterpreterEnds) {
  FakePython fake(GetParam());
  fake.enter();
  fake.call(fake.add_code("main"), 1);
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));

  FakePython::begin_to_end();

  EXPECT_FALSE(fake.python().read_frames(frames));
  EXPECT_EQ(fake.python().hash_frames(), 0U);
}

TEST_P(PythonFramesOf, LeaveOutACodeObjectThatIsBeingFreed) {
  FakePython fake(GetParam());
  fake.enter();
  fake.call(fake.add_code("main"), 1);
  const std::uint64_t code = fake.add_code("gone");
  fake.call(code, 1);
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));
  ASSERT_EQ(frames.depth, 2U);

  fake.store(code, kObjectReferences, 0);

  ASSERT_TRUE(fake.python().read_frames(frames));
  EXPECT_EQ(frames.depth, 1U);
}

TEST_P(PythonFramesOf, AreForgottenWithTheModuleOfTheInterpreter) {
  FakePython fake(GetParam());
  fake.enter();
  fake.call(fake.add_code("main"), 1);
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));

  fake.python().before_unload();
  fake.python().forget();
  fake.python().after_unload();

  EXPECT_FALSE(fake.python().read_frames(frames));
  EXPECT_EQ(fake.python().state(), State::kNone);
  EXPECT_EQ(fake.python().module().begin, 0U);
}

TEST_P(PythonFramesOf, WaitForAThreadThatRunsPython) {
  FakePython fake(GetParam());
  PythonFrames frames;

  EXPECT_FALSE(fake.python().read_frames(frames));

  EXPECT_EQ(fake.python().state(), State::kFound);
}

TEST_P(PythonFramesOf, AreBoundedInDeepRecursion) {
  FakePython fake(GetParam());
  const std::uint64_t code = fake.add_code("recurse");
  fake.enter();
  for (int i = 0; i < 1000; ++i) {
    fake.call(code, 5);
  }
  PythonFrames frames;

  ASSERT_TRUE(fake.python().read_frames(frames));

  EXPECT_EQ(frames.depth, kMaxPythonFrames);
  EXPECT_TRUE(frames.truncated);
}

TEST(PythonLayout, RefusesWhatItDoesNotKnow) {
  PythonLayout layout;
  const char* problem = nullptr;
  PublishedOffsets published = {};
  auto& words = published.words;
  EXPECT_FALSE(known_layout(8, layout));
  EXPECT_FALSE(published_layout(published, layout, problem));
  std::memcpy(words, "xdebugpy", 8);
  words[1] = 0x030d00f0;
  EXPECT_TRUE(published_layout(published, layout, problem));
  words[2] = 1;
  EXPECT_FALSE(published_layout(published, layout, problem));
  EXPECT_STREQ(problem, "free-threaded builds of Python are not supported yet");
  words[2] = 0;
  words[1] = 0x03630000;  // 3.99
  EXPECT_FALSE(published_layout(published, layout, problem));
  EXPECT_STREQ(problem, "this version of Python is not known");
  words[1] = 0x030d00f0;
  words[30] = 1U << 20U;
  EXPECT_FALSE(published_layout(published, layout, problem));
}

class PythonCodes : public testing::Test {
 protected:
  std::string text(std::uint32_t offset, std::uint32_t bytes) {
    return {folder_.store().item<char>(wire::Table::kStrings, offset), bytes};
  }
  const wire::PythonCode& code(std::uint32_t number) {
    return *folder_.store().item<wire::PythonCode>(wire::Table::kCodes, number);
  }
  std::string name_of(std::uint32_t number) {
    return text(code(number).name_offset, code(number).name_bytes);
  }
  StoreFolder folder_;
};

TEST_F(PythonCodes, AreWrittenOnceWithNameFileAndLines) {
  FakePython fake(12);
  PythonCodeTable codes;
  codes.bind(folder_.store(), fake.python());
  fake.enter();
  fake.call(fake.add_code("main"), 1);
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));

  const std::uint32_t number = codes.number_of(frames.frame[0]);

  EXPECT_EQ(codes.number_of(frames.frame[0]), number);
  EXPECT_EQ(name_of(number), "main");
  EXPECT_EQ(text(code(number).file_offset, code(number).file_bytes), "/job/train.py");
  EXPECT_EQ(text(code(number).lines_offset, code(number).lines_bytes), "xy");
  EXPECT_EQ(code(number).first_line, 40U);
  EXPECT_EQ(code(number).minor, 12U);
  EXPECT_EQ(code(number).ready, 1U);
}

TEST_F(PythonCodes, ShareTheNameOfTheirFile) {
  FakePython fake(11);
  PythonCodeTable codes;
  codes.bind(folder_.store(), fake.python());
  fake.enter();
  fake.call(fake.add_code("one"), 1);
  fake.call(fake.add_code("two"), 1);
  PythonFrames frames;
  ASSERT_TRUE(fake.python().read_frames(frames));

  const std::uint32_t two = codes.number_of(frames.frame[0]);
  const std::uint32_t one = codes.number_of(frames.frame[1]);

  EXPECT_NE(one, two);
  EXPECT_EQ(code(one).file_offset, code(two).file_offset);
}

// The state of a text as 3.14 has it.
TEST(PythonText, IsReadInBothLayoutsOfItsState) {
  const TextState narrow((1U << 2U) | (1U << 5U) | (1U << 6U), 13);
  const TextState wide((2U << 16U) | (1U << 19U) | 3U, 14);
  const TextState none(0xffff0000U, 13);
  EXPECT_EQ(narrow.width, 1U);
  EXPECT_TRUE(narrow.is_ascii);
  EXPECT_EQ(wide.width, 2U);
  EXPECT_FALSE(wide.is_ascii);
  EXPECT_EQ(none.width, 0U);
  EXPECT_TRUE(narrow.is_compact && wide.is_compact);
  EXPECT_FALSE(TextState(1U << 2U, 13).is_compact);
}

// compile() takes the name of a file as it is, of a class like numpy.str_, whose objects have their
// letters elsewhere.
TEST_F(PythonCodes, HaveNamesOfClassesThatAreDerivedFromStr) {
  for (const std::uint16_t minor : std::initializer_list<std::uint16_t>{9, 11, 12, 14}) {
    FakePython fake(minor);
    PythonCodeTable codes;
    codes.bind(folder_.store(), fake.python());
    fake.set_file(fake.add_derived_text(std::string(3000, 'x') + std::to_string(minor)));
    fake.enter();
    fake.call(fake.add_code(fake.add_derived_text("step")), 1);
    PythonFrames frames;

    ASSERT_TRUE(fake.python().read_frames(frames)) << fake.python().problem();

    const std::uint32_t number = codes.number_of(frames.frame[0]);
    EXPECT_EQ(name_of(number), "step");
    EXPECT_EQ(code(number).file_bytes, 3000U + std::to_string(minor).size());
  }
}

TEST_F(PythonCodes, HaveNamesInUtf8WhateverTheInterpreterStores) {
  for (const std::uint16_t minor : std::initializer_list<std::uint16_t>{11, 12}) {
    FakePython fake(minor);
    PythonCodeTable codes;
    codes.bind(folder_.store(), fake.python());
    fake.enter();
    fake.call(fake.add_code(fake.add_text({'h', 0xf6, 'h', 'e'}, 1, false)), 1);
    fake.call(fake.add_code(fake.add_text({0x6d4b, 'x'}, 2, false)), 1);
    fake.call(fake.add_code(fake.add_text({0x1d4b3}, 4, false)), 1);
    PythonFrames frames;
    ASSERT_TRUE(fake.python().read_frames(frames));

    EXPECT_EQ(name_of(codes.number_of(frames.frame[0])), "\xf0\x9d\x92\xb3");
    EXPECT_EQ(name_of(codes.number_of(frames.frame[1])), "\xe6\xb5\x8bx");
    EXPECT_EQ(name_of(codes.number_of(frames.frame[2])), "h\xc3\xb6he");
  }
}

// Native frames with program counters `pcs` whose parts of the stack begin at 100, 200, ...
void set_native(StackTrace& trace, std::initializer_list<std::uint64_t> pcs) {
  assign_frames(trace, std::data(pcs), pcs.size());
  trace.has_stack_pointers = true;
  for (std::size_t i = 0; i < trace.depth; ++i) {
    trace.frames.sp[kMaxFrames - trace.depth + i] = 100 * (i + 1);
  }
}

// N for a native frame with its program counter, P for one of Python with its number.
std::vector<std::string> shown(const StackView& stack) {
  std::vector<std::string> frames;
  for (std::uint32_t i = 0; i < stack.depth; ++i) {
    frames.push_back(stack.is_native(i) ? "N" + std::to_string(stack.value[i])
                                        : "P" + std::to_string(stack.python[i]));
  }
  return frames;
}

class MergedStack : public testing::Test {
 protected:
  // The module of the interpreter is [0x1000, 0x9000), its evaluation (0x2000, 0x3000].
  FakePython fake_{12};
  StackTrace native_;
  PythonFrames python_;
  MixedStack mixed_;

  void add(std::uint64_t anchor, bool ends_call) {
    python_.frame[python_.depth] = {1, python_.depth + 1, anchor, 0, ends_call};
    ++python_.depth;
  }
  StackView merge() { return mixed_.merge(native_, nullptr, python_, fake_.python()); }
};

TEST_F(MergedStack, PutsFramesWhereTheyAreEvaluated) {
  // malloc's caller, evaluation, a C extension, evaluation, main
  set_native(native_, {0x20, 0x2500, 0x30, 0x2600, 0x40});
  add(250, false);
  add(250, true);
  add(410, true);

  const StackView stack = merge();

  EXPECT_THAT(shown(stack), ElementsAre("N32", "P0", "P1", "N48", "P2", "N64"));
  EXPECT_FALSE(stack.truncated);
}

TEST_F(MergedStack, KeepsTheInterpretersFramesBelowThoseOfPythonOnly) {
  // list_resize, evaluation, function_vectorcall, import, evaluation, Py_RunMain, main
  set_native(native_, {0x1100, 0x2500, 0x1200, 0x1300, 0x2600, 0x1400, 0x40});
  add(250, true);
  add(510, true);

  EXPECT_THAT(shown(merge()), ElementsAre("N4352", "P0", "P1", "N64"));
}

TEST_F(MergedStack, GoesByTheFunctionWhereThereAreNoAnchors) {
  set_native(native_, {0x20, 0x2500, 0x1200, 0x2600, 0x40});
  add(0, true);
  add(0, true);

  EXPECT_THAT(shown(merge()), ElementsAre("N32", "P0", "P1", "N64"));
}

TEST_F(MergedStack, HasTheFramesBeyondTheLastNativeOneToo) {
  set_native(native_, {0x20, 0x2500});
  native_.truncated = true;
  native_.frames.sp[kMaxFrames - 1] = 200;
  add(250, true);
  add(900'000, true);
  add(910'000, true);
  python_.frame[1].anchor = 0;

  const StackView stack = merge();

  EXPECT_THAT(shown(stack), ElementsAre("N32", "P0", "P1", "P2"));
  EXPECT_TRUE(stack.truncated);
}

TEST_F(MergedStack, IsCutOffWhereItIsTooDeep) {
  set_native(native_, {0x20, 0x2500});
  for (std::size_t i = 0; i < kMaxPythonFrames; ++i) {
    add(250, false);
  }

  const StackView stack = merge();

  EXPECT_EQ(stack.depth, kMaxStack);
  EXPECT_TRUE(stack.truncated);
  EXPECT_TRUE(stack.is_native(0));
}

}  // namespace
}  // namespace tidemark::tracer
