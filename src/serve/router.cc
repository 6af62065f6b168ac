#include "serve/router.h"

#include <algorithm>
#include <charconv>

#include "base/printable.h"
#include "base/system/out_of_memory.h"
#include "serve/request_record.h"

namespace sparkle::serve {
namespace {

Reply json_reply(std::string body) {
  Reply reply;
  reply.body = std::move(body);
  return reply;
}
Reply empty_reply() {
  Reply reply;
  reply.type.clear();
  return reply;
}
Reply failed(Failure failure, std::string sentence) { return refusal_reply({failure, std::move(sentence)}); }
Reply failed(const Error& error) { return refusal_reply(refusal_of(error)); }

// "/v2/models/a" -> {"v2", "models", "a"}; an empty one at the end is none.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = path.starts_with("/") ? 1 : 0; at < path.size() && parts.size() < 8;) {
    const size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

struct Target {
  enum class Kind : uint8_t {
    none,
    page,
    metrics,
    server,
    live,
    ready,
    model,
    report,
    report_page,
    infer,
    index,
    control,
    config,
    stats,
    no_shared_memory,
    no_settings
  };
  Kind kind = Kind::none;
  std::string name, version, what;  // what: "" or "ready" of a model, "load" or "unload"
  bool posts() const { return kind == Kind::infer || kind == Kind::index || kind == Kind::control || kind == Kind::report; }
  bool gets() const { return !posts() || kind == Kind::report; }
  // Of extensions that are refused, whatever the method.
  const char* refused() const {
    return kind == Kind::no_shared_memory ? kNoSharedMemory : kind == Kind::no_settings ? kNoSettings : nullptr;
  }
};

Target target_of(const std::string& path) {
  using Kind = Target::Kind;
  if (path == "/") return {Kind::page, {}, {}, {}};
  if (path == "/metrics") return {Kind::metrics, {}, {}, {}};
  const auto parts = parts_of(path);
  if (parts.empty() || parts[0] != "v2") return {};
  if (parts.size() == 1) return {Kind::server, {}, {}, {}};
  if (parts.size() == 3 && parts[1] == "health") {
    if (parts[2] == "live") return {Kind::live, {}, {}, {}};
    return parts[2] == "ready" ? Target{Kind::ready, {}, {}, {}} : Target{};
  }
  if (parts[1] == "repository") {
    if (parts.size() == 3 && parts[2] == "index") return {Kind::index, {}, {}, {}};
    if (parts.size() == 5 && parts[2] == "models" && (parts[4] == "load" || parts[4] == "unload"))
      return {Kind::control, parts[3], {}, parts[4]};
    return {};
  }
  if (parts[1] == "systemsharedmemory" || parts[1] == "cudasharedmemory") return {Kind::no_shared_memory, {}, {}, {}};
  if (parts[1] == "logging" || parts[1] == "trace") return {Kind::no_settings, {}, {}, {}};
  if (parts[1] != "models" || parts.size() < 3) return {};
  if (parts.size() == 3 && parts[2] == "stats") return {Kind::stats, {}, {}, {}};
  Target target{Kind::model, parts[2], {}, {}};
  size_t at = 3;
  if (parts.size() > 4 && parts[3] == "versions") target.version = parts[4], at = 5;
  if (parts.size() == at) return target;
  if (parts[at] == "trace") return {Kind::no_settings, {}, {}, {}};
  if (parts.size() > at + 1) return {};
  if (parts[at] == "infer") target.kind = Kind::infer;
  else if (parts[at] == "report") target.kind = Kind::report;
  else if (parts[at] == "report.html") target.kind = Kind::report_page;
  else if (parts[at] == "config") target.kind = Kind::config;
  else if (parts[at] == "stats") target.kind = Kind::stats;
  else if (parts[at] == "ready") target.what = parts[at];
  else return {};
  return target;
}

// Whether a call came by a name that can be no other machine's: a page whose name its owner has turned to this machine would
// otherwise pass for one of the server's own.
bool is_local_name(std::string host) {
  if (const size_t port = host.rfind(':'); port != host.npos && host.find(']', port) == host.npos) host.resize(port);
  return host.empty() || host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

Reply unknown_path(const Call& call) {
  return failed(Failure::unknown, "There is no '" + printable(call.path) + "' here; GET / lists the models.");
}

}  // namespace

Reply refusal_reply(const Refusal& refusal) {
  Reply reply;
  reply.status = http_status(refusal.failure);
  reply.failure = refusal.failure;
  reply.body = print_error(refusal.message);
  return reply;
}

std::optional<Reply> Router::refuse_early(const Call& call, uint64_t body_bytes) const {
  const Target target = target_of(call.path);
  // A page of some other site, open in a browser on this machine, is not who the server was started for.
  if (!call.origin.empty() && call.origin != "http://" + call.host && call.origin != "https://" + call.host)
    return failed(Failure::forbidden, "Pages of '" + printable(call.origin) + "' may not ask this server.");
  if (options_.local_names && !is_local_name(call.host))
    return failed(Failure::forbidden,
                  "'" + printable(call.host) +
                      "' is no name of this machine alone; ask localhost, or start the server with --host or --token.");
  if (target.kind != Target::Kind::live && target.kind != Target::Kind::ready && !service_.shows_token(call.authorization))
    return failed(Failure::unauthorised, "The request shows no token, or another one; send 'Authorization: Bearer TOKEN'.");
  if (target.kind == Target::Kind::none) return unknown_path(call);
  if (const char* refused = target.refused()) return failed(Failure::invalid, refused);
  const bool gets = call.method == "GET" || call.method == "HEAD";
  if (!(gets && target.gets()) && !(call.method == "POST" && target.posts())) {
    const char* takes = !target.gets() ? "POST" : target.posts() ? "GET and POST" : "GET";
    Reply reply = failed(Failure::wrong_method,
                         "'" + printable(call.path) + "' takes " + takes + ", not " + printable(call.method, 20) + ".");
    reply.allow = !target.gets() ? "POST" : target.posts() ? "GET, HEAD, POST" : "GET, HEAD";
    return reply;
  }
  if (!call.content_encoding.empty() && call.content_encoding != "identity")
    return failed(Failure::encoding, "Compressed requests ('" + printable(call.content_encoding, 40) +
                                         "') are not taken; send the body as it is.");
  if (body_bytes > options_.most_bytes)
    return failed(Failure::too_large, "The request has " + std::to_string(body_bytes) + " bytes, more than the " +
                                          std::to_string(options_.most_bytes) + " that --max-request-bytes allows.");
  if (target.kind != Target::Kind::infer) return {};
  const auto found = service_.repository().find(target.name, target.version);
  Reply reply;
  if (const auto* refusal = std::get_if<Refusal>(&found)) {
    reply = refusal_reply(*refusal);
  } else {
    const Model& model = *std::get<std::shared_ptr<Model>>(found);
    if (!model.batcher->full()) return {};
    model.metrics->failure(Failure::queue_full);
    reply = failed(Failure::queue_full, "The queue of model '" + printable(target.name) + "' is full; ask again later.");
    reply.model = target.name, reply.version = model.description.version;
  }
  return reply;
}

Reply Router::answer(const Call& call, std::string body) const {
  const Target target = target_of(call.path);
  using Kind = Target::Kind;
  switch (target.kind) {
    case Kind::page: {
      Reply reply = json_reply(status_page(service_.version(), service_.repository()));
      reply.type = "text/html; charset=utf-8";
      return reply;
    }
    case Kind::metrics: return answer_metrics(call);
    case Kind::server: return json_reply(print_server(service_.version()));
    case Kind::live: return json_reply("{\"live\":true}");
    case Kind::ready:
      return !service_.is_ready() ? failed(Failure::unavailable, "The server is stopping.") : json_reply("{\"ready\":true}");
    case Kind::model: return about_model(target.name, target.version, target.what);
    case Kind::config: {
      const auto facts = service_.facts(target.name, target.version);
      if (const auto* refusal = std::get_if<Refusal>(&facts)) return refusal_reply(*refusal);
      return json_reply(print_config(std::get<ModelFacts>(facts).description));
    }
    case Kind::stats: {
      const auto counts = service_.counts(target.name, target.version);
      if (const auto* refusal = std::get_if<Refusal>(&counts)) return refusal_reply(*refusal);
      return json_reply(print_counts(std::get<std::vector<ModelCounts>>(counts)));
    }
    case Kind::no_shared_memory:
    case Kind::no_settings: return failed(Failure::invalid, target.refused());
    case Kind::report: {
      if (const Status read = parse_control(body); !read.ok()) return failed(read.error());
      return report(target.name, target.version, call.method == "POST", false);
    }
    case Kind::report_page: return report(target.name, target.version, false, true);
    case Kind::infer: return infer(call, target.name, target.version, std::move(body));
    case Kind::index: {
      const auto ready = parse_index(body);
      if (!ready.ok()) return failed(ready.error());
      std::vector<IndexRow> rows = service_.repository().index();
      if (*ready) std::erase_if(rows, [](const IndexRow& row) { return !row.ready; });
      return json_reply(print_index(rows));
    }
    case Kind::control: return control(target.name, target.what, body);
    case Kind::none: break;
  }
  return unknown_path(call);
}

Reply Router::answer_metrics(const Call& call) const {
  if (call.path != "/metrics") return unknown_path(call);
  if (!service_.shows_token(call.authorization))
    return failed(Failure::unauthorised, "The request shows no token, or another one.");
  Reply reply = json_reply(print_metrics(service_.repository().metrics()));
  reply.type = "text/plain; version=0.0.4; charset=utf-8";
  return reply;
}

Reply Router::about_model(const std::string& name, const std::string& version, const std::string& what) const {
  const auto facts = service_.facts(name, version);
  if (const auto* refusal = std::get_if<Refusal>(&facts)) return refusal_reply(*refusal);
  const auto& [description, versions] = std::get<ModelFacts>(facts);
  if (what == "ready") return json_reply(print_ready(description));
  return json_reply(print_metadata(description, versions));
}

Reply Router::report(const std::string& name, const std::string& version, bool measure, bool as_page) const {
  const auto found = service_.repository().find(name, version);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refusal_reply(*refusal);
  const Model& model = *std::get<std::shared_ptr<Model>>(found);
  const std::string& own = model.description.version;
  const auto answer = service_.report(model, measure);
  Reply reply;
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    reply = refusal_reply(*refusal);
  } else {
    const KeptReport& kept = *std::get<std::shared_ptr<const KeptReport>>(answer);
    reply = json_reply(as_page ? report_page(kept, own) : report_json(kept, model.description.inputs, own));
    if (as_page) reply.type = "text/html; charset=utf-8";
  }
  reply.model = name, reply.version = own;
  return reply;
}

Reply Router::control(const std::string& name, const std::string& what, const std::string& body) const {
  if (const Status read = parse_control(body); !read.ok()) return failed(read.error());
  const auto refused = what == "load" ? service_.load(name) : service_.unload(name);
  return refused ? refusal_reply(*refused) : empty_reply();
}

Reply Router::infer(const Call& call, const std::string& name, const std::string& version, std::string body) const {
  const auto found = service_.repository().find(name, version);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refusal_reply(*refusal);
  Inference one = service_.begin(std::get<std::shared_ptr<Model>>(found));
  const ModelDescription& model = one.model().description;
  const auto reply_as = [&](Reply reply) {
    reply.model = name, reply.version = model.version;
    one.count(reply.failure);
    return reply;
  };
  std::optional<size_t> json_bytes;
  if (call.json_bytes) {
    const std::string& text = *call.json_bytes;
    size_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size())
      return reply_as(
          failed(Failure::invalid, "Inference-Header-Content-Length is '" + printable(text, 40) + "', no number of bytes."));
    json_bytes = value;
  }
  auto request = parse_infer(model, body, json_bytes);
  std::string().swap(body);
  if (!request.ok()) return reply_as(failed(request.error()));
  const Outcome outcome = one.run(*request);
  if (outcome.refused) return reply_as(refusal_reply(*outcome.refused));
  auto answer = guard_memory("Writing the answer", [&] { return print_infer(model, *request, outcome.outputs); });
  if (!answer.ok()) return reply_as(failed(answer.error()));
  Reply reply = json_reply(std::move(answer->body));
  reply.json_bytes = answer->json_bytes;
  if (reply.json_bytes) reply.type = "application/octet-stream";
  return reply_as(std::move(reply));
}

}  // namespace sparkle::serve
