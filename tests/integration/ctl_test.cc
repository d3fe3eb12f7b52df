// perceptronctl against the real server, as scripts use it: the forms they rely on, every input
// format, exit codes.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class CtlTest : public ServerTest {
 protected:
  CtlTest() { setenv("XDG_STATE_HOME", (dir_.path() + "/state").c_str(), 1); }

  // With standard error in the output.
  CommandResult Ctl(const std::string& arguments, const std::string& input = "") {
    return RunCommand(std::string(PERCEPTRONCTL_BINARY) + " --server " + server_.address() + " " +
                          arguments + " 2>&1",
                      input);
  }
  // Standard output alone.
  CommandResult CtlOut(const std::string& arguments, const std::string& input = "") {
    return RunCommand(
        std::string(PERCEPTRONCTL_BINARY) + " --server " + server_.address() + " " + arguments,
        input);
  }
  // The same, as JSON of one message.
  template <typename Message>
  Message Json(const std::string& arguments) {
    const CommandResult result = RunCommand(std::string(PERCEPTRONCTL_BINARY) + " --server " +
                                            server_.address() + " " + arguments + " -o json");
    EXPECT_EQ(result.exit_code, 0);
    Message message;
    const auto parsed = google::protobuf::util::JsonStringToMessage(result.out, &message);
    EXPECT_TRUE(parsed.ok()) << result.out;
    return message;
  }
  // An object of perceptronctl's own, which is no message's JSON form.
  static google::protobuf::Struct Object(const std::string& json) {
    google::protobuf::Struct object;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &object).ok()) << json;
    return object;
  }
  static double Number(const google::protobuf::Struct& object, const std::string& key) {
    const auto found = object.fields().find(key);
    EXPECT_TRUE(found != object.fields().end()) << "no " << key;
    return found == object.fields().end() ? -1 : found->second.number_value();
  }
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << content;
    return path;
  }
  // A data set that is not carried by the project; empty where it is absent.
  static std::string SharedData(const std::string& name) {
    const char* const folder = std::getenv("PERCEPTROND_DATA");
    const std::string path =
        std::string(folder != nullptr ? folder : PERCEPTROND_SHARED_DATA) + "/" + name;
    return std::filesystem::exists(path) ? path : "";
  }
  const std::string and_ = "-1 1:0 2:0\n-1 2:1\n-1 1:1\n+1 1:1 2:1\n";
};

TEST_F(CtlTest, TheCommonPathReadsAsDocumented) {
  const std::string file = Write("and.svm", and_);
  EXPECT_EQ(Ctl("create and --learner perceptron --dimension 2").exit_code, 0);
  const CommandResult learned =
      Ctl("learn and " + file + " --format svmlight --index-base 1 --passes 9");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 9: 4 examples, 0 mistakes"));
  const v1::Model model = Json<v1::Model>("get and --weights");
  // ALGORITHMS, section 2, AND.
  EXPECT_EQ(model.revision(), 18);
  EXPECT_THAT(model.weights().values(), ::testing::ElementsAre(3, 2));
  EXPECT_EQ(model.weights().offset(), -4);
  EXPECT_TRUE(model.report().last_pass().converged());
  const CommandResult predicted =
      CtlOut("predict and " + file + " --format svmlight --index-base 1 -o json");
  EXPECT_EQ(predicted.exit_code, 0);
  EXPECT_EQ(std::count(predicted.out.begin(), predicted.out.end(), '\n'), 4);
  EXPECT_THAT(predicted.out, ::testing::HasSubstr("\"label\":1,\"score\":1,"));
}

TEST_F(CtlTest, LearningUntilConvergedStopsAtTheFirstPassWithoutAChange) {
  Ctl("create and --dimension 2 --tie positive");
  const CommandResult learned =
      Ctl("learn and - --format svmlight --index-base 1 --until-converged", and_);
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 6: 4 examples, 0 mistakes"));
  EXPECT_EQ(Json<v1::Model>("get and").revision(), 11);
}

TEST_F(CtlTest, EveryFormatTeachesTheSameWeights) {
  Ctl("create a --dimension 2");
  Ctl("create b --dimension 2");
  Ctl("create c --dimension 2");
  Ctl("create d --named");
  EXPECT_EQ(Ctl("learn a - --format svmlight --index-base 1 --passes 3", and_).exit_code, 0);
  EXPECT_EQ(Ctl("learn b - --format csv --label-column y --passes 3",
                "y,p,q\n-1,0,0\n-1,0,1\n-1,1,0\n1,1,1\n")
                .exit_code,
            0);
  EXPECT_EQ(Ctl("learn c - --format jsonl --passes 3",
                "{\"label\":-1,\"dense\":{\"values\":[0,0]}}\n{\"label\":-1,\"sparse\":{"
                "\"indices\":[1]}}\n"
                "{\"label\":-1,\"sparse\":{\"indices\":[0]}}\n{\"label\":1,\"sparse\":{\"indices\":"
                "[0,1],\"values\":[1,1]}}\n")
                .exit_code,
            0);
  EXPECT_EQ(
      Ctl("learn d - --format vw --passes 3", "-1 | p:0 q:0\n-1 | q\n-1 | p\n1 | p q\n").exit_code,
      0);
  const v1::Model a = Json<v1::Model>("get a --weights");
  EXPECT_GT(a.revision(), 0);
  EXPECT_EQ(Json<v1::Model>("get b --weights").weights().SerializeAsString(),
            a.weights().SerializeAsString());
  EXPECT_EQ(Json<v1::Model>("get c --weights").weights().SerializeAsString(),
            a.weights().SerializeAsString());
  const v1::Model d = Json<v1::Model>("get d --weights");
  EXPECT_EQ(d.weights().offset(), a.weights().offset());
  EXPECT_EQ(d.revision(), a.revision());
  const auto by_name = [](const v1::Weights& weights) {
    std::map<std::string, float> map;
    for (int i = 0; i < weights.values_size(); ++i) {
      map[weights.names().empty() ? (weights.indices(i) == 0 ? "p" : "q") : weights.names(i)] =
          weights.values(i);
    }
    return map;
  };
  EXPECT_EQ(by_name(d.weights()), by_name(a.weights()));
}

TEST_F(CtlTest, AnIndexBaseIsStatedNeverGuessed) {
  Ctl("create and --dimension 2");
  const CommandResult result = Ctl("learn and - --format svmlight", and_);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, ::testing::HasSubstr("--index-base"));
  EXPECT_EQ(Json<v1::Model>("get and").report().examples(), 0);
}

TEST_F(CtlTest, ExitCodesAndMessagesSayWhatWentWrong) {
  const CommandResult unknown = Ctl("get nobody");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.out, ::testing::HasSubstr("MODEL_NOT_FOUND"));
  EXPECT_EQ(Ctl("create").exit_code, 2);
  EXPECT_EQ(Ctl("create m").exit_code, 2);
  EXPECT_EQ(Ctl("frobnicate").exit_code, 2);
  Ctl("create m --dimension 2");
  const CommandResult malformed =
      Ctl("learn m - --format svmlight --index-base 1", "+1 1:1\n+1 oops\n");
  EXPECT_EQ(malformed.exit_code, 2);
  EXPECT_THAT(malformed.out, ::testing::HasSubstr(":2:"));
  const CommandResult refused =
      Ctl("learn m - --format svmlight --index-base 1", "+1 1:1\n+1 7:1\n");
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.out, ::testing::HasSubstr("INDEX_OUT_OF_RANGE"));
  Ctl("freeze m");
  const CommandResult frozen = Ctl("learn m - --format svmlight --index-base 1", "+1 1:1\n");
  EXPECT_EQ(frozen.exit_code, 1);
  EXPECT_THAT(frozen.out, ::testing::HasSubstr("MODEL_FROZEN"));
  EXPECT_EQ(Ctl("unfreeze m").exit_code, 0);
  EXPECT_EQ(Ctl("update m --description mail --etag stale").exit_code, 1);
  EXPECT_EQ(Ctl("update m --description mail").exit_code, 0);
  EXPECT_EQ(Json<v1::Model>("get m").description(), "mail");
  EXPECT_EQ(Json<v1::ListModelsResponse>("list").models_size(), 1);
  EXPECT_EQ(Ctl("delete m").exit_code, 0);
  EXPECT_EQ(Ctl("delete m").exit_code, 1);
}

TEST_F(CtlTest, HealthFollowsTheServer) {
  EXPECT_EQ(Ctl("health").exit_code, 0);
  EXPECT_EQ(Ctl("health --service perceptron.v1.LearningService").exit_code, 0);
  EXPECT_EQ(server_.Terminate(), 0);
  const CommandResult gone = Ctl("health");
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.out, ::testing::HasSubstr(server_.address()));
}

TEST_F(CtlTest, ACrashInTheMiddleOfAFileLosesNothingAndRepeatsNothing) {
  Ctl("create m --dimension 3");
  std::string lines;
  constexpr int kLines = 200'000;
  for (int i = 0; i < kLines; ++i) lines += i % 7 < 3 ? "+1 1:1 3:-2\n" : "-1 1:1 2:1\n";
  const std::string file = Write("many.svm", lines);
  CommandResult learned;
  std::thread learning(
      [&] { learned = Ctl("learn m " + file + " --format svmlight --index-base 1 --batch 50"); });
  // Once it is under way.
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  server_.Kill();
  server_.Restart();
  learning.join();
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("reconnecting"));
  Connect();
  EXPECT_EQ(Get("m").report().examples(), kLines);
}

TEST_F(CtlTest, CtrlCFinishesWhatIsUnderWayAndSaysWhatWasLearned) {
  Ctl("create m --dimension 3");
  const std::string pid_file = dir_.path() + "/pid";
  CommandResult learned;
  // A pipe that has no end.
  std::thread learning([&] {
    learned = RunCommand("yes '+1 1:1 3:-2\n-1 1:1 2:1' | sh -c 'echo $$ > " + pid_file +
                         "; exec " + PERCEPTRONCTL_BINARY + " --server " + server_.address() +
                         " learn m - --format svmlight --index-base 1 --batch 20 -o json'");
  });
  while (Get("m", v1::MODEL_VIEW_BASIC).report().examples() == 0) {
  }
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGINT);
  learning.join();
  EXPECT_EQ(learned.exit_code, 130);
  const google::protobuf::Struct summary = Object(learned.out);
  const auto examples = static_cast<double>(Get("m").report().examples());
  EXPECT_GT(examples, 0);
  // Every example taken from the pipe, as perceptronctl counted them by the answers it had.
  EXPECT_EQ(Number(summary, "examples"), examples);
  EXPECT_EQ(Number(summary, "rows"), examples);
  EXPECT_EQ(Number(summary, "lostAnswers"), 0);
}

TEST_F(CtlTest, PredictionsComeWithTheirErrorBesideTheMajoritys) {
  const std::string file = Write("and.svm", and_);
  Ctl("create and --dimension 2 --labels no,yes");
  const std::string options = " --format svmlight --index-base 1";
  // Without weights all are taken for -1: the one +1 is wrong.
  const CommandResult untaught = Ctl("predict and " + file + options + " --summary -o json");
  EXPECT_EQ(untaught.exit_code, 0);
  const google::protobuf::Struct before = Object(untaught.out);
  EXPECT_EQ(Number(before, "errors"), 1);
  EXPECT_EQ(Number(before, "errorRate"), 0.25);
  EXPECT_EQ(Number(before, "majorityErrorRate"), 0.25);
  EXPECT_EQ(Number(before, "falseNegatives"), 1);

  EXPECT_EQ(Ctl("learn and " + file + options + " --until-converged").exit_code, 0);
  const CommandResult text = Ctl("predict and " + file + options);
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, ::testing::StartsWith("no\t-4\t-"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("\nyes\t1\t0.27"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("4 predicted at revision 18"));
  EXPECT_THAT(text.out, ::testing::HasSubstr("wrong: 0 of 4 (0.00%); always saying the more "
                                             "frequent label: 25.00%"));
  const google::protobuf::Struct row =
      Object(CtlOut("predict and - -o json" + options, "1 1:1 2:1\n").out);
  EXPECT_EQ(Number(row, "label"), 1);
  EXPECT_EQ(Number(row, "actual"), 1);
  EXPECT_EQ(Ctl("predict and -" + options, "1:1\n9:1\n").exit_code, 3);
}

TEST_F(CtlTest, WatchPrintsEachChangeAndEndsWellOnCtrlC) {
  CreateDense("m", 2);
  const std::string pid_file = dir_.path() + "/pid";
  std::FILE* const watch =
      popen(("sh -c 'echo $$ > " + pid_file + "; exec " + PERCEPTRONCTL_BINARY + " --server " +
             server_.address() + " watch m --interval 0.05 -o json'")
                .c_str(),
            "r");
  ASSERT_NE(watch, nullptr);
  const auto next = [watch] {
    char line[8192] = "";
    EXPECT_NE(std::fgets(line, sizeof line, watch), nullptr);
    v1::Model model;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &model).ok()) << line;
    return model;
  };
  EXPECT_EQ(next().revision(), 0);
  v1::LearnRequest request;
  request.set_model("models/m");
  *request.add_examples() = SparseExample(1, {{0, 1.0F}});
  EXPECT_TRUE(Learn(request).ok());
  const v1::Model changed = next();
  EXPECT_EQ(changed.revision(), 1);
  EXPECT_EQ(changed.report().examples(), 1);
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGINT);
  EXPECT_EQ(pclose(watch), 0);
}

TEST_F(CtlTest, AnEtagGuardsAgainstAChangeInBetween) {
  const v1::Model created = Json<v1::Model>("create m --hash-bits 4");
  EXPECT_EQ(created.feature_space().hashed().bits(), 4);
  const v1::Model updated =
      Json<v1::Model>("update m --margin-of-interest 0.5 --etag " + created.etag());
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_NE(updated.etag(), created.etag());
  const CommandResult stale = Ctl("delete m --etag " + created.etag());
  EXPECT_EQ(stale.exit_code, 1);
  EXPECT_THAT(stale.out, ::testing::HasSubstr("ETAG_MISMATCH"));
  EXPECT_EQ(Json<v1::Model>("freeze m --etag " + updated.etag()).state(), v1::MODEL_STATE_FROZEN);
}

TEST_F(CtlTest, AServerThatIsNotThereIsSaidSoWithoutALongWait) {
  EXPECT_EQ(server_.Terminate(), 0);
  const auto begin = std::chrono::steady_clock::now();
  for (const char* arguments : {"list", "learn m - --timeout 1 --format svmlight --index-base 1"}) {
    const CommandResult gone = Ctl(arguments, "+1 1:1\n");
    EXPECT_EQ(gone.exit_code, 1) << arguments;
    EXPECT_THAT(gone.out, ::testing::HasSubstr("is perceptrond running there?")) << arguments;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(CtlTest, TextAndLabelNamesTeachANamedModel) {
  Ctl("create spam --named --labels ham,spam");
  const std::string texts = "spam\tWin a prize now\nham\tSee you now\nspam\tA prize!\n";
  EXPECT_EQ(Ctl("learn spam - --format text --until-converged", texts).exit_code, 0);
  const v1::Model model = Json<v1::Model>("get spam --weights");
  EXPECT_THAT(model.weights().names(), ::testing::Contains("prize"));
  EXPECT_THAT(CtlOut("predict spam - --format text", "prize\n").out,
              ::testing::StartsWith("spam\t"));
}

TEST_F(CtlTest, MushroomsConvergeAsTheReferenceDoes) {
  const std::string file = SharedData("agaricus.train");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create agaricus --dimension 127");
  const CommandResult learned =
      Ctl("learn agaricus " + file + " --format svmlight --index-base 1 --until-converged");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 1: 6513 examples, 61 mistakes"));
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 15: 6513 examples, 0 mistakes"));
  EXPECT_EQ(Json<v1::Model>("get agaricus").revision(), 139);
}

TEST_F(CtlTest, IrisConvergesAsTheReferenceDoes) {
  const std::string file = SharedData("iris_setosa.all");
  if (file.empty()) GTEST_SKIP() << "the shared data sets are not here: set PERCEPTROND_DATA";
  Ctl("create iris --dimension 4");
  const CommandResult learned =
      Ctl("learn iris " + file + " --format svmlight --index-base 1 --until-converged");
  EXPECT_EQ(learned.exit_code, 0) << learned.out;
  EXPECT_THAT(learned.out, ::testing::HasSubstr("pass 4: 150 examples, 0 mistakes"));
  EXPECT_THAT(learned.out, ::testing::Not(::testing::HasSubstr("pass 5")));
  EXPECT_EQ(Json<v1::Model>("get iris").revision(), 5);
}

}  // namespace
}  // namespace perceptrond::testing
