// How well predicted probabilities agree with what happened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "client/ctl/output.h"

namespace perceptrond::client {

// In constant memory. A plain value. Preconditions of all figures: total() > 0.
class Calibration {
 public:
  // Intervals of the same width, each without its lower end, but for the first.
  static constexpr size_t kBins = 10;

  // Adds a prediction that an event happens with this probability. NaN is left out.
  void Add(double probability, bool happened);
  void Merge(const Calibration& other);

  uint64_t total() const { return total_; }
  // The mean of (p - y)^2, y 1 if it happened (Brier 1950).
  double brier_score() const { return squares_ / static_cast<double>(total_); }
  // The mean of -ln of the probability of what happened, which is taken as at least 2^-23.
  double log_loss() const { return logs_ / static_cast<double>(total_); }
  // The mean over the examples of |mean probability - fraction that happened| of their interval
  // (Naeini, Cooper, Hauskrecht 2015).
  double expected_error() const;

  // A line for each interval that has examples. `of` and `event` name the probability and what
  // happened.
  std::string Table(std::string_view of, std::string_view event) const;
  // [{"from": 0, "to": 0.1, "examples": "12", "meanProbability": 0.04, "fraction": 0.08}, ...]
  std::string Json() const;

 private:
  struct Bin {
    uint64_t examples = 0;
    uint64_t happened = 0;
    double sum = 0;

    double mean() const { return sum / static_cast<double>(examples); }
    double fraction() const {
      return static_cast<double>(happened) / static_cast<double>(examples);
    }
  };

  uint64_t total_ = 0;
  double squares_ = 0;
  double logs_ = 0;
  std::array<Bin, kBins> bins_;
};

// The same scores of the probabilities of several classes. In constant memory. A plain value.
// Preconditions of both figures: total() > 0.
class ClassScores {
 public:
  // Adds an example of class `actual` and the probability of each class, by number. NaN: the class does
  // not exist, so that its probability is 0, like that of a class that is not among them.
  void Add(std::span<const float> probabilities, int actual);

  uint64_t total() const { return total_; }
  // The mean of the sum of (p - y)^2 over the classes, y 1 for the example's class (Brier 1950): from 0
  // to 2. With two classes twice Calibration's.
  double brier_score() const { return squares_ / static_cast<double>(total_); }
  // As Calibration's.
  double log_loss() const { return logs_ / static_cast<double>(total_); }

 private:
  uint64_t total_ = 0;
  double squares_ = 0;
  double logs_ = 0;
};

}  // namespace perceptrond::client
