#include "serve/http/tls.h"

#ifdef SPARKLE_WITH_TLS

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>

namespace sparkle::serve {
namespace {

struct Free {
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> reader(const std::string& text) { return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }
// A key with a password has none to ask here.
int no_password(char*, int, int, void*) { return 0; }

class Identity final : public TlsIdentity {
 public:
  Owned<SSL_CTX> context;
};

class Channel final : public TlsChannel {
 public:
  Channel(SSL_CTX* context, int socket) : ssl_(SSL_new(context)) {
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL, 0) | O_NONBLOCK);
    SSL_set_fd(ssl_.get(), socket);
    SSL_set_accept_state(ssl_.get());
  }
  size_t read(char* to, size_t size, short& wants) override {
    ERR_clear_error();
    return outcome(SSL_read(ssl_.get(), to, step(size)), wants);
  }
  size_t write(const char* from, size_t size, short& wants) override {
    ERR_clear_error();
    return outcome(SSL_write(ssl_.get(), from, step(size)), wants);
  }
  bool has_more() const override { return SSL_has_pending(ssl_.get()) != 0; }
  void end() override {
    ERR_clear_error();
    if (!broken_ && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
  }

 private:
  static int step(size_t size) { return static_cast<int>(std::min<size_t>(size, 1 << 20)); }
  size_t outcome(int done, short& wants) {
    wants = 0;
    if (done > 0) return static_cast<size_t>(done);
    switch (SSL_get_error(ssl_.get(), done)) {
      case SSL_ERROR_WANT_READ: wants = POLLIN; break;
      case SSL_ERROR_WANT_WRITE: wants = POLLOUT; break;
      case SSL_ERROR_ZERO_RETURN: break;
      default: broken_ = true;
    }
    return 0;
  }
  const Owned<SSL> ssl_;
  bool broken_ = false;
};

}  // namespace

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::open(const std::string& certificate, const std::string& key) {
  const auto refused = [](const char* sentence) { return Error{Reason::bad_usage, sentence}; };
  auto identity = std::make_shared<Identity>();
  identity->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = identity->context.get();
  if (!context) return refused("OpenSSL gives no context for TLS.");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  const auto certificates = reader(certificate), keys = reader(key);
  const Owned<X509> own(PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr));
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1)
    return refused("The file of --tls-cert has no certificate as PEM ('-----BEGIN CERTIFICATE-----').");
  while (const Owned<X509> issuer{PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr)})
    SSL_CTX_add1_chain_cert(context, issuer.get());
  const Owned<EVP_PKEY> secret(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr));
  if (!secret) return refused("The file of --tls-key has no private key as PEM, or one with a password; it needs one without.");
  if (SSL_CTX_use_PrivateKey(context, secret.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return refused("The key of --tls-key is not that of the certificate of --tls-cert.");
  return std::shared_ptr<TlsIdentity>(std::move(identity));
}

std::unique_ptr<TlsChannel> TlsChannel::open(const TlsIdentity& identity, int socket) {
  return std::make_unique<Channel>(static_cast<const Identity&>(identity).context.get(), socket);
}

}  // namespace sparkle::serve

#else

namespace sparkle::serve {

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::open(const std::string&, const std::string&) {
  return Error{
      Reason::bad_usage,
      "This build has no TLS, as OpenSSL was not there for it (Debian: libssl-dev); put a proxy in front that encrypts."};
}
std::unique_ptr<TlsChannel> TlsChannel::open(const TlsIdentity&, int) { return nullptr; }

}  // namespace sparkle::serve

#endif
