#include "core/convergence/curve_points.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace perceptrond {
namespace {

namespace pb = ::google::protobuf;

// Copies each number that a report and a point both have under one name.
void CopyFigures(const pb::Message& report, LearningCurvePoint& point) {
  const pb::Descriptor& type = *LearningCurvePoint::descriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& to = *type.field(i);
    const pb::FieldDescriptor* const from = report.GetDescriptor()->FindFieldByName(to.name());
    if (from == nullptr || !report.GetReflection()->HasField(report, from)) continue;
    if (to.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE)
      point.GetReflection()->SetDouble(&point, &to,
                                       report.GetReflection()->GetDouble(report, from));
    if (to.cpp_type() == pb::FieldDescriptor::CPPTYPE_UINT64)
      point.GetReflection()->SetUInt64(&point, &to,
                                       report.GetReflection()->GetUInt64(report, from));
  }
}

}  // namespace

LearningCurvePoint MakePoint(const ::perceptron::v1::ConvergenceReport& report, absl::Time time) {
  LearningCurvePoint point;
  CopyFigures(report, point);
  point.set_revision(static_cast<int64_t>(report.updates()));
  // Of a handful of examples, since the window began anew, a share says nothing.
  constexpr uint64_t kLeastWindow = 100;
  if (report.window_examples() < std::min<uint64_t>(kLeastWindow, report.examples()))
    point.clear_window_error();
  const int64_t micros = absl::ToUnixMicros(time);
  point.mutable_time()->set_seconds(micros / 1'000'000);
  point.mutable_time()->set_nanos(static_cast<int32_t>(micros % 1'000'000 * 1000));
  return point;
}

bool IsSound(const LearningCurvePoint& point) {
  const auto is_figure = [](double value) { return std::isfinite(value) && value >= 0; };
  // An absent figure reads as 0, which is one.
  return point.revision() > 0 && point.mistakes() <= point.examples() &&
         is_figure(point.weight_norm()) && is_figure(point.margin_ceiling()) &&
         is_figure(point.margin_floor()) && is_figure(point.window_error());
}

std::optional<CurvePoints> CurvePoints::From(
    const ::perceptron::storage::v1::LearningCurve& stored) {
  if (!std::has_single_bit(stored.spacing()) ||
      static_cast<size_t>(stored.points_size()) > kMaxPoints)
    return std::nullopt;
  CurvePoints curve;
  curve.spacing_ = stored.spacing();
  for (const LearningCurvePoint& point : stored.points()) {
    if (!IsSound(point) || !curve.Wants(static_cast<uint64_t>(point.revision())))
      return std::nullopt;
    curve.points_.push_back(point);
  }
  return curve;
}

::perceptron::storage::v1::LearningCurve CurvePoints::ToStorage() const {
  ::perceptron::storage::v1::LearningCurve stored;
  stored.set_spacing(spacing_);
  stored.mutable_points()->Add(points_.begin(), points_.end());
  return stored;
}

bool CurvePoints::Wants(uint64_t revision) const {
  return revision % spacing_ == 0 &&
         (points_.empty() || revision > static_cast<uint64_t>(points_.back().revision()));
}

bool CurvePoints::Add(LearningCurvePoint point) {
  if (!IsSound(point) || !Wants(static_cast<uint64_t>(point.revision()))) return false;
  points_.push_back(std::move(point));
  if (points_.size() > kMaxPoints) {
    spacing_ *= 2;
    std::erase_if(points_, [this](const LearningCurvePoint& held) {
      return static_cast<uint64_t>(held.revision()) % spacing_ != 0;
    });
  }
  return true;
}

}  // namespace perceptrond
