#include "server/sessions/learn_target.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/rpc/message.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::Status CheckAdditionalModels(const v1::LearnStreamRequest& first) {
  constexpr int kMost = 63;
  const int count = first.additional_models_size();
  if (count > kMost) {
    return InvalidField("INVALID_FIELD", "additional_models",
                        absl::StrCat("has ", count, " models; at most ", kMost));
  }
  absl::flat_hash_set<std::string> models = {first.model()};
  for (int i = 0; i < count; ++i) {
    const std::string field = absl::StrCat("additional_models[", i, "]");
    if (absl::Status status = CheckModelName(first.additional_models(i), field); !status.ok())
      return status;
    if (!models.insert(first.additional_models(i)).second) {
      return InvalidField("INVALID_FIELD", field,
                          "is a model that the stream names before; name each once");
    }
  }
  const int resumes = first.producer().additional_resumes_size();
  if (resumes == 0 || resumes == count) return absl::OkStatus();
  return InvalidField("INVALID_FIELD", "producer.additional_resumes",
                      absl::StrCat("has ", resumes, " claims for ", count,
                                   " additional models; send one for each, or none"));
}

}  // namespace

absl::Status SeveralModelsInFleet() {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FLEET_UNSUPPORTED",
                   "the servers of a fleet learn one model a stream, since different servers write "
                   "the models; open a stream for each");
}

absl::Status LearnTarget::Read(const v1::LearnStreamRequest& first, size_t number) {
  if (first.model().empty()) {
    return InvalidField("MISSING_MODEL", "model",
                        "is missing; the first message of a stream must name its model");
  }
  if (absl::Status status = CheckModelName(first.model(), "model"); !status.ok()) return status;
  if (absl::Status status = CheckAdditionalModels(first); !status.ok()) return status;
  first_model_ = first.model();
  additional_models_ = {first.additional_models().begin(), first.additional_models().end()};
  model_ = number == 0 ? first_model_ : additional_models_[number - 1];
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
  if (!later.model().empty() && later.model() != first_model_) return differs("model");
  const auto& models = later.additional_models();
  if (!models.empty() && !std::equal(models.begin(), models.end(), additional_models_.begin(),
                                     additional_models_.end()))
    return differs("additional_models");
  if (later.has_producer() && later.producer().id() != producer_) return differs("producer.id");
  if (later.producer().has_resume()) return differs("producer.resume");
  if (!later.producer().additional_resumes().empty()) return differs("producer.additional_resumes");
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
