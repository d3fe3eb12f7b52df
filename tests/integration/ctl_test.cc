// perceptronctl against the real server, as scripts use it: exit codes and JSON; and while something happens to it: a signal, a
// server that goes, comes back or stands still, an alias that moves. transcripts/ has what it prints.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/learner/catalogue.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/history_service.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CtlTest : public ServerTest {
 protected:
  explicit CtlTest(std::vector<std::string> flags = {}) : ServerTest(std::move(flags)) {
    setenv("XDG_STATE_HOME", (dir_.path() + "/state").c_str(), 1);
  }

  std::string Command(const std::string& arguments) const {
    return absl::StrCat(PerceptronctlBinary(), " --server ", server_.address(), " ", arguments);
  }
  // With standard error in the output.
  CommandResult Ctl(const std::string& arguments, const std::string& input = "") const {
    return RunCommand(Command(arguments) + " 2>&1", input);
  }
  // Standard output alone.
  CommandResult CtlOut(const std::string& arguments, const std::string& input = "") const {
    return RunCommand(Command(arguments), input);
  }
  void Expect(int exit_code, const std::string& arguments, const std::string& input = "") const {
    const CommandResult result = Ctl(arguments, input);
    EXPECT_EQ(result.exit_code, exit_code) << arguments << ": " << result.out;
  }
  // The output as the JSON form of a message; objects of perceptronctl's own are Structs.
  template <typename Message>
  static Message Parse(const std::string& json) {
    Message message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
    return message;
  }
  template <typename Message>
  Message Json(const std::string& arguments, const std::string& input = "",
               int exit_code = 0) const {
    const CommandResult result = CtlOut(arguments + " -o json", input);
    EXPECT_EQ(result.exit_code, exit_code) << arguments;
    return Parse<Message>(result.out);
  }
  google::protobuf::Struct Object(const std::string& arguments, const std::string& input = "",
                                  int exit_code = 0) const {
    return Json<google::protobuf::Struct>(arguments, input, exit_code);
  }
  // A figure; -1 if it is absent. Whole numbers are strings, as in the JSON form of 64-bit ones.
  static double Number(const google::protobuf::Struct& object, const std::string& key) {
    const auto found = object.fields().find(key);
    if (found == object.fields().end()) return -1;
    const google::protobuf::Value& value = found->second;
    return value.has_string_value() ? std::stod(value.string_value()) : value.number_value();
  }
  std::string Weights(const std::string& name) { return Get(name).weights().SerializeAsString(); }
  uint64_t Examples(const std::string& name) {
    return Get(name, v1::MODEL_VIEW_BASIC).report().examples();
  }
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = dir_.path() + "/" + name;
    std::ofstream(path) << content;
    return path;
  }

  const std::string and_ = "-1 1:0 2:0\n-1 2:1\n-1 1:1\n+1 1:1 2:1\n";
  const std::string svmlight_ = " - --format svmlight --index-base 1 ";
};

TEST_F(CtlTest, AModelIsCreatedTaughtShownAndAskedInJson) {
  Expect(0, "create and --dimension 2 --labels no,yes");
  // AND with a bias, worked by hand.
  const auto learned = Object("learn and" + svmlight_ + "--until-converged", and_);
  EXPECT_EQ(Number(learned, "examples"), 36);
  EXPECT_EQ(Number(learned, "mistakes"), 18);
  EXPECT_TRUE(learned.fields().at("converged").bool_value());
  EXPECT_EQ(learned.fields().at("passes").list_value().values_size(), 9);
  const auto model = Json<v1::Model>("get and --weights");
  EXPECT_EQ(model.revision(), 18);
  EXPECT_THAT(model.weights().vectors(0).values(), ElementsAre(3, 2));
  EXPECT_EQ(model.weights().vectors(0).bias(), -4);
  EXPECT_EQ(Json<v1::Model>("get and --learning-curve").learning_curve_size(), 19);
  // One answer a line.
  const std::string predicted = CtlOut("predict and -o json" + svmlight_, and_).out;
  EXPECT_EQ(std::count(predicted.begin(), predicted.end(), '\n'), 4);
  const auto last =
      Parse<v1::PredictResponse>(predicted.substr(predicted.rfind('{', predicted.size() - 2)));
  EXPECT_THAT(last.scores(), ElementsAre(1));
  EXPECT_THAT(last.predicted_labels(), ElementsAre(1));
  EXPECT_EQ(last.revision(), 18);
  const auto summary = Object("predict and --summary" + svmlight_, and_);
  EXPECT_EQ(Number(summary, "errors"), 0);
  EXPECT_EQ(Number(summary, "majorityErrorRate"), 0.25);
  EXPECT_EQ(
      Json<v1::ExplainResponse>("explain and" + svmlight_, "1:1 2:-2\n").explanations(0).score(),
      -5);
  EXPECT_EQ(Json<v1::ListModelsResponse>("list").models_size(), 1);
  Expect(0, "delete and");
  Expect(1, "delete and");
}

// The transcripts have more.
TEST_F(CtlTest, ExitCodesTellWhatWentWrong) {
  Expect(0, "create m --dimension 2");
  Expect(0, "create mail --text");
  Expect(0, "create three --dimension 2 --classes 3");
  const std::string xor_ = "-1 1:0 2:0\n1 1:1\n1 2:1\n-1 1:1 2:1\n";
  const std::tuple<int, std::string, std::string> commands[] = {
      {0, "--help", ""},
      {0, "learn --help", ""},
      {0, "list", ""},
      {0, "health", ""},
      {0, "predict m" + svmlight_, ""},
      {0, "create n --named --validate-only", ""},
      // The server refuses, or is not there.
      {1, "get n", ""},
      {1, "predict m --min-revision 9" + svmlight_, "1 1:1\n"},
      {1, "bench n", ""},
      {1, "import n - ", ""},
      // The command line or a file is wrong.
      {2, "", ""},
      {2, "list -o yaml", ""},
      {2, "list --timeout nan", ""},
      {2, "create n --dimension 4294967296", ""},
      {2, "create n --dimension 2 --bias x", ""},
      {2, "create n --dimension 2 --fourier 0 --gamma 1", ""},
      {2, "create n --dimension 2 --polynomial 5", ""},
      {2, "create n --dimension 2 --interactions-only", ""},
      {2, "create n --dimension 2 --classes 1", ""},
      {2, "create n --dimension 2 --kernel linear", ""},
      {2, "create n --dimension 2 --steps adaptive", ""},
      {2, "create n --dimension 2 --durable-predictions", ""},
      {2, "create n --dimension 2 --keep-predictions soon", ""},
      {2, "create n --dimension 2 --start-weights /nonexistent", ""},
      {2, "create n --dimension 2 --start-weights " + Write("null.json", "{\"values\":[null,1,2]}"),
       ""},
      {2, "create n --dimension-from -", ""},
      {2, "create n --named --words 1", ""},
      {2, "create n --named --products a:b:c", ""},
      {2, "create n --text --characters 3", ""},
      {2, "learn m - --format svmlight", ""},
      {2, "learn m --skip-lines -1" + svmlight_, ""},
      {2, "learn m --also m2 --analyze" + svmlight_, ""},
      {2, "predict m f.svm --ids --summary", ""},
      {2, "predict m --unknown-names refuse" + svmlight_, "1 1:1\n"},
      {2, "analyze m --if-revision 1", ""},
      {2, "analyze m --gap 1", ""},
      {2, "analyze m --max-support-vectors 20001", ""},
      {2, "analyze m --time-limit soon", ""},
      {2, "alias a m --delete", ""},
      {2, "rollback m k --revision 1", ""},
      {2, "bench --rate 0", ""},
      {2, "bench --named --dense", ""},
      {2, "bench --features 10 --size 5", ""},
      {2, "bench m --named", ""},
      {2, "bench mail", ""},
      {2, "bench three", ""},
      {2, "learn mail - --format csv --delimiter ab", ""},
      {2, "bench --streams 1000 --size 268435456 --dense", ""},
      // Some rows were refused.
      {3, "learn m --unseen-indices refuse" + svmlight_, "1 1:1\n1 9:1\n"},
      {3, "predict m" + svmlight_, "1 1:1\n1 9:1\n"},
      // Without convergence, also where rows were refused.
      {5, "learn m --until-converged --passes 3" + svmlight_, xor_},
      {5, "learn m --until-converged --passes 2 --unseen-indices refuse" + svmlight_,
       xor_ + "1 9:1\n"},
  };
  for (const auto& [code, arguments, input] : commands) Expect(code, arguments, input);
  EXPECT_EQ(Json<v1::ListModelsResponse>("list").models_size(), 3);
}

// With the numbers of the input's lines beside them results can be joined.
TEST_F(CtlTest, PredictPrintsALineForEachLineOfTheInput) {
  Expect(0, "create m --dimension 2");
  Expect(0, "create n --named");
  Expect(0, "learn m" + svmlight_, "1 1:1\n");
  Expect(0, "learn n - --format vw", "1 | a\n");
  Expect(0, "create t --text");
  Expect(0, "learn t - --format text", "1\ta\n");
  const std::tuple<std::string, std::string, std::string> inputs[] = {
      {"m" + svmlight_, "\n1 1:1\n# c\n\n1 1:x\n1 1:1 1:2\n1 1:1\n\n", "?+????+"},
      {"n - --format vw", "| a\n\nx\n| a\n", "+??+"},
      {"n - --format csv", "a\n1\n\nx\n1", "+??+"},
      {"n - --format jsonl", "{\"a\":1}\n\n{\"a\":null}\n{\"a\":1}\n\n\n", "+??+"},
      {"t - --format text", "a\n\na\n", "+?+"},
      {"m --batch 1" + svmlight_, "1 x\n1 1:1\n1 x\n1 x\n1 1:1\n1 x\n", "?+??+?"},
  };
  for (const auto& [arguments, input, expected] : inputs) {
    const CommandResult text = CtlOut("predict " + arguments + " --skip-bad-lines -q", input);
    EXPECT_EQ(text.exit_code, 0) << arguments;
    std::string lines;
    for (const absl::string_view line : absl::StrSplit(text.out, '\n', absl::SkipEmpty()))
      lines.push_back(line.front());
    EXPECT_EQ(lines, expected) << arguments;
    const CommandResult json =
        CtlOut("predict " + arguments + " --skip-bad-lines -q -o json", input);
    std::string answers;
    for (const absl::string_view line : absl::StrSplit(json.out, '\n', absl::SkipEmpty()))
      answers.push_back(Parse<v1::PredictResponse>(std::string(line)).row_errors_size() > 0 ? '?'
                                                                                            : '+');
    EXPECT_EQ(answers, lines) << arguments;
  }
}

class SmallMessagesTest : public CtlTest {
 protected:
  SmallMessagesTest() : CtlTest({"--max-message-bytes=64KiB"}) {}
};

TEST_F(SmallMessagesTest, RowsGoInMessagesThatTheServerTakesAndOneThatFitsNoneIsRefusedByItsLine) {
  Expect(0, "create m --dimension 20000");
  const auto row = [](int features) {
    std::string text = "1";
    for (int i = 1; i <= features; ++i) absl::StrAppend(&text, " ", i, ":2");
    return text + "\n";
  };
  std::string input;
  for (int i = 0; i < 300; ++i) input += row(200);
  input += row(20'000) + "-1 2:1\n";
  const CommandResult refused = Ctl("learn m" + svmlight_, input);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, HasSubstr("standard input:301: "));
  EXPECT_EQ(Examples("m"), 300);
  const auto learned = Object("learn m --skip-bad-lines" + svmlight_, input);
  EXPECT_EQ(Number(learned, "examples"), 301);
  EXPECT_EQ(Number(learned, "badLines"), 1);
  const CommandResult predicted = CtlOut("predict m --skip-bad-lines -q" + svmlight_, input);
  const std::vector<std::string> lines = absl::StrSplit(predicted.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 302U) << predicted.out;
  EXPECT_EQ(lines[300], "?");
  EXPECT_NE(lines[301], "?");
}

TEST_F(CtlTest, TheServerOfThisMachineIsCalledWithoutAProxy) {
  for (const char* proxy : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    const CommandResult listed =
        RunCommand(absl::StrCat("env -u no_proxy -u NO_PROXY ", proxy, "=http://127.0.0.1:1 ",
                                Command("list --timeout 60")));
    EXPECT_EQ(listed.exit_code, 0) << proxy;
  }
}

TEST_F(CtlTest, FlagsOfCreateAreTheModelsSettings) {
  const std::pair<const char*, const char*> models[] = {
      {"--hash-bits 18 --no-bias",
       "feature_space { hashed { bits: 18 } } learner { bias_input: 0 }"},
      {"--named --max-features 9 --labels ham,spam",
       "feature_space { named { max_features: 9 } } label_names: 'ham' label_names: 'spam'"},
      {"--text --text-value log-count --words 1 --characters 3-5 --keep-norm --hash-bits 18 --idf",
       "feature_space { text { value: VALUE_LOG_COUNT max_words: 1 min_characters: 3 "
       "max_characters: 5 keep_norm: true bits: 18 inverse_document_frequency: true } }"},
      {"--named --products user:page --products user:hour,a:a",
       "feature_space { map { products { pairs { first: 'user' second: 'page' } "
       "pairs { first: 'user' second: 'hour' } pairs { first: 'a' second: 'a' } } } }"},
      {"--dimension 2 --polynomial 3 --interactions-only",
       "feature_space { map { polynomial { degree: 3 interactions_only: true } } }"},
      {"--dimension 2 --fourier 8 --gamma 0.5 --seed 7",
       "feature_space { map { fourier { dimension: 8 gamma: 0.5 seed: 7 } } }"},
      {"--dimension 2 --learner averaged-logistic-regression --step-size 0.5 --steps decreasing",
       "learner { logistic_regression { step_size: 0.5 steps: STEPS_DECREASING } averaged {} }"},
      {"--dimension 2 --learner kernel-perceptron --kernel polynomial --kernel-degree 3 --budget "
       "10",
       "learner { kernel_perceptron { budget: 10 kernel { polynomial { degree: 3 } } } }"},
      {"--dimension 2 --learner pocket-perceptron --ratchet-examples 10",
       "learner { perceptron {} pocket { ratchet_examples: 10 } }"},
      {"--dimension 2 --tie positive --bias 0.5 --class-weights 1,5",
       "learner { tie_rule: TIE_RULE_POSITIVE bias_input: 0.5 class_weights: [1, 5] }"},
      {"--dimension 2 --classes 9 --new-classes named",
       "learner { classes { max_classes: 9 new_classes: NEW_CLASSES_NAMED } }"},
      {"--dimension 2 --margin-of-interest 0.01 --store-updates 5 --store-sample 7",
       "margin_of_interest: 0.01 stored_examples { max_updates: 5 max_sample: 7 }"},
      {"--dimension 2 --keep-predictions 7d --keep-predictions-mib 1 --durable-predictions",
       "stored_predictions { max_age { seconds: 604800 } max_bytes: 1048576 durable: true }"},
      {"--dimension 2 --expire-after 12h --description mail",
       "expire_after { seconds: 43200 } description: 'mail'"},
      {"--dimension-from DIR/train.svm --dimension-from DIR/wide.svm --index-base 1",
       "feature_space { dense { dimension: 7 } }"},
      {"--dimension-from DIR/rows.csv --label-column 1 --no-header --skip-lines 1",
       "feature_space { dense { dimension: 2 } }"},
  };
  Write("train.svm", "+1 1:1\n-1 2:1\n# none\n");
  Write("wide.svm", "+1 7:1\n");
  Write("rows.csv", "y,a,b\n1,2,3\n");
  for (const auto& [flags, settings] : models) {
    const auto created = Json<v1::Model>("create m --validate-only " +
                                         absl::StrReplaceAll(flags, {{"DIR", dir_.path()}}));
    v1::Model expected;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(settings, &expected)) << settings;
    google::protobuf::util::MessageDifferencer differences;
    differences.set_scope(google::protobuf::util::MessageDifferencer::PARTIAL);
    EXPECT_TRUE(differences.Compare(expected, created)) << flags << created.DebugString();
  }
  for (const CatalogueEntry& learner : Catalogue()) {
    if (learner.wrapper == WrapperKind::kNone)
      Expect(0, "create m --dimension 2 --validate-only --learner " + learner.name);
  }
}

TEST_F(CtlTest, SeveralClassesAreCountedByWhatTheyWereTakenFor) {
  Expect(0, "create three --dimension 2 --classes 3");
  const std::string rows = "0 1:1\n1 2:1\n2 1:-1 2:-1\n";
  Expect(0, "learn three --until-converged" + svmlight_, rows);
  const auto summary = Object("predict three --summary" + svmlight_, rows + "2 1:1\n");
  EXPECT_EQ(Number(summary, "errors"), 1);
  EXPECT_EQ(Number(summary, "errorRate"), 0.25);
  EXPECT_EQ(summary.fields().at("confusion").list_value().values_size(), 4);
  const auto answer = Json<v1::PredictResponse>("predict three --all-scores" + svmlight_, "1:1\n");
  EXPECT_EQ(answer.class_scores_size(), 3);
}

TEST_F(CtlTest, SeveralModelsLearnOfOneRunWhatEachWouldAlone) {
  for (const char* name : {"a", "alone", "late"})
    Expect(0, absl::StrCat("create ", name, " --dimension 2"));
  for (const char* name : {"arow", "arow-alone"})
    Expect(0, absl::StrCat("create ", name, " --dimension 2 --learner arow"));
  const std::string numbered = " --passes 3 --producer p --start-offset 0" + svmlight_;
  const auto both = Object("learn a --also arow" + numbered, and_);
  const auto& models = both.fields().at("models").list_value().values();
  ASSERT_EQ(models.size(), 2);
  EXPECT_EQ(models[1].struct_value().fields().at("model").string_value(), "models/arow");
  for (const auto& model : models) EXPECT_EQ(Number(model.struct_value(), "examples"), 12);
  for (const char* name : {"alone", "arow-alone"})
    Expect(0, absl::StrCat("learn ", name, " --passes 3", svmlight_), and_);
  EXPECT_EQ(Weights("a"), Weights("alone"));
  EXPECT_EQ(Weights("arow"), Weights("arow-alone"));
  // A run that is repeated gives each what it lacks.
  Expect(0, "learn a --also late" + numbered, and_);
  EXPECT_EQ(Examples("a"), 12);
  EXPECT_EQ(Weights("late"), Weights("alone"));
  // A producer's position in one model says nothing of another.
  Expect(0, "create new --dimension 2");
  Expect(0, "learn a --also new --producer p" + svmlight_, and_);
  Expect(0, "learn late" + svmlight_, and_);
  Expect(0, "learn late --also new" + svmlight_, and_);
  for (const auto& [name, examples] :
       std::map<std::string, uint64_t>{{"a", 16}, {"late", 20}, {"new", 8}})
    EXPECT_EQ(Examples(name), examples) << name;
  // Nothing is learned where one takes other examples or labels.
  Expect(0, "create words --named");
  Expect(0, "create classes --dimension 2 --classes 2");
  Expect(0, "create labels --dimension 2 --labels x,y");
  for (const char* other : {"words", "classes", "none", "a"})
    EXPECT_NE(CtlOut(absl::StrCat("learn a --also ", other, svmlight_), and_).exit_code, 0)
        << other;
  EXPECT_EQ(Examples("a"), 16);
}

TEST_F(CtlTest, AnEtagGuardsAgainstAChangeInBetween) {
  const auto created = Json<v1::Model>("create m --hash-bits 4");
  const auto updated =
      Json<v1::Model>("update m --margin-of-interest 0.5 --etag " + created.etag());
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_NE(updated.etag(), created.etag());
  Expect(1, "delete m --etag " + created.etag());
  EXPECT_EQ(Json<v1::Model>("freeze m --etag " + updated.etag()).state(), v1::MODEL_STATE_FROZEN);
}

TEST_F(CtlTest, AnAnalysisKeepsToItsLimitsAndReplacesTheWeightsOnDemand) {
  Expect(0, "create xor --dimension 2 --store-sample 10");
  const std::string xor_ = "1 1:-1 2:-1\n1 1:1 2:1\n-1 1:-1 2:1\n-1 1:1 2:-1\n";
  const auto learned = Object("learn xor --analyze" + svmlight_, xor_);
  EXPECT_TRUE(learned.fields().contains("analysis"));
  const auto separability = [this](const std::string& arguments) {
    return Json<v1::AnalysisResult>("analyze " + arguments).analysis().separability();
  };
  EXPECT_EQ(separability("xor"), v1::SEPARABILITY_NOT_SEPARABLE);
  // No proof takes fewer than three examples.
  EXPECT_EQ(separability("xor --max-certificate-examples 2"), v1::SEPARABILITY_UNDECIDED);
  Expect(0, "create and --dimension 2 --store-sample 10");
  Expect(0, "learn and" + svmlight_, and_);
  const auto result = Json<v1::AnalysisResult>("analyze and --replace-weights");
  EXPECT_EQ(result.new_revision(), Get("and").revision());
  Expect(1, "analyze and --replace-weights --if-revision 1");
  EXPECT_THAT(CtlOut("examples and -o json").out, HasSubstr("\"updateRevision\":\"1\""));
}

// The transcripts have the other commands.
TEST_F(CtlTest, AModelIsRolledBackToARevisionAndPassedOnByAPipe) {
  Expect(0, "create a --dimension 2");
  Expect(0, "learn a" + svmlight_, and_);
  const std::string learned = Weights("a");
  EXPECT_EQ(Json<v1::Snapshot>("snapshot a k").name(), "models/a/snapshots/k");
  const int64_t revision = Get("a").revision();
  Expect(0, "learn a" + svmlight_, "+1 1:-9 2:-9\n");
  EXPECT_NE(Weights("a"), learned);
  Expect(1, "rollback a --revision 0 --expected-revision 1");
  Expect(0, absl::StrCat("rollback a --revision ", revision));
  Expect(0, "export a - | " + Command("import b -"));
  for (const char* name : {"a", "b"}) EXPECT_EQ(Weights(name), learned) << name;
  EXPECT_EQ(Json<v1::Alias>("alias prod a").model(), "models/a");
  EXPECT_EQ(Json<v1::ChallengeAliasResponse>("alias prod --challenger b").outcome(),
            v1::CHALLENGE_OUTCOME_TOO_FEW_EXAMPLES);
}

// Interrupted after its first pass, and repeated: what the server has is known by its number, and the
// order is the same.
TEST_F(CtlTest, ARepeatedShuffledRunLearnsEachExampleOfEachPassOnce) {
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    const int x = i * 7919 % 41 - 20;
    const int y = i * 104729 % 37 - 18;
    absl::StrAppend(&lines, x + 2 * y + i % 3 > 0 ? "+1" : "-1", " 1:", x, " 2:", y, "\n");
  }
  const auto learn = [&](const std::string& arguments) {
    return Object("learn " + arguments + " --batch 7" + svmlight_, lines);
  };
  for (const char* model : {"whole", "parts", "plain"})
    Expect(0, absl::StrCat("create ", model, " --dimension 2"));
  const std::string numbered = " --shuffle 5 --producer p --start-offset ";
  EXPECT_EQ(Number(learn("whole --passes 3" + numbered + "0"), "examples"), 600);
  EXPECT_EQ(Number(learn("parts" + numbered + "0"), "examples"), 200);
  const auto second = learn("parts --passes 2" + numbered + "0");
  EXPECT_EQ(Number(second, "examples"), 200);
  EXPECT_EQ(Number(second, "duplicates"), 200);
  // The third pass, by its own numbers.
  EXPECT_EQ(Number(learn("parts --passes-before 2" + numbered + "400"), "examples"), 200);
  EXPECT_EQ(Weights("parts"), Weights("whole"));
  learn("plain --passes 3");
  EXPECT_NE(Weights("plain"), Weights("whole"));
}

TEST_F(CtlTest, AResultThatCannotBeWrittenIsAnErrorOfEachCommand) {
  Expect(0, "create m --dimension 2 --store-sample 10");
  Expect(0, "learn m" + svmlight_, and_);
  Expect(0, "snapshot m s");
  Expect(0, "alias a m");
  for (const std::string& command :
       {std::string("list"), std::string("get m"), std::string("get m --weights -o json"),
        "learn m -o json" + svmlight_, "predict m" + svmlight_, "predict m --summary" + svmlight_,
        "explain m" + svmlight_, std::string("watch m"), std::string("analyze m"),
        std::string("examples m"), std::string("alias"), std::string("snapshot m"),
        std::string("export m -"), std::string("health"), std::string("learn --help"),
        std::string("--version")})
    EXPECT_EQ(CtlOut(command + " > /dev/full 2>&1", and_).exit_code, 1) << command;
  // An input without end, too.
  EXPECT_EQ(
      RunCommand("yes 1:1 | " + Command("predict m" + svmlight_ + "2>&1 > /dev/full")).exit_code,
      1);
  Expect(1, "export m " + dir_.path() + "/none/m.model");
}

TEST_F(CtlTest, ABenchCountsWhatItSentAndLeavesNoModel) {
  Expect(0, "create hashed --hash-bits 12");
  Expect(0, "create named --named");
  for (const char* work : {"learn --mistakes 0.25", "predict --named", "call",
                           "learn --dense --rate 1000", "learn --named --hash-bits 12",
                           "predict hashed", "predict hashed --named", "learn named"}) {
    google::protobuf::Struct report;
    // A busy machine may leave no time for two messages.
    for (double seconds = 0.1; Number(report, "messages") < 2 && seconds < 100; seconds *= 4) {
      report = Object(absl::StrCat("bench --streams 2 --batch 10 --size 1000 --warmup 0 --seconds ",
                                   seconds, " --work ", work));
    }
    ASSERT_GE(Number(report, "messages"), 2) << work;
    EXPECT_EQ(Number(report, "examples") + Number(report, "rowErrors"),
              10 * Number(report, "messages"))
        << work;
  }
  EXPECT_EQ(Json<v1::ListModelsResponse>("list").models_size(), 2);
}

TEST_F(CtlTest, HealthAsksWhereTheEnvironmentSaysThatTheServerServes) {
  const std::string port = server_.address().substr(server_.address().rfind(':'));
  for (const auto& [environment, code] : std::map<std::string, int>{
           {"PERCEPTROND_ADDRESS=" + server_.address(), 0},
           {"PERCEPTROND_ADDRESS=0.0.0.0" + port + ",unix:/none", 0},
           {"PERCEPTROND_ADDRESS='*" + port + "'", 0},
           {"PERCEPTROND_ADDRESS=unix:/none PERCEPTROND_SERVER=" + server_.address(), 0},
           {"PERCEPTROND_ADDRESS=unix:/none", 1}}) {
    const CommandResult asked =
        RunCommand("env -u PERCEPTROND_SERVER -u PERCEPTROND_ADDRESS " + environment + " " +
                   PerceptronctlBinary() + " health 2>&1");
    EXPECT_EQ(asked.exit_code, code) << environment << asked.out;
  }
  EXPECT_EQ(server_.Terminate(), 0);
  Expect(1, "health");
}

class CtlTraceTest : public CtlTest {
 protected:
  // Every call counts as slow, so that the log states it.
  CtlTraceTest() : CtlTest({"--slow-call", "1us"}) {}
};

TEST_F(CtlTraceTest, TheEnvironmentNamesTheTraceOfEachCallAndStream) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  setenv("TRACEPARENT", ("00-" + trace + "-00f067aa0ba902b7-01").c_str(), 1);
  Expect(0, "create m --dimension 2");
  Expect(0, "learn m" + svmlight_, and_);
  unsetenv("TRACEPARENT");
  for (const char* method : {"ModelService/CreateModel", "LearningService/LearnStream"})
    EXPECT_THAT(server_.AwaitLog(absl::StrCat("slow call method=/perceptron.v1.", method, " ")),
                HasSubstr(" trace_id=" + trace + " span_id=00f067aa0ba902b7 "));
}

class CtlRunTest : public CtlTest {
 protected:
  // A run whose input the test writes, piece by piece.
  class Run {
   public:
    Run(const CtlRunTest& test, const std::string& arguments)
        : Run(test.Command(arguments), test.dir_.path() + "/run") {}
    Run(const std::string& command, const std::string& path) : path_(path) {
      for (const char* of_last_run : {".pid", ".out", ".err"})
        std::filesystem::remove(path_ + of_last_run);
      // Servers that the test starts must not hold the input open.
      input_ = popen(absl::StrCat("echo $$ > ", path_, ".pid; exec ", command, " > ", path_,
                                  ".out 2> ", path_, ".err")
                         .c_str(),
                     "we");
      while (pid() == 0) {
      }
    }
    void Write(const std::string& lines) {
      std::fputs(lines.c_str(), input_);
      std::fflush(input_);
    }
    void Interrupt() const { kill(pid(), SIGINT); }
    // Ends the input and returns the exit code.
    int Wait() { return WEXITSTATUS(pclose(input_)); }
    std::string out() const { return ReadAll(path_ + ".out"); }
    std::string err() const { return ReadAll(path_ + ".err"); }
    // True once it has prepared for signals.
    bool CatchesInterrupts() const {
      const std::string process = absl::StrCat("/proc/", pid());
      std::error_code ended;
      if (std::filesystem::read_symlink(process + "/exe", ended) != PerceptronctlBinary())
        return false;
      const std::string status = ReadAll(process + "/status");
      const size_t caught = status.find("SigCgt:");
      return caught != std::string::npos &&
             (std::stoull(status.substr(caught + 7), nullptr, 16) & (1U << (SIGINT - 1))) != 0;
    }

   private:
    pid_t pid() const { return std::atoi(ReadAll(path_ + ".pid").c_str()); }
    const std::string path_;
    std::FILE* input_ = nullptr;
  };
};

TEST_F(CtlRunTest, ARunOutlivesItsServerAndEachModelLearnsEachExampleOnce) {
  for (const char* name : {"a", "b"}) Expect(0, absl::StrCat("create ", name, " --dimension 2"));
  Run run(*this, "learn a --also b -o json" + svmlight_);
  // Each is a mistake, so that its count is durable.
  std::string rows;
  for (int i = 0; i < 50; ++i) rows += "+1 1:1\n-1 1:1\n";
  for (uint64_t learned = 100; learned <= 300; learned += 100) {
    run.Write(rows);
    while (Examples("a") < learned || Examples("b") < learned) {
    }
    server_.Kill();
    Restart();
  }
  EXPECT_EQ(run.Wait(), 0) << run.err();
  const auto summary = Parse<google::protobuf::Struct>(run.out());
  for (const auto& value : summary.fields().at("models").list_value().values()) {
    const google::protobuf::Struct& model = value.struct_value();
    EXPECT_EQ(Number(model, "rows"), 300);
    // Answers are lost with the server that gave them.
    EXPECT_EQ(
        Number(model, "examples") + Number(model, "duplicates") + Number(model, "lostAnswers"),
        300);
  }
  for (const char* name : {"a", "b"}) EXPECT_EQ(Examples(name), 300) << name;
}

TEST_F(CtlRunTest, AnInterruptEndsLearningWithASummaryOfAllThatWasRead) {
  Expect(0, "create m --dimension 2");
  Run run(*this, "learn m -o json" + svmlight_);
  run.Write(and_);
  while (Examples("m") < 4) {
  }
  run.Interrupt();
  EXPECT_EQ(run.Wait(), 130);
  const auto summary = Parse<google::protobuf::Struct>(run.out());
  for (const char* figure : {"rows", "examples"}) EXPECT_EQ(Number(summary, figure), 4) << figure;
  EXPECT_EQ(Number(summary, "lostAnswers"), 0);
}

TEST_F(CtlRunTest, AnInterruptEndsACommandThatWaitsForTheServerAndLeavesNothing) {
  Expect(0, "create m --dimension 2 --store-sample 10");
  Expect(0, "learn m" + svmlight_, and_);
  const std::string file = dir_.path() + "/m.model";
  Expect(0, "export m " + file);
  const std::string folder = dir_.path() + "/folder";
  std::filesystem::create_directory(folder);
  server_.Signal(SIGSTOP);
  for (const std::string& command : {"export m " + folder + "/m.model", "import n " + file,
                                     std::string("analyze m --replace-weights")}) {
    Run run(*this, command);
    while (!run.CatchesInterrupts()) {
    }
    run.Interrupt();
    EXPECT_EQ(run.Wait(), 130) << command << run.err();
    EXPECT_EQ(run.out(), "");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  server_.Signal(SIGCONT);
  Expect(1, "get n");
}

TEST_F(CtlRunTest, WithoutAnAnswerInTimeTheExitCodeIsFour) {
  Expect(0, "create m --dimension 2");
  server_.Signal(SIGSTOP);
  Expect(4, "list --timeout 0.2");
  Expect(4, "learn m --timeout 0.2" + svmlight_, and_);
  server_.Signal(SIGCONT);
}

TEST_F(CtlRunTest, WatchPrintsEachChangeGoesOnAfterARollbackAndEndsWellOnAnInterrupt) {
  Expect(0, "create m --dimension 2");
  Expect(0, "snapshot m zero");
  Run run(*this, "watch m --interval 0.05 -o json");
  const auto await = [&](int64_t revision) {
    WaitUntil([&] {
      return absl::StrContains(run.out(), absl::StrCat("\"revision\":\"", revision, "\""));
    });
  };
  await(0);
  Expect(0, "learn m" + svmlight_, "+1 1:1\n");
  await(1);
  Expect(0, "rollback m zero");
  await(2);
  run.Interrupt();
  EXPECT_EQ(run.Wait(), 0) << run.err();
}

// A run of predictions by an alias that moves from a model of the labels ham and spam to another in the middle of it.
TEST_F(CtlRunTest, PredictionsByAnAliasAreNamedByTheModelThatAnsweredOrEndWhereThatHasNoMeaning) {
  Expect(0, "create a --text --labels ham,spam");
  Expect(0, "learn a - --format text", "spam\tfree\nham\tlunch\n");
  Expect(0, "create two --text --labels no,yes");
  Expect(0, "create many --text --classes 3 --labels red,green,blue");
  Expect(0, "create same --text --labels ham,spam --tie positive");
  Expect(0, "learn many - --format text", "blue\tfree\nred\tlunch\n");
  const std::tuple<std::string, std::string, int, std::string> moves[] = {
      {"two", "free\n", 0, "\nno\t"},
      {"many", "free\n", 0, "\nblue\t"},
      {"same", "spam\tfree\n", 0, "\nspam\t"},
      // The label was read as one of a's.
      {"two", "spam\tfree\n", 1, ""},
  };
  for (const auto& [model, row, exit_code, answer] : moves) {
    Expect(0, "alias prod a");
    Run run(*this, "predict aliases/prod - --format text");
    run.Write(row);
    WaitUntil([&] { return run.out().ends_with('\n'); });
    Expect(0, "alias prod " + model);
    run.Write(row);
    EXPECT_EQ(run.Wait(), exit_code) << model << run.err();
    EXPECT_THAT(run.out(), ::testing::StartsWith("spam\t"));
    EXPECT_THAT(run.out(), HasSubstr(answer)) << model;
  }
}

TEST_F(CtlRunTest, OnATerminalDeleteAsksPredictionsHaveAHeaderAndAWatchNamesTheLabels) {
  const auto terminal = [&](const std::string& arguments) {
    // Some shells stay and die of the interrupt themselves.
    return "script -qec 'exec " + Command(arguments) + "' /dev/null";
  };
  const auto on_terminal = [&](const std::string& arguments, const std::string& typed) {
    return RunCommand(terminal(arguments), typed);
  };
  if (on_terminal("--version", "").exit_code != 0) GTEST_SKIP() << "no pseudo-terminals here";
  Expect(0, "create m --dimension 2 --learner logistic-regression --labels ham,spam");
  const std::string file = Write("rows.svm", "1:1\n");
  EXPECT_THAT(on_terminal("predict m --index-base 1 " + file, "").out,
              HasSubstr("LABEL\tSCORE\tDISTANCE\tP(spam)"));
  Run watch(terminal("watch m"), dir_.path() + "/watch");
  WaitUntil([&] { return absl::StrContains(watch.out(), "-1 ham, +1 spam"); });
  watch.Write("\x03");
  EXPECT_EQ(watch.Wait(), 0);
  EXPECT_EQ(on_terminal("delete m", "n\n").exit_code, 130);
  Expect(0, "get m");
  EXPECT_EQ(on_terminal("delete m", "y\n").exit_code, 0);
  Expect(1, "get m");
}

}  // namespace
}  // namespace perceptrond::testing
