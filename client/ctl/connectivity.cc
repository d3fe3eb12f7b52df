#include "client/ctl/connectivity.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

// About a second of them: long enough to wonder.
constexpr int kLooksBeforeExplaining = 5;

}  // namespace

void Connectivity::Lost(const absl::Status& status) {
  if (away_.exchange(true)) return;
  Complain(absl::StrCat("connection lost (", PrintableInLine(std::string(status.message())),
                        "); reconnecting"));
}

StreamInterrupt::StreamInterrupt(const Connectivity* connectivity, std::function<void()> cancel)
    : connectivity_(connectivity), cancel_(std::move(cancel)), watch_([this] { return Look(); }) {}

bool StreamInterrupt::Look() {
  if (connectivity_->away()) {
    cancel_();
    return false;
  }
  if (++looks_ == kLooksBeforeExplaining) {
    Complain("waiting for the server to answer what was sent; Ctrl-C again ends at once");
  }
  return true;
}

}  // namespace perceptrond::client
