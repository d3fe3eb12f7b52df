#include "tests/fuzz/forms.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/learner/catalogue.h"
#include "core/settings/settings.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

constexpr const char* kNames[] = {"\\", "a", "a*b", "u^alpha", "u^c", "v^b", "zeta", "\xc3\xa9"};
constexpr uint32_t kNameCount = 8;
constexpr const char* kClassNames[] = {"one", "two", "\xc3\xa9", "four"};

struct HalfValue {
  float value;
  uint16_t half;
};
constexpr HalfValue kValues[] = {
    {1, 0x3c00},     {-1, 0xbc00},    {2, 0x4000},        {-2, 0xc000},
    {0.5F, 0x3800},  {-0.5F, 0xb800}, {1.5F, 0x3e00},     {-3, 0xc200},
    {0.25F, 0x3400}, {7, 0x4700},     {-7, 0xc700},       {0, 0x0000},
    {1, 0x3c00},     {65504, 0x7bff}, {0x1p-24F, 0x0001}, {NAN, 0x7e00}};

void AppendHalf(float value, std::string& to) {
  const auto* const found = std::find_if(std::begin(kValues), std::end(kValues), [&](auto& one) {
    return one.value == value || (std::isnan(one.value) && std::isnan(value));
  });
  if (found == std::end(kValues)) std::abort();
  to.push_back(static_cast<char>(found->half));
  to.push_back(static_cast<char>(found->half >> 8));
}

bool AllOnes(const FormRow& row) {
  return std::all_of(row.features.begin(), row.features.end(),
                     [](const auto& feature) { return feature.second == 1; });
}

bool IsDense(Form form) {
  return form == Form::kDenseColumns || form == Form::kDenseHalves || form == Form::kNestedDense;
}
bool HasNames(Form form) { return form >= Form::kNames; }
bool IsCompact(Form form) { return form == Form::kCompactColumns || form == Form::kCompactNames; }

}  // namespace

std::string FormName(Form form) {
  constexpr const char* kFormNames[] = {"columns",       "compact columns", "nested sparse rows",
                                        "dense columns", "dense halves",    "nested dense rows",
                                        "names",         "compact names",   "a table of names",
                                        "nested names"};
  return kFormNames[static_cast<size_t>(form)];
}

FormChoice ChooseForms(const v1::Model& settings, FuzzInput& input) {
  FormChoice choice;
  const v1::FeatureSpace& space = settings.feature_space();
  choice.by_name = space.has_named() || (space.has_hashed() && input.Flag());
  choice.dense = space.has_dense() && input.Flag();
  choice.forms = {Form::kColumns, Form::kCompactColumns, Form::kNestedSparse};
  if (choice.by_name)
    choice.forms = {Form::kNames, Form::kCompactNames, Form::kTable, Form::kNestedNames};
  if (choice.dense)
    choice.forms.insert(choice.forms.end(),
                        {Form::kDenseColumns, Form::kDenseHalves, Form::kNestedDense});
  const v1::Learner& learner = settings.learner();
  choice.classes = static_cast<int>(learner.classes().max_classes());
  choice.label_names = learner.classes().new_classes() == v1::Classes::NEW_CLASSES_NAMED;
  v1::Model filled = settings;
  FillDefaults(filled);
  const auto read = ReadSettings(filled);
  choice.weights = read.ok() && FindLearner(read->learner).takes_weights && input.Flag();
  return choice;
}

FormRow ReadRow(FuzzInput& input, const FormChoice& choice) {
  FormRow row;
  // At most one thing is wrong with a row: forms find them in different orders.
  const uint8_t rare = input.Byte();
  // An index beyond a dense or hashed space.
  const uint32_t end =
      choice.by_name ? kNameCount : (rare == 7 && !choice.dense ? 20 : kFormDimension);
  for (size_t i = choice.dense ? 0 : input.Below(end + 1); i < end;
       i += choice.dense ? 1 : 1 + input.Below(3)) {
    // The last is not finite: it comes seldom.
    const size_t value = input.Below(rare >= 8 && rare < 16 ? 16 : 15);
    row.features[static_cast<uint32_t>(i)] = kValues[value].value;
  }
  const uint8_t label = input.Byte();
  if (choice.label_names) {
    row.label_name = kClassNames[label % (rare >= 64 ? 4 : 3)];
  } else if (choice.classes > 0) {
    row.label = label % (choice.classes + (rare == 1 ? 1 : 0));
  } else {
    row.label = rare == 1 ? 0 : (label % 2 == 0 ? 1 : -1);
  }
  constexpr float kWeights[] = {1, 2, 0.5F, 1};
  if (choice.weights) row.weight = rare == 2 ? -1 : kWeights[label / 16 % 4];
  return row;
}

void Encoder::EncodeNested(Form form, const FormRow& row, v1::Example& example) const {
  google::protobuf::RepeatedField<float>* values = nullptr;
  if (form == Form::kNestedDense) {
    values = example.mutable_dense()->mutable_values();
  } else if (form == Form::kNestedSparse) {
    values = example.mutable_sparse()->mutable_values();
    for (const auto& [index, value] : row.features) example.mutable_sparse()->add_indices(index);
  } else {
    values = example.mutable_named()->mutable_values();
    for (const auto& [number, name] : InOrder(row))
      example.mutable_named()->add_names(kNames[name]);
  }
  // Absent values are 1.
  for (const auto& [number, feature] : InOrder(row)) {
    if (form == Form::kNestedDense || !AllOnes(row)) values->Add(row.features.at(feature));
  }
  if (row.label_name.empty()) {
    example.set_label(row.label);
  } else {
    example.set_label_name(row.label_name);
  }
  if (row.weight != 1) example.set_weight(row.weight);
}

void Encoder::NumberNames(const std::vector<FormRow>& rows) {
  for (const FormRow& row : rows) {
    for (const auto& [name, value] : row.features) numbers_.emplace(name, numbers_.size());
  }
}

std::map<uint32_t, uint32_t> Encoder::InOrder(const FormRow& row) const {
  std::map<uint32_t, uint32_t> ordered;
  for (const auto& [feature, value] : row.features)
    ordered[by_name_ ? numbers_.at(feature) : feature] = feature;
  return ordered;
}

std::map<uint32_t, uint32_t> Encoder::AppendNames(Form form, const std::vector<FormRow>& rows,
                                                  v1::ExampleColumns& columns) {
  std::map<uint32_t, uint32_t> names;
  if (form == Form::kTable) {
    for (const auto& [name, number] : numbers_) names[number] = name;
    v1::NameColumn& appended = *columns.mutable_stream_names();
    for (; in_table_ < names.size(); ++in_table_)
      name_columns::AppendName(kNames[names.at(in_table_)], appended);
    return numbers_;
  }
  for (const FormRow& row : rows) names.merge(InOrder(row));
  std::map<uint32_t, uint32_t> positions;
  for (const auto& [number, name] : names) {
    positions.emplace(name, positions.size());
    name_columns::AppendName(kNames[name], *columns.mutable_feature_names());
  }
  columns.mutable_feature_names();
  return positions;
}

void Encoder::EncodeColumns(Form form, const std::vector<FormRow>& rows,
                            v1::ExampleColumns& columns) {
  std::map<uint32_t, uint32_t> numbers;
  if (HasNames(form)) numbers = AppendNames(form, rows, columns);
  if (IsDense(form)) columns.set_dense_width(kFormDimension);
  const bool halves = IsCompact(form) || form == Form::kDenseHalves;
  const bool ones = !halves && !IsDense(form) && std::all_of(rows.begin(), rows.end(), &AllOnes);
  std::map<std::string, int32_t> label_names;
  uint32_t end = 0;
  for (const FormRow& row : rows) {
    std::map<uint32_t, float> features;
    for (const auto& [feature, value] : row.features)
      features[HasNames(form) ? numbers.at(feature) : feature] = value;
    uint32_t next = 0;
    for (const auto& [index, value] : features) {
      if (halves) AppendHalf(value, *columns.mutable_half_values());
      if (!halves && !ones) columns.add_values(value);
      if (IsDense(form)) continue;
      if (IsCompact(form)) columns.add_index_deltas(index - next);
      if (!IsCompact(form)) columns.add_indices(index);
      next = index + 1;
    }
    end += static_cast<uint32_t>(features.size());
    if (!IsDense(form)) columns.add_row_ends(end);
    if (row.label_name.empty()) {
      columns.add_labels(row.label);
    } else {
      const auto [at, is_new] = label_names.emplace(row.label_name, label_names.size());
      if (is_new) columns.add_label_names(row.label_name);
      columns.add_labels(at->second);
    }
  }
  if (std::all_of(rows.begin(), rows.end(), [](const FormRow& row) { return row.weight == 1; }))
    return;
  for (const FormRow& row : rows) columns.add_weights(row.weight);
}

}  // namespace perceptrond::testing
