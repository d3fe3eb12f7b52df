// The window of the latest examples: its error and risk, and how it is stored with the counters.
#include <algorithm>
#include <cmath>

#include "core/convergence/progress.h"

namespace perceptrond {

namespace storage = ::perceptron::storage::v1;

uint64_t Progress::WindowBegin() const {
  const uint64_t examples = counters_.report().examples();
  return examples - std::min(kWindow, examples - window_start_);
}

void Progress::BeginWindows() {
  adwin_ = Adwin();
  window_.clear();
  window_start_ = counters_.report().examples();
}

void Progress::ReportWindow(ConvergenceReport& report) const {
  const uint64_t begin = WindowBegin();
  const uint64_t size = report.examples() - begin;
  report.set_window_examples(size);
  if (size == 0) return;
  double mistakes = 0;
  double risk = 0;
  for (const WindowMistakes& one : window_) {
    if (one.example <= begin) continue;
    mistakes += static_cast<double>(one.mistakes);
    risk += one.risk;
  }
  report.set_window_error(mistakes / static_cast<double>(size));
  report.set_window_risk(risk / static_cast<double>(size));
}

// Only buckets that are wholly in the window: what is stored then does not depend on whether their
// mistakes are known one by one.
storage::Counters Progress::StoredCounters() const {
  Counters counters = counters_;
  uint64_t begin = WindowBegin();
  if (begin > window_start_) begin = (begin + kBucket - 1) / kBucket * kBucket;
  counters.set_window_start(begin);
  counters.set_window_end(counters.report().examples());
  for (const WindowMistakes& one : window_) {
    if (one.example <= begin) continue;
    const auto bucket = static_cast<int>((one.example - 1) / kBucket - begin / kBucket);
    while (counters.window_mistakes_size() <= bucket) {
      counters.add_window_mistakes(0);
      counters.add_window_risks(0);
    }
    *counters.mutable_window_mistakes()->Mutable(bucket) += static_cast<uint32_t>(one.mistakes);
    *counters.mutable_window_risks()->Mutable(bucket) += one.risk;
  }
  return counters;
}

Progress::Progress(const Counters& counters)
    : counters_(counters), window_start_(counters.report().examples()) {
  if (counters.has_window_start() && counters.window_end() == counters.report().examples())
    RestoreWindow();
  counters_.clear_window_start();
  counters_.clear_window_end();
  counters_.clear_window_mistakes();
  counters_.clear_window_risks();
}

void Progress::RestoreWindow() {
  const uint64_t examples = counters_.report().examples();
  // Whatever is stored, the window has at most as many mistakes as examples.
  window_start_ = std::min(counters_.window_start(), examples);
  uint64_t begin = window_start_;
  for (int i = 0; i < counters_.window_mistakes_size() && begin < examples; ++i) {
    const uint64_t end = std::min((begin / kBucket + 1) * kBucket, examples);
    const double risk = i < counters_.window_risks_size() ? counters_.window_risks(i) : 0;
    const uint64_t mistakes = std::min<uint64_t>(counters_.window_mistakes(i), end - begin);
    if (mistakes > 0)
      window_.push_back({begin + (end - begin + 1) / 2, mistakes, std::isfinite(risk) ? risk : 0});
    begin = end;
  }
}

}  // namespace perceptrond
