#include "server/rpc/acceptor.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/sync/mutex.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

namespace v1alpha = ::grpc::reflection::v1alpha;
using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const DescriptorPool& Pool() { return *DescriptorPool::generated_pool(); }

// Adds the file and its dependencies, each once.
void AddFiles(const FileDescriptor& file, absl::flat_hash_set<const FileDescriptor*>& seen,
              v1alpha::FileDescriptorResponse& response) {
  if (!seen.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, response);
}

void SetNotFound(const std::string& what, v1alpha::ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message(absl::StrCat("this server has no ", what));
}

void SetFile(const FileDescriptor* file, const std::string& what,
             v1alpha::ServerReflectionResponse& response) {
  if (file == nullptr) return SetNotFound(what, response);
  absl::flat_hash_set<const FileDescriptor*> seen;
  AddFiles(*file, seen, *response.mutable_file_descriptor_response());
}

void SetExtension(const v1alpha::ExtensionRequest& request,
                  v1alpha::ServerReflectionResponse& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(request.containing_type());
  const FieldDescriptor* const extension =
      type == nullptr ? nullptr : Pool().FindExtensionByNumber(type, request.extension_number());
  SetFile(extension == nullptr ? nullptr : extension->file(),
          absl::StrCat("extension ", request.extension_number(), " of ", request.containing_type()),
          response);
}

void SetExtensions(const std::string& name, v1alpha::ServerReflectionResponse& response) {
  const Descriptor* const type = Pool().FindMessageTypeByName(name);
  if (type == nullptr) return SetNotFound(absl::StrCat("message ", name), response);
  std::vector<const FieldDescriptor*> extensions;
  Pool().FindAllExtensions(type, &extensions);
  v1alpha::ExtensionNumberResponse& numbers = *response.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(name);
  for (const FieldDescriptor* extension : extensions)
    numbers.add_extension_number(extension->number());
}

void SetServices(const Router& router, v1alpha::ServerReflectionResponse& response) {
  for (const google::protobuf::ServiceDescriptor* service : router.services())
    response.mutable_list_services_response()->add_service()->set_name(service->full_name());
}

void Answer(const Router& router, const v1alpha::ServerReflectionRequest& request,
            v1alpha::ServerReflectionResponse& response) {
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case v1alpha::ServerReflectionRequest::kFileByFilename:
      return SetFile(Pool().FindFileByName(request.file_by_filename()),
                     absl::StrCat("file ", request.file_by_filename()), response);
    case v1alpha::ServerReflectionRequest::kFileContainingSymbol:
      return SetFile(Pool().FindFileContainingSymbol(request.file_containing_symbol()),
                     absl::StrCat("symbol ", request.file_containing_symbol()), response);
    case v1alpha::ServerReflectionRequest::kFileContainingExtension:
      return SetExtension(request.file_containing_extension(), response);
    case v1alpha::ServerReflectionRequest::kAllExtensionNumbersOfType:
      return SetExtensions(request.all_extension_numbers_of_type(), response);
    case v1alpha::ServerReflectionRequest::kListServices:
      return SetServices(router, response);
    case v1alpha::ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  response.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
  response.mutable_error_response()->set_error_message(
      "the request is empty; set one of its fields");
}

// Answers the requests of one stream, one after the other.
class ReflectionReactor final : public Reactor {
 public:
  ReflectionReactor(Call& call, const Router& router)
      : call_(call), router_(router), writer_(call) {}

  void Start() { call_.StartReadRequest(&bytes_); }
  void OnReadDone(bool ok) override {
    v1alpha::ServerReflectionRequest request;
    v1alpha::ServerReflectionResponse response;
    const absl::Status status = ok ? ParseSmallRequest(bytes_, request) : absl::OkStatus();
    MutexLock lock(&mutex_);
    if (!ok || !status.ok()) return writer_.Finish(status);
    Answer(router_, request, response);
    writer_.Write(response);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writer_.OnWriteDone(ok);
    // Clients keep the stream for later requests.
    if (!writer_.finished()) call_.StartRead(&bytes_);
  }
  void OnRequestTimeout() override {
    MutexLock lock(&mutex_);
    writer_.Finish(RequestTimeout());
  }

 private:
  Call& call_;
  const Router& router_;
  // The request.
  grpc::ByteBuffer bytes_;
  Mutex mutex_;
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void AddReflectionService(Router& router) {
  router.AddService("grpc.reflection.v1alpha.ServerReflection",
                    {{"ServerReflectionInfo", [&router](Call& call) {
                        const auto reactor = std::make_shared<ReflectionReactor>(call, router);
                        call.Bind(reactor);
                        reactor->Start();
                      }}});
}

}  // namespace perceptrond
