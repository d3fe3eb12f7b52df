// The bytes of a client that starts a call and resets it at once. gRPC's own client may send
// neither.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace perceptrond::testing {

// RFC 9113, section 4.1.
inline std::string Http2Frame(char type, char flags, char stream, const std::string& payload) {
  const auto size = static_cast<char>(payload.size());
  return std::string{0, 0, size, type, flags, 0, 0, 0, stream} + payload;
}

// RFC 7541, section 6.2.2: no index, no Huffman code.
inline std::string Http2Literal(const std::string& text) {
  return std::string(1, static_cast<char>(text.size())) + text;
}

// Returns when the server has closed the connection, which this does not before.
inline void StartAndResetCall(int port, const std::string& path) {
  const std::string post_http = "\x83\x86";
  std::string headers = post_http + '\x04' + Http2Literal(path) + '\x01' + Http2Literal("host");
  headers += std::string(1, 0) + Http2Literal("content-type") + Http2Literal("application/grpc");
  headers += std::string(1, 0) + Http2Literal("te") + Http2Literal("trailers");
  const std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(4, 0, 0, "") +
                           Http2Frame(1, 4, 1, headers) +
                           Http2Frame(3, 0, 1, std::string{0, 0, 0, 8});
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(send(fd, sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  EXPECT_EQ(shutdown(fd, SHUT_WR), 0);
  for (char bytes[1024]; recv(fd, bytes, sizeof bytes, 0) > 0;) {
  }
  close(fd);
}

}  // namespace perceptrond::testing
