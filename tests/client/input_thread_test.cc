#include "client/ctl/input_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/model.pb.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::client {
namespace {

class InputThreadTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  std::string WriteFile(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name)) << content;
    return Path(name);
  }
  static std::unique_ptr<Input> Open(const std::vector<std::string>& files) {
    InputOptions options;
    options.command = "learn";
    options.files = files;
    options.format = "svmlight";
    options.index_base = 1;
    perceptron::v1::Model model;
    model.mutable_feature_space()->mutable_dense()->set_dimension(1 << 20);
    auto input = Input::Make(options, model, true, false);
    EXPECT_TRUE(input.ok()) << input.status();
    return *std::move(input);
  }

 private:
  const testing::TempDir dir_;
};

TEST_F(InputThreadTest, WhatCanBeReadOnlyOnceIsKeptUpToALimit) {
  const std::string path = WriteFile("a", "12345");
  EXPECT_EQ(*ReadWhole(path, 5), "12345");
  EXPECT_TRUE(absl::IsResourceExhausted(ReadWhole(path, 4).status()));
}

// A column that is to be left out would be learned.
TEST_F(InputThreadTest, FlagsOfCsvAreRefusedWhereNoFileHasThatFormat) {
  perceptron::v1::Model model;
  model.mutable_feature_space()->mutable_named();
  const std::function<void(InputOptions&)> flags[] = {
      [](InputOptions& options) { options.label_column = "y"; },
      [](InputOptions& options) { options.ignored_columns = {"id"}; },
      [](InputOptions& options) { options.header = 1; }};
  for (const auto& set : flags) {
    InputOptions options;
    set(options);
    options.files = {WriteFile("a.jsonl", "{\"id\":1,\"y\":1}\n")};
    EXPECT_TRUE(absl::IsInvalidArgument(Input::Make(options, model, false, false).status()));
    options.files.push_back(WriteFile("b.csv", "id,y\n1,1\n"));
    EXPECT_TRUE(Input::Make(options, model, false, false).ok());
  }
}

TEST_F(InputThreadTest, ReadsEachFileInTheFormatOfItsName) {
  InputOptions options;
  options.command = "predict";
  options.files = {WriteFile("a.tsv", "spam\tfree prize\n"),
                   WriteFile("b.csv", "text,label\nsee you,ham\nhello,HAM\n"),
                   WriteFile("c.jsonl", "\n{\"text\":\"prize\",\"label\":\"spam\"}\n")};
  options.label_column = "label";
  options.text_column = "text";
  perceptron::v1::Model model;
  model.mutable_feature_space()->mutable_text();
  for (const char* name : {"ham", "spam"}) model.add_label_names(name);
  const auto input = Input::Make(options, model, false, false);
  ASSERT_TRUE(input.ok()) << input.status();
  InputThread rows(input->get(), nullptr);
  const std::tuple<const char*, int, bool, uint64_t> expected[] = {
      {"free prize", 1, true, 0},
      {"see you", -1, true, 0},
      {"hello", Row::kNoLabel, false, 0},
      {"prize", 1, true, 1}};
  for (const auto& [text, label, is_known, lines] : expected) {
    const InputRow* const read = rows.Next();
    ASSERT_NE(read, nullptr);
    ASSERT_TRUE(read->status.ok()) << read->status;
    EXPECT_EQ(read->row.text, text);
    EXPECT_EQ(read->row.label, label);
    EXPECT_EQ(read->label_status.ok(), is_known);
    EXPECT_EQ(read->lines_without_example, lines);
  }
  EXPECT_EQ(rows.Next(), nullptr);
  // Without a name that tells it, it must be stated.
  options.files.push_back("-");
  EXPECT_TRUE(absl::IsInvalidArgument(Input::Make(options, model, false, false).status()));
}

TEST_F(InputThreadTest, GivesRowsAndBadLinesInOrderPassAfterPass) {
  std::string text;
  for (int i = 1; i <= 5000; ++i)
    absl::StrAppend(&text, i % 10 == 0 ? "1 bad" : absl::StrCat("1 ", i, ":2"), "\n");
  const auto input = Open({WriteFile("a", text), WriteFile("b", "-1 9:1\n")});
  for (int pass = 0; pass < 3; ++pass) {
    if (pass > 0) input->Rewind();
    InputThread rows(input.get(), nullptr);
    for (uint32_t i = 1; i <= 5000; ++i) {
      const InputRow* const read = rows.Next();
      ASSERT_NE(read, nullptr);
      ASSERT_EQ(input->Where(read->tag), absl::StrCat(Path("a"), ":", i));
      if (i % 10 == 0) {
        EXPECT_TRUE(absl::IsInvalidArgument(read->status));
        EXPECT_NE(std::string(read->status.message()).find(absl::StrCat("a:", i, ": ")),
                  std::string::npos);
      } else {
        ASSERT_EQ(read->row.indices, std::vector<uint32_t>{i - 1});
      }
    }
    EXPECT_EQ(rows.Next()->row.label, -1);
    EXPECT_EQ(rows.Next(), nullptr);
    EXPECT_EQ(rows.Next(), nullptr);
    EXPECT_EQ(rows.fraction(), 1);
  }
}

TEST_F(InputThreadTest, ItsFractionIsByTheBytesOfTheLinesTakenIfTheyAreKnown) {
  const std::string lines = "+1 1:1\n-1 2:1\n";
  const auto input = Open({WriteFile("a", lines), WriteFile("b", lines)});
  EXPECT_EQ(input->fraction(), 0);
  Row row;
  for (const double done : {0.25, 0.5, 0.75, 1.0}) {
    EXPECT_TRUE(*input->Next(&row));
    EXPECT_EQ(input->fraction(), done);
  }
  EXPECT_FALSE(*input->Next(&row));
  EXPECT_EQ(input->fraction(), 1);
  input->Rewind();
  EXPECT_EQ(input->fraction(), 0);
  EXPECT_EQ(Open({"/dev/zero"})->fraction(), std::nullopt);
}

TEST_F(InputThreadTest, EndsAfterAFileThatCannotBeRead) {
  const std::string missing = WriteFile("missing", "1 1:1\n");
  const auto input = Open({WriteFile("first", "1 1:1\n"), missing, WriteFile("last", "1 1:1\n")});
  unlink(missing.c_str());
  InputThread rows(input.get(), nullptr);
  EXPECT_TRUE(rows.Next()->status.ok());
  EXPECT_TRUE(absl::IsNotFound(rows.Next()->status));
  EXPECT_EQ(rows.Next(), nullptr);
}

TEST_F(InputThreadTest, ReportsAWaitOnceAllRowsBeforeItWereTaken) {
  const std::string path = Path("fifo");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int writer = open(path.c_str(), O_RDWR);
  ASSERT_EQ(write(writer, "1 1:1\n1 2:1\n", 12), 12);
  const auto input = Open({path});
  int taken = 0;
  InputThread rows(input.get(), [&](const InputThread&) {
    if (taken == 2) {
      ASSERT_EQ(write(writer, "1 3:1\n", 6), 6);
    }
  });
  for (; taken < 3; ++taken) {
    const InputRow* const read = rows.Next();
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->row.indices, std::vector<uint32_t>{static_cast<uint32_t>(taken)});
  }
  // The destructor ends the wait for a fourth row.
}

TEST_F(InputThreadTest, CanBeLeftWhileItReadsOn) {
  std::string text;
  for (int i = 1; i <= 20'000; ++i) absl::StrAppend(&text, "1 1:1\n");
  const auto input = Open({WriteFile("long", text)});
  InputThread rows(input.get(), nullptr);
  EXPECT_NE(rows.Next(), nullptr);
}

}  // namespace
}  // namespace perceptrond::client
