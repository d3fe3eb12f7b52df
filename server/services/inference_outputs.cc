#include "server/services/inference_outputs.h"

#include <algorithm>
#include <limits>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "core/model/views.h"
#include "server/services/inference_tensor.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using Kind = InferenceOutput::Kind;

constexpr int64_t kAny = -1;

void AppendName(const InferenceOutput& output, std::string* text) {
  absl::StrAppend(text, output.name);
}

// Writes tensors to a response, one after the other.
class TensorWriter {
 public:
  TensorWriter(bool raw, ::inference::ModelInferResponse& response)
      : raw_(raw), response_(response) {}

  void Begin(const InferenceOutput& output, std::vector<int64_t> shape) {
    tensor_ = response_.add_outputs();
    tensor_->set_name(std::string(output.name));
    tensor_->set_datatype(std::string(output.datatype));
    tensor_->mutable_shape()->Add(shape.begin(), shape.end());
    if (raw_) bytes_ = response_.add_raw_output_contents();
  }
  void Floats(std::span<const float> values) {
    if (raw_) return AppendRaw(values);
    tensor_->mutable_contents()->mutable_fp32_contents()->Add(values.begin(), values.end());
  }
  void Int32s(std::span<const int32_t> values) {
    if (raw_) return AppendRaw(values);
    tensor_->mutable_contents()->mutable_int_contents()->Add(values.begin(), values.end());
  }
  void Int64s(std::span<const int64_t> values) {
    if (raw_) return AppendRaw(values);
    tensor_->mutable_contents()->mutable_int64_contents()->Add(values.begin(), values.end());
  }
  void String(const std::string& value) {
    if (!raw_) return tensor_->mutable_contents()->add_bytes_contents(value);
    AppendLittleEndian(static_cast<uint32_t>(value.size()), *bytes_);
    bytes_->append(value);
  }

 private:
  template <typename T>
  void AppendRaw(std::span<const T> values) {
    bytes_->reserve(values.size_bytes());
    for (const T value : values) AppendLittleEndian(value, *bytes_);
  }

  const bool raw_;
  ::inference::ModelInferResponse& response_;
  ::inference::ModelInferResponse::InferOutputTensor* tensor_ = nullptr;
  std::string* bytes_ = nullptr;
};

template <typename T>
std::span<const T> OutputView(const google::protobuf::RepeatedField<T>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

bool HasNames(const ModelSettings& settings) {
  return settings.is_multiclass() ? settings.named_classes() : !settings.label_names.empty();
}

// The number of classes; kAny if the model may still add classes.
int64_t Classes(const ModelSettings& settings) {
  return settings.new_classes == NewClasses::kNone ? settings.learner.classes.max : kAny;
}

// The name of a predicted label; "" if the model has no class yet.
std::string LabelName(const ModelSettings& settings, const std::vector<std::string>& names,
                      int32_t label) {
  const int32_t position = settings.is_multiclass() ? label : (label > 0 ? 1 : 0);
  return position < 0 ? "" : names[static_cast<size_t>(position)];
}

// The contents of each output tensor.
class OutputContents {
 public:
  OutputContents(const Model& model, const v1::PredictResponse& prediction)
      : settings_(model.settings()),
        prediction_(prediction),
        // Read after the prediction; a class that was added since is at the end.
        names_(HasNames(settings_) ? LabelNames(model) : std::vector<std::string>()) {}

  void Append(const InferenceOutput& output, TensorWriter& writer) const {
    const int64_t rows = prediction_.predicted_labels_size();
    switch (output.kind) {
      case Kind::kLabel:
        writer.Begin(output, {rows});
        return AppendLabels(writer);
      case Kind::kScore:
        writer.Begin(output, {rows});
        return writer.Floats(OutputView(prediction_.scores()));
      case Kind::kDistance:
        writer.Begin(output, {rows});
        return AppendDistances(writer);
      case Kind::kProbability:
        writer.Begin(output, {rows});
        return writer.Floats(OutputView(prediction_.probabilities()));
      case Kind::kClassScores:
        writer.Begin(output, {rows, Columns()});
        return writer.Floats(OutputView(prediction_.class_scores()));
      case Kind::kClassProbabilities:
        writer.Begin(output, {rows, Columns()});
        return writer.Floats(OutputView(prediction_.class_probabilities()));
      case Kind::kClassNames:
        writer.Begin(output, {static_cast<int64_t>(Names())});
        for (size_t i = 0; i < Names(); ++i) writer.String(names_[i]);
        return;
      case Kind::kComponentRevisions:
        writer.Begin(output, {prediction_.component_revisions_size()});
        return writer.Int64s(OutputView(prediction_.component_revisions()));
    }
  }

 private:
  void AppendLabels(TensorWriter& writer) const {
    if (!HasNames(settings_)) return writer.Int32s(OutputView(prediction_.predicted_labels()));
    for (const int32_t label : prediction_.predicted_labels())
      writer.String(LabelName(settings_, names_, label));
  }
  void AppendDistances(TensorWriter& writer) const {
    if (!prediction_.distances().empty()) return writer.Floats(OutputView(prediction_.distances()));
    writer.Floats(std::vector<float>(static_cast<size_t>(prediction_.predicted_labels_size()),
                                     std::numeric_limits<float>::quiet_NaN()));
  }
  // The number of columns of the classes' scores.
  int64_t Columns() const {
    if (prediction_.predicted_labels().empty()) return std::max<int64_t>(Classes(settings_), 0);
    return prediction_.class_scores_size() / prediction_.predicted_labels_size();
  }
  // The number of class names: that of the columns, if scores were requested.
  size_t Names() const {
    return prediction_.class_scores().empty() ? names_.size() : static_cast<size_t>(Columns());
  }

  const ModelSettings& settings_;
  const v1::PredictResponse& prediction_;
  const std::vector<std::string> names_;
};

}  // namespace

std::vector<InferenceOutput> OutputsOf(const Model& model) {
  const ModelSettings& settings = model.settings();
  const bool several = settings.is_multiclass();
  const bool probable = HasProbabilities(model);
  const int64_t classes = Classes(settings);
  std::vector<InferenceOutput> outputs;
  outputs.push_back({Kind::kLabel, "label", HasNames(settings) ? "BYTES" : "INT32", {kAny}});
  outputs.push_back({Kind::kScore, "score", "FP32", {kAny}});
  if (FindLearner(settings.learner).form != Form::kVotes)
    outputs.push_back({Kind::kDistance, "distance", "FP32", {kAny}});
  if (probable) outputs.push_back({Kind::kProbability, "probability", "FP32", {kAny}});
  if (several) outputs.push_back({Kind::kClassScores, "class_scores", "FP32", {kAny, classes}});
  if (several && probable) {
    outputs.push_back({Kind::kClassProbabilities, "class_probabilities", "FP32", {kAny, classes}});
  }
  if (several && HasNames(settings))
    outputs.push_back({Kind::kClassNames, "class_names", "BYTES", {classes}});
  if (!settings.components.empty()) {
    outputs.push_back({Kind::kComponentRevisions,
                       "component_revisions",
                       "INT64",
                       {static_cast<int64_t>(settings.components.size())}});
  }
  return outputs;
}

absl::StatusOr<std::vector<InferenceOutput>> ChooseOutputs(
    const ::inference::ModelInferRequest& request, const Model& model) {
  std::vector<InferenceOutput> all = OutputsOf(model);
  if (request.outputs().empty()) return all;
  std::vector<InferenceOutput> chosen;
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string& name = request.outputs(i).name();
    const auto named = [&name](const InferenceOutput& output) { return output.name == name; };
    const auto invalid = [&](absl::string_view reason, absl::string_view what) {
      return InvalidField(reason, absl::StrCat("outputs[", i, "]"),
                          absl::StrCat("tensor \"", absl::Utf8SafeCHexEscape(name), "\": ", what));
    };
    const auto known = std::find_if(all.begin(), all.end(), named);
    if (known == all.end()) {
      return invalid("UNKNOWN_TENSOR",
                     absl::StrCat("is not an output of this model, which has ",
                                  absl::StrJoin(all, ", ", [](auto* text, auto& one) {
                                    AppendName(one, text);
                                  })));
    }
    if (std::any_of(chosen.begin(), chosen.end(), named))
      return invalid("DUPLICATE_TENSOR", "is requested twice; request it once");
    chosen.push_back(*known);
  }
  return chosen;
}

bool NeedAllScores(const std::vector<InferenceOutput>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [](const InferenceOutput& output) {
    return output.kind == Kind::kClassScores || output.kind == Kind::kClassProbabilities;
  });
}

void AppendOutputs(const std::vector<InferenceOutput>& outputs, const Model& model,
                   const v1::PredictResponse& prediction, bool raw,
                   ::inference::ModelInferResponse& response) {
  const OutputContents contents(model, prediction);
  TensorWriter writer(raw, response);
  for (const InferenceOutput& output : outputs) contents.Append(output, writer);
}

}  // namespace perceptrond
