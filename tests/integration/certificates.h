// Certificates for the tests of servers that ask for them.
#pragma once

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

// Certificates in a directory: two authorities, and NAME.pem with NAME.key of the one or the other.
class Certificates {
 public:
  Certificates() {
    for (const std::string authority : {"ca", "stranger"}) MakeAuthority(authority);
    Certify("server", "perceptrond", "ca");
    Certify("client", "client", "ca");
    Certify("foreign", "perceptrond", "stranger");
  }
  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  void MakeAuthority(const std::string& name) const {
    Run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=" + name + " -keyout " + name +
        ".key -out " + name + ".pem");
  }
  // Replaces each file in one step.
  void Certify(const std::string& name, const std::string& dns,
               const std::string& authority) const {
    Run("openssl req -newkey rsa:2048 -nodes -subj /CN=x -keyout n.key -out n.csr && printf "
        "subjectAltName=DNS:" +
        dns + " > n.ext && openssl x509 -req -in n.csr -CA " + authority + ".pem -CAkey " +
        authority + ".key -CAcreateserial -days 2 -extfile n.ext -out n.pem && mv n.key " + name +
        ".key && mv n.pem " + name + ".pem");
  }
  std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& name) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ReadAll(Path("ca.pem")) + ReadAll(Path("stranger.pem"));
    if (!name.empty()) {
      options.pem_private_key = ReadAll(Path(name + ".key"));
      options.pem_cert_chain = ReadAll(Path(name + ".pem"));
    }
    return grpc::SslCredentials(options);
  }

 private:
  void Run(const std::string& command) const {
    ASSERT_EQ(RunCommand("cd " + dir_.path() + " && ( " + command + " ) 2>&1").exit_code, 0);
  }

  const TempDir dir_;
};

}  // namespace perceptrond::testing
