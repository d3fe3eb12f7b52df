// Means and standard deviations of figures that come one by one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace perceptrond {

class Spread {
 public:
  void Add(double value) {
    ++count_;
    sum_ += value;
    squares_ += value * value;
  }
  // "19.19 ± 0.70".
  std::string Text() const {
    const double mean = sum_ / count_;
    char text[64];
    std::snprintf(text, sizeof text, "%.2f ± %.2f", mean,
                  std::sqrt(std::max(0.0, squares_ / count_ - mean * mean)));
    return text;
  }

 private:
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

// Of a learner's errors: progressive, and held out after one pass and after the last.
class ErrorSpreads {
 public:
  // The tables' figures, of two labels or of several classes.
  template <typename Figures>
  void Add(const Figures& figures) {
    progressive_.Add(figures.progressive);
    for (int at : {0, 1}) held_out_[at].Add(figures.held_out[at]);
  }
  static void PrintHeading() {
    std::puts("| learner | progressive % | held out, 1 pass % | held out, 10 passes % |");
    std::puts("|---|---|---|---|");
  }
  void PrintRow(const std::string& learner) const {
    std::printf("| %s | %s | %s | %s |\n", learner.c_str(), progressive_.Text().c_str(),
                held_out_[0].Text().c_str(), held_out_[1].Text().c_str());
  }

 private:
  Spread progressive_;
  Spread held_out_[2];
};

}  // namespace perceptrond
