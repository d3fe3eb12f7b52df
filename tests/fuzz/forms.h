// Rows and the forms in which a request may send them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "perceptron/v1/example.pb.h"
#include "perceptron/v1/model.pb.h"
#include "tests/fuzz/fuzz_input.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

inline constexpr uint32_t kFormDimension = 6;

enum class Form {
  kColumns,
  kCompactColumns,
  kNestedSparse,
  kDenseColumns,
  kDenseHalves,
  kNestedDense,
  kNames,
  kCompactNames,
  kTable,
  kNestedNames,
};
std::string FormName(Form form);

struct FormRow {
  // By index, or by the number of a name; ascending.
  std::map<uint32_t, float> features;
  int32_t label = 0;
  // Not empty: instead of the label.
  std::string label_name;
  float weight = 1;
};

// The forms that a model takes, and which rows can be sent in all of them.
struct FormChoice {
  std::vector<Form> forms;
  // Every row has all features of the space.
  bool dense = false;
  bool by_name = false;
  // The labels are below this; 0: they are -1 and +1.
  int classes = 0;
  bool label_names = false;
  bool weights = false;
};
FormChoice ChooseForms(const v1::Model& settings, FuzzInput& input);
// Values are exact in half precision; now and then a value, an index or a label is invalid.
FormRow ReadRow(FuzzInput& input, const FormChoice& choice);

// Writes rows to the requests of one stream. The features of a row are in one order in every form:
// sums are rounded in that order.
class Encoder {
 public:
  explicit Encoder(const FormChoice& choice) : by_name_(choice.by_name) {}

  // Request: LearnStreamRequest or PredictRequest.
  template <typename Request>
  void Encode(Form form, const std::vector<FormRow>& rows, Request& request) {
    if (by_name_) NumberNames(rows);
    if (form == Form::kTable) request.set_name_table_size(kTableSize);
    if (form == Form::kNestedSparse || form == Form::kNestedDense || form == Form::kNestedNames) {
      for (const FormRow& row : rows) EncodeNested(form, row, *request.add_examples());
      return;
    }
    EncodeColumns(form, rows, *request.mutable_columns());
  }

 private:
  // More than there are names.
  static constexpr uint32_t kTableSize = 16;

  void EncodeNested(Form form, const FormRow& row, v1::Example& example) const;
  void EncodeColumns(Form form, const std::vector<FormRow>& rows, v1::ExampleColumns& columns);
  // Numbers the names that first occur in these rows.
  void NumberNames(const std::vector<FormRow>& rows);
  // The row's features by number.
  std::map<uint32_t, uint32_t> InOrder(const FormRow& row) const;
  // Appends the names that the message needs. Returns the index that each has in it.
  std::map<uint32_t, uint32_t> AppendNames(Form form, const std::vector<FormRow>& rows,
                                           v1::ExampleColumns& columns);

  const bool by_name_;
  // By name.
  std::map<uint32_t, uint32_t> numbers_;
  // Names appended to the stream's table.
  uint32_t in_table_ = 0;
};

}  // namespace perceptrond::testing
