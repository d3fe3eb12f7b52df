// Any bytes as a ModelInferRequest: answered or refused with a reason, never a crash; what is
// answered has as many elements as it says, and is the same from typed and from raw contents. The
// first byte chooses the model.
#include <bitset>
#include <cstdint>
#include <memory>
#include <string>

#include "core/error/error.h"
#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "server/services/services.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/inference.h"

namespace {

namespace oip = ::inference;
namespace v1 = ::perceptron::v1;
using perceptrond::Store;
using perceptrond::testing::Check;

std::string Id(uint8_t choice) { return "m" + std::to_string(choice); }

v1::Model Settings(uint8_t choice) {
  v1::Model settings;
  settings.set_name("models/" + Id(choice));
  v1::FeatureSpace& space = *settings.mutable_feature_space();
  if (choice % 3 == 0) space.mutable_dense()->set_dimension(3);
  if (choice % 3 == 1) space.mutable_hashed()->set_bits(2);
  if (choice % 3 == 1 && (choice & 0x04) != 0) {
    space.mutable_text()->set_bits(2);
    space.mutable_text()->set_min_characters(1);
    space.mutable_text()->set_max_characters(2);
  }
  if (choice % 3 == 2) space.mutable_named()->set_max_features(4);
  if ((choice & 0x08) != 0) settings.mutable_learner()->mutable_classes()->set_max_classes(3);
  if ((choice & 0x10) != 0) {
    for (const char* name : {"a", "b", "c"}) settings.add_label_names(name);
    if ((choice & 0x08) == 0) settings.mutable_label_names()->RemoveLast();
  }
  if ((choice & 0x20) != 0) settings.mutable_learner()->mutable_logistic_regression();
  if ((choice & 0x40) != 0) space.mutable_map()->mutable_polynomial()->set_degree(2);
  return settings;
}

// One for all inputs: none of them changes a model.
Store& StoreWith(uint8_t choice) {
  static Store store(std::make_unique<perceptrond::MemoryJournal>(), Store::Options());
  static std::bitset<256> created;
  if (!created[choice]) Check(store.Create(Settings(choice), "", false).ok());
  created[choice] = true;
  return store;
}

// As many elements as the shapes say, in the field that the datatype names.
void CheckAnswer(const oip::ModelInferRequest& request, const oip::ModelInferResponse& response) {
  Check(response.id() == request.id() && response.model_name() == request.model_name());
  Check(response.model_version() == "0");
  const bool raw = request.raw_input_contents_size() > 0;
  Check(response.raw_output_contents_size() == (raw ? response.outputs_size() : 0));
  if (request.outputs_size() > 0) Check(response.outputs_size() == request.outputs_size());
  for (int i = 0; i < response.outputs_size(); ++i) {
    const auto& tensor = response.outputs(i);
    int64_t elements = 1;
    for (const int64_t size : tensor.shape()) elements *= size;
    Check(elements >= 0);
    const int bytes = perceptrond::testing::ElementBytes(tensor.datatype());
    const std::string contents =
        raw ? response.raw_output_contents(i)
            : perceptrond::testing::RawContents(tensor.datatype(), tensor.contents());
    Check(bytes == 0
              ? tensor.datatype() == "BYTES" && contents.size() >= static_cast<size_t>(4 * elements)
              : contents.size() == static_cast<size_t>(bytes * elements));
  }
}

void CheckRefusal(const absl::Status& status) {
  Check(absl::IsInvalidArgument(status) || absl::IsNotFound(status) || absl::IsAborted(status) ||
        absl::IsResourceExhausted(status));
  Check(status.GetPayload(perceptrond::kErrorInfoUrl).has_value());
  Check((absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status)) ==
        status.GetPayload(perceptrond::kBadRequestUrl).has_value());
  Check(!status.message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Store& store = StoreWith(data[0]);
  oip::ModelInferRequest request;
  if (!request.ParseFromArray(data + 1, static_cast<int>(size - 1))) return 0;
  // Nobody guesses it.
  if (request.model_name().empty()) request.set_model_name(Id(data[0]));
  oip::ModelInferResponse response;
  const absl::Status status = perceptrond::Infer(store, request, response);
  if (!status.ok()) {
    CheckRefusal(status);
    return 0;
  }
  CheckAnswer(request, response);
  if (request.raw_input_contents_size() > 0) return 0;
  // No number that was taken from typed contents gets lost on the way to raw ones.
  const oip::ModelInferRequest raw = perceptrond::testing::Raw(request);
  oip::ModelInferResponse again;
  Check(perceptrond::Infer(store, raw, again).ok());
  Check(again.SerializeAsString() == perceptrond::testing::Raw(response).SerializeAsString());
  return 0;
}
