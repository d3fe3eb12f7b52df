// perceptronctl with standard streams that are closed, and on full disks: a message and an exit code, and no success.
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFormat = " --format svmlight --index-base 1 ";

class CtlDescriptorsTest : public CtlTest {
 protected:
  CtlDescriptorsTest() {
    EXPECT_EQ(Ctl("create m --dimension 2 --store-sample 10").exit_code, 0);
    EXPECT_EQ(Ctl("learn m -" + kFormat, and_).exit_code, 0);
  }
  // The command with another standard output; the messages on standard error are the output.
  CommandResult WithOutput(const std::string& output, const std::string& arguments,
                           const std::string& input = "") {
    return CtlOut(arguments + " 2>&1 " + output, input);
  }
};

TEST_F(CtlDescriptorsTest, AClosedStandardInputIsAnErrorOfEachCommandThatReadsIt) {
  for (const std::string& command :
       {"learn m -" + kFormat, "learn m - --passes 2" + kFormat, "learn m - --shuffle 1" + kFormat,
        "predict m -" + kFormat, "predict m - --summary" + kFormat, "explain m -" + kFormat,
        "draw m -" + kFormat, "create n --dimension-from -" + kFormat, std::string("import n -")}) {
    const CommandResult closed = Ctl(command + " --timeout 20 <&-");
    EXPECT_EQ(closed.exit_code, 2) << command << ": " << closed.out;
    EXPECT_THAT(closed.out, HasSubstr("standard input is closed")) << command;
  }
  EXPECT_EQ(Get("m").report().examples(), 4U);
  EXPECT_THAT(Ctl("list").out, Not(HasSubstr("n ")));
}

TEST_F(CtlDescriptorsTest, CommandsThatDoNotReadStandardInputDoNotNeedIt) {
  const std::string file = Write("and.svm", and_);
  for (const std::string& command : {std::string("get m"), "learn m --index-base 1 " + file,
                                     "predict m --index-base 1 " + file, std::string("delete m")}) {
    const CommandResult closed = Ctl(command + " <&-");
    EXPECT_EQ(closed.exit_code, 0) << command << ": " << closed.out;
  }
}

TEST_F(CtlDescriptorsTest, AResultThatCannotBeWrittenIsAnErrorOfEachCommand) {
  const std::string rows = "1:1 2:1\n";
  for (const auto& [output, message] :
       {std::pair<std::string, std::string>(">&-", "standard output is closed"),
        {">/dev/full", "cannot write to standard output: No space left"}}) {
    const std::string id = output == ">&-" ? "closed" : "full";
    for (const std::string& command : {"create " + id + " --dimension 2",
                                       std::string("list"),
                                       std::string("get m"),
                                       std::string("get m --weights -o json"),
                                       "update " + id + " --description d",
                                       "freeze " + id,
                                       "unfreeze " + id,
                                       "learn m -" + kFormat,
                                       "learn m - -o json" + kFormat,
                                       "predict m -" + kFormat,
                                       "predict m - --summary" + kFormat,
                                       "explain m -" + kFormat,
                                       std::string("draw m --what learning-curve"),
                                       "draw m -" + kFormat,
                                       std::string("watch m"),
                                       std::string("analyze m"),
                                       std::string("examples m"),
                                       std::string("bench --seconds 0.1 --warmup 0"),
                                       "alias " + id + " m",
                                       std::string("alias"),
                                       "copy m " + id + "-copy",
                                       "rename " + id + "-copy " + id + "-other",
                                       std::string("export m -"),
                                       "snapshot m " + id,
                                       std::string("snapshot m"),
                                       "rollback m " + id,
                                       "snapshot m " + id + " --delete",
                                       "alias --delete " + id,
                                       "delete " + id + " --yes",
                                       std::string("health"),
                                       std::string("learn --help"),
                                       std::string("--version")}) {
      const CommandResult lost =
          WithOutput(output, command, command.starts_with("learn") ? and_ : rows);
      EXPECT_EQ(lost.exit_code, 1) << command << " " << output << ": " << lost.out;
      EXPECT_THAT(lost.out, HasSubstr(message)) << command;
    }
  }
}

TEST_F(CtlDescriptorsTest, PredictionsOfAnEndlessInputEndOnceTheyCannotBeWritten) {
  const CommandResult lost =
      RunCommand("yes 1:1 | timeout 60 " + std::string(PERCEPTRONCTL_BINARY) + " --server " +
                 server_.address() + " predict m -" + kFormat + "2>&1 >/dev/full");
  EXPECT_EQ(lost.exit_code, 1) << lost.out;
  EXPECT_THAT(lost.out, HasSubstr("cannot write to standard output"));
}

TEST_F(CtlDescriptorsTest, AClosedStandardErrorChangesNeitherResultsNorExitCodes) {
  EXPECT_EQ(CtlOut("predict m -" + kFormat + "2>&-", "1:1 2:1\n").out,
            CtlOut("predict m -" + kFormat, "1:1 2:1\n").out);
  const CommandResult missing = CtlOut("get missing 2>&-");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(CtlOut("get m >&- 2>&- <&-").exit_code, 1);
}

TEST_F(CtlDescriptorsTest, AFileThatCannotBeWrittenIsNamedAndNoPartOfAModelIsLeft) {
  const std::string file = dir_.path() + "/m.model";
  const std::string limited = "( ulimit -f 0; trap '' XFSZ; " + std::string(PERCEPTRONCTL_BINARY) +
                              " --server " + server_.address() + " ";
  const CommandResult exported = RunCommand(limited + "export m " + file + " ) 2>&1");
  EXPECT_EQ(exported.exit_code, 1);
  EXPECT_THAT(exported.out, HasSubstr("export: cannot write " + file + ": File too large"));
  EXPECT_FALSE(std::filesystem::exists(file));
  const CommandResult drawn =
      RunCommand(limited + "draw m --what learning-curve -o " + dir_.path() + "/m.svg ) 2>&1");
  EXPECT_EQ(drawn.exit_code, 1);
  EXPECT_THAT(drawn.out, HasSubstr("cannot write to " + dir_.path() + "/m.svg"));
  // What the machine cannot remember of a run is no error of it.
  EXPECT_EQ(RunCommand(limited + "learn m -" + kFormat + ") 2>&1", and_).exit_code, 0);
}

}  // namespace
}  // namespace perceptrond::testing
