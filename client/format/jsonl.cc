// JSON lines: each line is a perceptron.v1.Example in protobuf's JSON form, such as
// {"named": {"names": ["free", "win"]}, "labelName": "spam"}, {"text": "Win a prize!", "label": 1} or {"sparse": {"indices": [3, 7]},
// "label": -1}.
#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"
#include "client/format/json_example.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {
namespace {

using perceptron::v1::Example;

class Jsonl final : public Format {
 public:
  explicit Jsonl(const FormatOptions& options)
      : labels_(options.labels),
        number_rule_(NumberRule(options.labels)),
        require_label_(options.require_label) {}

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    if (line.find_first_not_of(" \t") == std::string_view::npos) return LineKind::kNothing;
    target_ = {};
    if (!ParseUsualJson(line, row, &target_)) {
      row->Clear();
      if (absl::Status status = ParseAnyJson(line, row); !status.ok()) return status;
    }
    if (absl::Status status = CheckValues(*row); !status.ok()) return status;
    if (absl::Status status = ReadTarget(row); !status.ok()) return status;
    return LineKind::kExample;
  }

 private:
  // Parses with protobuf's parser, which takes microseconds a feature.
  absl::Status ParseAnyJson(std::string_view line, Row* row) {
    example_.Clear();
    const auto status =
        google::protobuf::util::JsonStringToMessage({line.data(), line.size()}, &example_);
    if (!status.ok()) {
      // ": Root element must be a message." of the empty path, and after a line break what was read.
      const std::string said = status.message().as_string();
      std::string_view reason = said;
      reason = reason.substr(0, reason.find('\n'));
      while (reason.starts_with(": ")) reason.remove_prefix(2);
      while (reason.ends_with(".")) reason.remove_suffix(1);
      return absl::InvalidArgumentError(
          absl::StrCat("not a perceptron.v1.Example in JSON: ", std::string(reason)));
    }
    if (example_.has_weight()) row->weight = example_.weight();
    target_ = {};
    if (example_.has_label()) target_ = {JsonTarget::Kind::kLabel, example_.label(), ""};
    if (example_.has_label_name())
      target_ = {JsonTarget::Kind::kLabelName, 0, example_.label_name()};
    return ReadFeatures(row);
  }

  absl::Status ReadFeatures(Row* row) const {
    switch (example_.features_case()) {
      case Example::kDense:
        row->kind = RowKind::kDense;
        row->values.assign(example_.dense().values().begin(), example_.dense().values().end());
        break;
      case Example::kSparse:
        row->indices.assign(example_.sparse().indices().begin(), example_.sparse().indices().end());
        row->values.assign(example_.sparse().values().begin(), example_.sparse().values().end());
        break;
      case Example::kNamed:
        row->kind = RowKind::kNamed;
        for (const std::string& name : example_.named().names()) row->AddName(name);
        row->values.assign(example_.named().values().begin(), example_.named().values().end());
        break;
      case Example::kText:
        row->kind = RowKind::kText;
        row->text = example_.text();
        break;
      case Example::kPredictionId:
        row->kind = RowKind::kPredictionId;
        row->text = example_.prediction_id();
        break;
      case Example::FEATURES_NOT_SET:
        break;
    }
    return absl::OkStatus();
  }

  static absl::Status CheckValues(const Row& row) {
    if (row.kind != RowKind::kDense && !row.values.empty() &&
        row.values.size() != row.feature_count()) {
      return absl::InvalidArgumentError(
          absl::StrCat(row.feature_count(), " features but ", row.values.size(), " values"));
    }
    return absl::OkStatus();
  }

  // "label" is a number, even if a label name is a number too; if classes are added by name it is a
  // name.
  static LabelRule NumberRule(LabelRule rule) {
    rule.names.clear();
    return rule;
  }

  absl::Status ReadTarget(Row* row) const {
    absl::Status status;
    switch (target_.kind) {
      case JsonTarget::Kind::kLabel:
        status = ReadLabel(number_rule_, absl::StrCat(target_.label), row);
        break;
      case JsonTarget::Kind::kLabelName:
        status = ReadLabel(labels_, target_.label_name, row);
        break;
      case JsonTarget::Kind::kNone:
        status = absl::InvalidArgumentError("neither \"label\" nor \"labelName\"");
        break;
    }
    return require_label_ ? status : absl::OkStatus();
  }

  const LabelRule labels_;
  const LabelRule number_rule_;
  const bool require_label_;
  JsonTarget target_;
  Example example_;
};

}  // namespace

std::unique_ptr<Format> MakeJsonl(const FormatOptions& options) {
  return std::make_unique<Jsonl>(options);
}

}  // namespace perceptrond::client
