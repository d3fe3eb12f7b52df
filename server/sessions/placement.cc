#include "server/sessions/placement.h"

#include <algorithm>
#include <memory>

namespace perceptrond {
namespace {

// A composition of more models is large, whatever they cost.
constexpr size_t kFewModels = 64;

// Adds what the model and its components take; false if that is large.
bool AddCost(const Store& store, const Model* model, const BatchShape& shape, size_t& models,
             uint64_t& cost) {
  if (model == nullptr || ++models > kFewModels ||
      model->core().large_work.load(std::memory_order_relaxed) > 0)
    return false;
  const std::vector<Component>& components = model->settings().components;
  if (components.empty()) {
    cost += std::min(CostBound(model->core(), shape), kLargeCost + 1);
    return cost <= kLargeCost;
  }
  return std::all_of(components.begin(), components.end(), [&](const Component& component) {
    return AddCost(store, store.GetIfLoaded(component.name).get(), shape, models, cost);
  });
}

}  // namespace

Placement PlacementOfRows(const Store& store, const Model* model, const BatchShape& shape) {
  size_t models = 0;
  uint64_t cost = 0;
  if (!AddCost(store, model, shape, models, cost)) return {WorkSize::kLarge};
  return {WorkSize::kSmall, CanRunInline(model)};
}

RequestShape::RequestShape(const NestedExamples& examples,
                           const ::perceptron::v1::ExampleColumns& columns) {
  if (columns.dense_width() > 0) {
    const auto values =
        static_cast<uint64_t>(columns.values_size()) + columns.half_values().size() / 2;
    shape_.dense_width = columns.dense_width();
    shape_.dense_rows = values / columns.dense_width();
    return;
  }
  uint32_t end = 0;
  const auto add_row = [&](size_t features) {
    constexpr uint32_t kMost = 1U << 31;
    end = static_cast<uint32_t>(std::min<size_t>(end + features, kMost));
    row_ends_.push_back(end);
  };
  for (const std::string& text : columns.texts()) add_row(kTextByteWork * text.size());
  for (int i = 0; i < columns.prediction_ids_size(); ++i) add_row(kPredictionFeatures);
  if (examples.empty() && row_ends_.empty()) {
    shape_.row_ends = {columns.row_ends().data(), static_cast<size_t>(columns.row_ends_size())};
    return;
  }
  row_ends_.reserve(row_ends_.size() + examples.size());
  for (const NestedExample& example : examples) {
    const size_t names = example.names_end - example.names_begin;
    const bool is_kept = example.features == NestedExample::FeaturesCase::kPredictionId;
    add_row(std::max(names, example.values.size()) + kTextByteWork * example.text.size() +
            (is_kept ? kPredictionFeatures : 0));
  }
  shape_.row_ends = row_ends_;
}

Placement PlacementOfReport(const Store& store, const std::string& name) {
  const std::shared_ptr<Model> model = store.GetIfLoaded(name);
  const bool free =
      model != nullptr && model->core().large_work.load(std::memory_order_relaxed) == 0;
  return {free ? WorkSize::kManagement : WorkSize::kLarge};
}

Placement PlacementOfManagement(const Store& store, const std::string& model) {
  return {store.GetIfLoaded(model) == nullptr ? WorkSize::kLarge : WorkSize::kManagement};
}

}  // namespace perceptrond
