// A learner and its settings as text, for the command line and the status page. Names and settings
// come from the messages of perceptron/v1/learner.proto: a new rule needs nothing here.
#pragma once

#include <string>

namespace perceptron::v1 {
class Learner;
}

namespace perceptrond {

// "arow"; with a wrapper "averaged-perceptron".
std::string LearnerName(const ::perceptron::v1::Learner& learner);

// Name, settings, bias input, class weights and tie rule in one line: "arow, regularization 1, bias
// input 1, a score of 0 is a mistake".
std::string FormatLearner(const ::perceptron::v1::Learner& learner);

}  // namespace perceptrond
