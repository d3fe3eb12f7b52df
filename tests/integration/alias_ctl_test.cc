// perceptronctl: aliases, copies, names, files and rollbacks.
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/history_service.pb.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CtlHistoryTest : public CtlTest {
 protected:
  CtlHistoryTest() : data_(Write("and.svm", and_)) {
    EXPECT_EQ(Ctl("create a --dimension 2").exit_code, 0);
    EXPECT_EQ(Ctl("learn a " + data_ + " --passes 2 --index-base 1").exit_code, 0);
  }
  void ExpectFine(const std::string& arguments) {
    const CommandResult result = Ctl(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.out;
  }
  // The last 64 MiB of a file, without its checksum.
  static std::string EndOf(const std::string& path) {
    std::string bytes(64 << 20, '\0');
    std::ifstream file(path, std::ios::binary);
    file.seekg(-static_cast<std::streamoff>(bytes.size()), std::ios::end);
    EXPECT_TRUE(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
    bytes.resize(bytes.size() - 64);
    return bytes;
  }
  std::string Weights(const std::string& name) {
    return Json<v1::Model>("get " + name + " --weights").weights().SerializeAsString();
  }

  const std::string data_;
};

TEST_F(CtlHistoryTest, AnAliasIsSetUsedComparedAndDeleted) {
  ExpectFine("create b --dimension 2");
  EXPECT_THAT(Ctl("alias").out, HasSubstr("there are no aliases"));
  EXPECT_EQ(Json<v1::Alias>("alias prod a").model(), "models/a");
  EXPECT_THAT(CtlOut("alias").out, HasSubstr("aliases/prod"));
  ExpectFine("predict aliases/prod " + data_ + " --index-base 1");
  EXPECT_THAT(Ctl("learn aliases/prod " + data_ + " --index-base 1").out, HasSubstr("models/a: "));
  EXPECT_EQ(Json<v1::Model>("get aliases/prod").name(), "models/a");
  const auto compared = Json<v1::ChallengeAliasResponse>("alias prod --challenger b");
  EXPECT_EQ(compared.outcome(), v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
  EXPECT_THAT(Ctl("alias prod --challenger b").out, HasSubstr("too few examples"));
  EXPECT_EQ(Ctl("alias prod a --delete").exit_code, 2);
  EXPECT_THAT(Ctl("alias none").out, HasSubstr("ALIAS_NOT_FOUND"));
  ExpectFine("alias prod --delete");
  EXPECT_EQ(Ctl("predict aliases/prod " + data_ + " --index-base 1").exit_code, 1);
}

TEST_F(CtlHistoryTest, AModelGoesThroughAPipe) {
  const std::string ctl = std::string(PERCEPTRONCTL_BINARY) + " --server " + server_.address();
  const CommandResult piped = RunCommand(ctl + " export a - | " + ctl + " import b - 2>&1");
  EXPECT_EQ(piped.exit_code, 0) << piped.out;
  EXPECT_EQ(Weights("b"), Weights("a"));
  EXPECT_EQ(Ctl("import c - < /dev/null").exit_code, 1);
}

TEST_F(CtlHistoryTest, DeleteOfAnAliasSaysWhatDeletesIt) {
  ExpectFine("alias prod a");
  const CommandResult wrong = Ctl("delete aliases/prod");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.out, HasSubstr("'perceptronctl alias NAME --delete'"));
}

TEST_F(CtlHistoryTest, ASnapshotIsKeptListedAndRestored) {
  EXPECT_EQ(Json<v1::Snapshot>("snapshot a k").name(), "models/a/snapshots/k");
  const std::string weights = Weights("a");
  const std::string other = Write("other.svm", "+1 1:-3 2:1\n-1 1:5\n+1 1:-2 2:-9\n");
  ExpectFine("learn a " + other + " --passes 3 --index-base 1");
  const std::string learned = Weights("a");
  const std::string revision = absl::StrCat(Json<v1::Model>("get a").revision());
  EXPECT_NE(learned, weights);
  ExpectFine("rollback a k");
  EXPECT_EQ(Weights("a"), weights);
  ExpectFine("rollback a --revision " + revision);
  EXPECT_EQ(Weights("a"), learned);
  ExpectFine("rollback a k");
  EXPECT_THAT(Ctl("rollback a --revision 99999").out, HasSubstr("REVISION_NOT_KEPT"));
  EXPECT_EQ(Ctl("rollback a").exit_code, 2);
  EXPECT_EQ(Ctl("rollback a k --revision 1").exit_code, 2);
  EXPECT_THAT(CtlOut("snapshot a").out, HasSubstr("models/a/snapshots/k"));
  EXPECT_THAT(Ctl("rollback a none").out, HasSubstr("SNAPSHOT_NOT_FOUND"));
  EXPECT_THAT(Ctl("rollback a k --expected-revision 1").out, HasSubstr("REVISION_MISMATCH"));
  ExpectFine("snapshot a k --delete");
  EXPECT_EQ(CtlOut("snapshot a").out, "");
}

TEST_F(CtlHistoryTest, ACopyANewNameAndAFileHaveTheSameWeights) {
  const std::string weights = Weights("a");
  const std::string file = dir_.path() + "/a.model";
  ExpectFine("copy a b");
  ExpectFine("rename a c");
  ExpectFine("export c " + file);
  EXPECT_EQ(Ctl("export c " + file).exit_code, 2);
  ExpectFine("import d " + file);
  for (const char* name : {"b", "c", "d"}) EXPECT_EQ(Weights(name), weights) << name;
  EXPECT_THAT(Ctl("get a").out, HasSubstr("MODEL_NOT_FOUND"));
  EXPECT_THAT(Ctl("import e " + data_).out, HasSubstr("BAD_MODEL_FILE"));
}

TEST_F(CtlHistoryTest, AFileOfMoreThanAMessageMovesAModelAndIsWholeOrAbsent) {
  ExpectFine("create large --dimension 20000000 --learner arow");
  ExpectFine("learn large " + data_ + " --index-base 1");
  const std::string file = dir_.path() + "/large.model";
  const std::string again = dir_.path() + "/again.model";
  ExpectFine("export large " + file);
  const auto size = std::filesystem::file_size(file);
  EXPECT_GT(size, 64U << 20);
  ExpectFine("import moved " + file);
  ExpectFine("export moved " + again);
  // But for names and times at the begin, and the checksum.
  EXPECT_TRUE(EndOf(file) == EndOf(again));
  const std::string predict = " " + data_ + " --index-base 1";
  EXPECT_EQ(CtlOut("predict large" + predict).out, CtlOut("predict moved" + predict).out);
  // One byte less.
  std::filesystem::resize_file(file, size - 1);
  EXPECT_THAT(Ctl("import cut " + file).out, HasSubstr("BAD_MODEL_FILE"));
  EXPECT_THAT(Ctl("get cut").out, HasSubstr("MODEL_NOT_FOUND"));
  EXPECT_THAT(Ctl("export none " + dir_.path() + "/none.model").out, HasSubstr("MODEL_NOT_FOUND"));
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("none.model")));
}

}  // namespace
}  // namespace perceptrond::testing
