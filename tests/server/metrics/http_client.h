// Plain HTTP to a port of this machine.
#pragma once

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace perceptrond {

// A connection to the endpoint that nothing has been said on yet.
inline int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// The answer; "" if the server closes the connection.
inline std::string Ask(int port, const std::string& what, const std::string& headers = "") {
  const int fd = Connect(port);
  const std::string request = what + " HTTP/1.0\r\n" + headers + "\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) response.append(buffer, n);
  close(fd);
  return response;
}

inline std::string Get(int port, const std::string& path) { return Ask(port, "GET " + path); }

inline std::string Body(const std::string& response) {
  EXPECT_THAT(response, ::testing::StartsWith("HTTP/1.1 200"));
  return response.substr(response.find("\r\n\r\n") + 4);
}

}  // namespace perceptrond
