#include "tests/bench/other_implementations.h"

#include <algorithm>

namespace perceptrond {
namespace {

using testing::Paper;
using testing::Vector;
namespace v1 = ::perceptron::v1;

// As River 0.10 has PA-I: the step is measured by the example without the offset's coordinate, and
// the offset moves by it all the same.
class RiversPassiveAggressive final : public Paper {
 public:
  RiversPassiveAggressive(size_t dimension, double c) : Paper(dimension), c_(c) {}

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    const double loss = std::max(0.0, 1 - signed_score);
    const double square = testing::Product(x, x) - x.back() * x.back();
    if (loss == 0 || square == 0) return false;
    Add(y * std::min(c_, loss / square), x);
    return true;
  }
  const double c_;
};

constexpr auto kNone = std::nullopt;

// Without a coordinate for the offset; a tie is answered +1, and a mistake if that is wrong.
void AsSol(v1::Learner& learner) {
  learner.set_bias_input(0);
  learner.set_tie_rule(v1::TIE_RULE_POSITIVE);
}

// The first class answers a tie, and a mistake is a wrong answer.
void AsJubatus(v1::Learner& learner) { learner.set_tie_rule(v1::TIE_RULE_POSITIVE); }

constexpr HowToMeasure kByAnswer{.by_answer = true};
constexpr HowToMeasure kTwoClasses{.by_answer = true, .classes = 2};

std::vector<Counterpart> Perceptrons() {
  return {{{"scikit-learn, whose offset moves a hundredth as far on sparse rows",
            {{"agaricus", {0.81, {9.31, 0.56}}},
             {"sms_tfidf", {4.46, {3.05, 2.06}}},
             {"mnist38", {8.50, {5.20, 9.10}}}}},
           {"perceptron",
            {},
            [](v1::Learner& learner) { learner.set_bias_input(0.1F); },
            "--bias 0.10000000149"},
           kByAnswer},
          {{"River",
            {{"agaricus", {0.75, {6.95, kNone}}},
             {"sms_tfidf", {6.50, {1.52, kNone}}},
             {"mnist38", {8.30, {5.30, kNone}}},
             {"elec2", {14.26, {}}}}},
           {"perceptron", {}, [](v1::Learner&) {}},
           kByAnswer},
          {{"SOL",
            {{"agaricus", {0.88, {10.49, 0.68}}},
             {"sms_tfidf", {6.26, {4.66, 3.58}}},
             {"mnist38", {7.90, {9.50, 8.70}}},
             {"elec2", {13.40, {}}}}},
           {"perceptron", {}, &AsSol, "--no-bias --tie positive"},
           kByAnswer},
          {{"Jubatus",
            {{"agaricus", {0.86, {5.77, 1.80}}},
             {"sms_tfidf", {6.80, {1.43, 1.52}}},
             {"mnist38", {8.30, {5.30, 6.90}}},
             {"elec2", {14.26, {}}}}},
           {"perceptron", {}, &AsJubatus, "--classes 2 --tie positive"},
           kTwoClasses},
          {{"a float64 reference that stops after a pass without a mistake",
            {{"agaricus", {kNone, {3.23, 1.18}}},
             {"sms_tfidf", {kNone, {1.88, 1.61}}},
             {"mnist38", {kNone, {5.50, 5.10}}}}},
           {"averaged-perceptron", {}, [](v1::Learner&) {}, "--until-converged"},
           {.until_converged = true}}};
}

std::vector<Counterpart> MarginRules() {
  return {{{"Jubatus",
            {{"agaricus", {0.40, {5.21, 1.24}}},
             {"sms_tfidf", {3.92, {1.88, 1.08}}},
             {"mnist38", {6.15, {5.50, 5.50}}},
             {"elec2", {13.77, {}}}}},
           {"passive-aggressive", {}, &AsJubatus, "--classes 2 --tie positive"},
           kTwoClasses},
          {{"SOL, C = 1",
            {{"agaricus", {0.38, {5.28, 0.99}}},
             {"sms_tfidf", {3.05, {2.06, 2.42}}},
             {"mnist38", {5.95, {5.40, 6.10}}},
             {"elec2", {13.35, {}}}}},
           {"passive-aggressive-i", {}, &AsSol, "--no-bias --tie positive"},
           kByAnswer},
          {{"River, C = 1, whose N leaves the offset out",
            {{"agaricus", {0.41, {5.40, kNone}}},
             {"sms_tfidf", {4.04, {1.88, kNone}}},
             {"mnist38", {6.20, {5.40, kNone}}},
             {"elec2", {14.10, {}}}}},
           {"passive-aggressive-i", testing::Of<RiversPassiveAggressive>(1.0)},
           kByAnswer},
          {{"Jubatus",
            {{"agaricus", {0.26, {2.30, 0.00}}},
             {"sms_tfidf", {2.69, {1.43, 1.43}}},
             {"mnist38", {5.95, {5.20, 5.10}}},
             {"elec2", {25.15, {}}}}},
           {"arow", {}, &AsJubatus, "--classes 2 --tie positive"},
           kTwoClasses}};
}

}  // namespace

std::vector<Counterpart> Counterparts() {
  std::vector<Counterpart> all = Perceptrons();
  for (Counterpart& one : MarginRules()) all.push_back(std::move(one));
  return all;
}

std::vector<OtherImplementation> OtherRules() {
  return {{"Vowpal Wabbit, hinge loss, adaptive steps",
           {{"agaricus", {0.51, {2.17, 0.00}}},
            {"sms_tfidf", {3.09, {1.25, 1.34}}},
            {"mnist38", {4.05, {4.80, 4.70}}},
            {"elec2", {24.66, {}}}}},
          {"LIBLINEAR, hinge loss, at its optimum",
           {{"agaricus", {kNone, {kNone, 0.00}}},
            {"sms_tfidf", {kNone, {kNone, 1.08}}},
            {"mnist38", {kNone, {kNone, 6.90}}}}}};
}

}  // namespace perceptrond
