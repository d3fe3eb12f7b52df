// Help with mistakes of the command line, questions, and the exit codes of runs.
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CtlTerminalTest : public CtlTest {
 protected:
  void SetUp() override {
    // Not in a jail without /dev/pts.
    if (RunCommand("script -qec true /dev/null 2>/dev/null").exit_code != 0)
      GTEST_SKIP() << "no pseudo-terminals here";
  }
  // On a terminal, on which `typed` is typed.
  CommandResult OnTerminal(const std::string& arguments, const std::string& typed) {
    return RunCommand("script -qec '" PERCEPTRONCTL_BINARY " --server " + server_.address() + " " +
                          arguments + "' /dev/null",
                      typed);
  }
};

TEST_F(CtlTest, ANameThatIsNoModelsIsCorrected) {
  Ctl("create spam --named");
  Ctl("create iris --dimension 2");
  EXPECT_THAT(Ctl("get spma").out, HasSubstr("did you mean spam? 'perceptronctl list'"));
  EXPECT_THAT(Ctl("learn irs - --format svmlight --index-base 1", and_).out,
              HasSubstr("did you mean iris?"));
  EXPECT_THAT(Ctl("get frobnicator").out, Not(HasSubstr("did you mean")));
  EXPECT_THAT(Ctl("create both --compose spam,iriss").out, HasSubstr("did you mean iris?"));
}

TEST_F(CtlTest, ANameThatIsAnAliasIsRecognized) {
  Ctl("create spam --named");
  Ctl("alias prod spam");
  EXPECT_THAT(Ctl("get prod").out, HasSubstr("did you mean aliases/prod? 'perceptronctl list'"));
  EXPECT_THAT(Ctl("get aliases/prdo").out,
              HasSubstr("did you mean aliases/prod? 'perceptronctl alias'"));
}

TEST_F(CtlTest, OneOfAKindIsNamedInTheSingular) {
  Ctl("create one --dimension 2");
  const std::string out = Ctl("learn one - --format svmlight --index-base 1", "+1 1:1\n").out;
  EXPECT_THAT(out, HasSubstr("1 example in "));
  EXPECT_THAT(out, HasSubstr("1 mistake, 1 update; revision 1"));
}

TEST_F(CtlTest, TheAddressOfTheMetricsIsRecognized) {
  const CommandResult metrics =
      RunCommand(std::string(PERCEPTRONCTL_BINARY) + " list --server " +
                 "127.0.0.1:" + std::to_string(server_.metrics_port()) + " 2>&1");
  EXPECT_EQ(metrics.exit_code, 1);
  EXPECT_THAT(metrics.out, HasSubstr("hint: a web server answers there"));
  const CommandResult web = RunCommand(std::string(PERCEPTRONCTL_BINARY) +
                                       " list --server http://" + server_.address() + " 2>&1");
  EXPECT_EQ(web.exit_code, 2);
  EXPECT_THAT(web.out, HasSubstr("as " + server_.address()));
}

TEST_F(CtlTest, ARunThatDoesNotConvergeHasAnExitCodeOfItsOwn) {
  const std::string xor_ = "-1 1:0 2:0\n1 1:1\n1 2:1\n-1 1:1 2:1\n";
  Ctl("create m --dimension 2");
  const std::string learn = "learn m - --format svmlight --index-base 1 --until-converged";
  const CommandResult no = Ctl(learn + " --passes 5", xor_);
  EXPECT_EQ(no.exit_code, 5);
  EXPECT_THAT(no.out, HasSubstr("learn m: not converged after 5 passes"));
  EXPECT_EQ(Ctl(learn + " --passes 5 -o json", xor_).exit_code, 5);
  // Also where examples had errors; and without the flag nothing is expected.
  EXPECT_EQ(Ctl(learn + " --passes 2 --unseen-indices refuse", xor_ + "1 7:1\n").exit_code, 5);
  EXPECT_EQ(Ctl("learn m - --format svmlight --index-base 1", xor_).exit_code, 0);
  Ctl("create and --dimension 2");
  EXPECT_EQ(Ctl("learn and - --format svmlight --index-base 1 --until-converged", and_).exit_code,
            0);
}

TEST_F(CtlTest, TheHelpOfPredictShowsEachFieldOfItsJson) {
  Ctl("create m --dimension 2");
  const std::string help = Ctl("predict --help").out;
  const std::string line =
      CtlOut("predict m - --format svmlight --index-base 1 -o json 2>/dev/null", "1:1\n").out;
  size_t fields = 0;
  for (size_t end = line.find("\":"); end != std::string::npos; end = line.find("\":", end + 1)) {
    const size_t begin = line.rfind('"', end - 1);
    EXPECT_THAT(help, HasSubstr(line.substr(begin, end + 2 - begin)));
    ++fields;
  }
  EXPECT_GE(fields, 13) << line;
}

TEST_F(CtlTest, QuietLeavesResultsAndErrors) {
  EXPECT_EQ(Ctl("-q create m --dimension 2").out, "");
  EXPECT_EQ(Ctl("learn m - --format svmlight --index-base 1 --passes 9 -q", and_).out, "");
  EXPECT_EQ(Ctl("predict m - --format svmlight --index-base 1 -q", "1 1:1 2:1\n").out,
            "+1\t1\t0.2773501\n");
  EXPECT_THAT(Ctl("predict m - --format svmlight --index-base 1 -q --summary", "1 1:1 2:1\n").out,
              HasSubstr("errors: 0 of 1"));
  EXPECT_THAT(Ctl("get m -q").out, HasSubstr("CONVERGED"));
  EXPECT_THAT(Ctl("learn m - --format svmlight --index-base 1 -q -o json", and_).out,
              HasSubstr("\"converged\":true"));
  const std::string file = dir_.path() + "/quiet.model";
  for (const std::string& done :
       {std::string("copy m n"), std::string("rename n o"), "export o " + file, "import p " + file,
        std::string("snapshot p s"), std::string("rollback p s"),
        std::string("snapshot p s --delete"), std::string("alias a p"),
        std::string("alias a --delete"), std::string("freeze m")})
    EXPECT_EQ(Ctl("-q " + done).out, "") << done;
  EXPECT_THAT(Ctl("-q learn m - --format svmlight --index-base 1", and_).out,
              HasSubstr("MODEL_FROZEN"));
  for (const char* model : {"m", "o", "p"})
    EXPECT_EQ(Ctl(std::string("-q delete ") + model).out, "");
  EXPECT_EQ(Ctl("-q list").out, CtlOut("list").out);
}

TEST_F(CtlTerminalTest, DeleteAsks) {
  Ctl("create m --dimension 2");
  Ctl("learn m - --format svmlight --index-base 1", and_);
  const CommandResult kept = OnTerminal("delete m", "n\n");
  EXPECT_EQ(kept.exit_code, 130);
  EXPECT_THAT(kept.out, HasSubstr("Delete models/m, which has learned 4 examples and made"));
  EXPECT_THAT(kept.out, HasSubstr("models/m is kept"));
  EXPECT_EQ(OnTerminal("delete m", "\n").exit_code, 130);
  EXPECT_EQ(Get("m").name(), "models/m");
  EXPECT_THAT(OnTerminal("delete m", "y\n").out, HasSubstr("deleted models/m"));
  EXPECT_EQ(Ctl("get m").exit_code, 1);
  EXPECT_EQ(OnTerminal("delete m", "y\n").exit_code, 1);
  Ctl("create m --dimension 2");
  const CommandResult sure = OnTerminal("delete m --yes", "");
  EXPECT_EQ(sure.exit_code, 0);
  EXPECT_THAT(sure.out, Not(HasSubstr("[y/N]")));
}

TEST_F(CtlTerminalTest, PredictionsHaveAHeader) {
  Ctl("create m --dimension 2 --learner logistic-regression --labels ham,spam");
  const std::string file = Write("rows.svm", "1:1\n");
  const std::string predict = "predict m " + file + " --index-base 1";
  EXPECT_THAT(OnTerminal(predict, "").out, HasSubstr("LABEL\tSCORE\tDISTANCE\tP(spam)"));
  EXPECT_THAT(Ctl(predict).out, Not(HasSubstr("LABEL")));
  EXPECT_THAT(OnTerminal(predict + " -o json", "").out, Not(HasSubstr("LABEL")));
  Ctl("create c --dimension 2 --classes 3");
  EXPECT_THAT(OnTerminal("predict c " + file + " --index-base 1", "").out,
              HasSubstr("CLASS\tSCORE\tMARGIN"));
}

}  // namespace
}  // namespace perceptrond::testing
