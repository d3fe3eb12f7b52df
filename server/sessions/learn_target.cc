#include "server/sessions/learn_target.h"

#include "core/error/error.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

}  // namespace

absl::Status LearnTarget::Read(const v1::LearnStreamRequest& first) {
  if (first.model().empty()) {
    return InvalidField("MISSING_MODEL", "model",
                        "is missing; the first message of a stream must name its model");
  }
  if (absl::Status status = CheckModelName(first.model(), "model"); !status.ok()) return status;
  model_ = first.model();
  producer_ = first.producer().id();
  if (absl::Status status = CheckId(producer_, "producer.id"); !status.ok()) return status;
  if (first.has_producer() && producer_.empty()) {
    return InvalidField(
        "INVALID_FIELD", "producer.id",
        "is empty; name the producer, or leave producer out for a stream without one");
  }
  if (absl::Status status = CheckStreamOrder(first.order()); !status.ok()) return status;
  if (absl::Status status = CheckResultDetail(first.result_detail()); !status.ok()) return status;
  detail_ = first.result_detail() != v1::RESULT_DETAIL_UPDATES;
  include_report_ = first.include_report();
  relaxed_ = first.order() == v1::STREAM_ORDER_RELAXED;
  name_table_size_ = first.name_table_size();
  return absl::OkStatus();
}

absl::Status LearnTarget::CheckSame(const v1::LearnStreamRequest& later) const {
  const auto differs = [](const char* field) {
    return InvalidField(
        "INVALID_FIELD", field,
        "differs from the stream's first message; leave it out, or open another stream");
  };
  if (!later.model().empty() && later.model() != model_) return differs("model");
  if (later.has_producer() && later.producer().id() != producer_) return differs("producer.id");
  if (later.producer().has_resume()) return differs("producer.resume");
  if (later.result_detail() != v1::RESULT_DETAIL_UNSPECIFIED &&
      (later.result_detail() == v1::RESULT_DETAIL_UPDATES) == detail_)
    return differs("result_detail");
  if (later.include_report() && !include_report_) return differs("include_report");
  if (later.name_table_size() > 0 && later.name_table_size() != name_table_size_)
    return differs("name_table_size");
  if (absl::Status status = CheckStreamOrder(later.order()); !status.ok()) return status;
  if (later.order() != v1::STREAM_ORDER_UNSPECIFIED &&
      (later.order() == v1::STREAM_ORDER_RELAXED) != relaxed_)
    return differs("order");
  return absl::OkStatus();
}

}  // namespace perceptrond
