#include "client/ctl/commands/expire_after.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace perceptrond::client {

std::string SetDuration(const std::string& flag, const std::string& text,
                        google::protobuf::Duration* duration) {
  absl::Duration time;
  absl::string_view days = text;
  double number = 0;
  const bool in_days = absl::ConsumeSuffix(&days, "d") && absl::SimpleAtod(days, &number);
  if (in_days) time = number * absl::Hours(24);
  if ((!in_days && !absl::ParseDuration(text, &time)) || time <= absl::ZeroDuration() ||
      time == absl::InfiniteDuration()) {
    return absl::StrCat(flag, " ", text, " is no time above 0, such as 90s, 12h or 30d");
  }
  duration->set_seconds(absl::ToInt64Seconds(time));
  duration->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time % absl::Seconds(1))));
  return "";
}

std::string SetExpireAfter(const std::string& text, perceptron::v1::Model* model) {
  return SetDuration("--expire-after", text, model->mutable_expire_after());
}

}  // namespace perceptrond::client
