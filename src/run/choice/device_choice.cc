#include "run/choice/device_choice.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text/format.h"

namespace sparkle {
namespace {

std::string in_ms(double seconds) { return format("%.3g ms", seconds * 1e3); }

// The offers that may be chosen: usable, and no software device where there is another.
std::vector<size_t> eligible(const std::vector<DeviceOffer>& offers, std::vector<DeviceRow>& rows) {
  const bool hardware =
      std::any_of(offers.begin(), offers.end(), [](const DeviceOffer& o) { return o.unusable.empty() && !o.software; });
  std::vector<size_t> found;
  for (size_t i = 0; i < offers.size(); ++i) {
    rows.push_back({offers[i].name, offers[i].unusable, offers[i].predicted, offers[i].transfers, {}});
    if (!offers[i].unusable.empty()) continue;
    if (offers[i].software && hardware) rows[i].why = "a software device, whose cores are the CPU's";
    else found.push_back(i);
  }
  return found;
}

// Measures those that predictions cannot tell apart, and then the next, where all of these fail.
std::vector<size_t> measured(const std::vector<DeviceOffer>& offers, std::vector<size_t> of, double unclear,
                             std::vector<DeviceRow>& rows) {
  std::sort(of.begin(), of.end(), [&](size_t a, size_t b) { return offers[a].predicted < offers[b].predicted; });
  std::vector<size_t> found;
  for (size_t n = 0; n < of.size(); ++n) {
    const DeviceOffer& offer = offers[of[n]];
    if (!found.empty() && offer.predicted > unclear * offers[of[0]].predicted) {
      rows[of[n]].why = "predicted to take " + in_ms(offer.predicted);
      continue;
    }
    auto seconds = offer.measure();
    if (seconds.ok()) {
      rows[of[n]].measured = *seconds;
      found.push_back(of[n]);
    } else {
      rows[of[n]].why = seconds.error().message;
    }
  }
  return found;
}

}  // namespace

Result<DeviceDecision> choose_device(const std::vector<DeviceOffer>& offers, const std::string& before,
                                     const ChoicePolicy& policy) {
  DeviceDecision d;
  const std::vector<size_t> able = eligible(offers, d.rows);
  if (able.empty()) {
    std::string why;
    for (const DeviceRow& row : d.rows) why += (why.empty() ? "" : "; ") + row.name + ": " + row.why;
    return Error{Reason::device_unusable, "No device here can run the model: " + (why.empty() ? "there is none" : why) + "."};
  }
  const auto predicted_less = [&](size_t a, size_t b) { return offers[a].predicted < offers[b].predicted; };
  size_t best = *std::min_element(able.begin(), able.end(), predicted_less);
  std::vector<size_t> close;
  for (const size_t i : able)
    if (offers[i].predicted <= policy.unclear * offers[best].predicted) close.push_back(i);
  if (able.size() == 1) {
    for (const DeviceRow& row : d.rows)
      if (row.name != offers[best].name) d.why += "; not " + row.name + ", " + row.why;
    d.why = offers[best].name + (d.why.empty() ? ": there is no other device here" : d.why);
  } else if (close.size() == 1) {
    d.why = offers[best].name + ": predicted " + in_ms(offers[best].predicted);
    for (const size_t i : able)
      if (i != best)
        d.why += ", " + offers[i].name + " " + in_ms(offers[i].predicted), d.rows[i].why = "predicted to take longer";
  } else {
    const std::vector<size_t> tried = measured(offers, able, policy.unclear, d.rows);
    if (tried.empty()) {
      std::string why;
      for (const size_t i : able) why += (why.empty() ? "" : "; ") + d.rows[i].name + ": " + d.rows[i].why;
      return Error{Reason::device_unusable, "No device here can run the model: " + why};
    }
    const auto measured_less = [&](size_t a, size_t b) { return *d.rows[a].measured < *d.rows[b].measured; };
    best = *std::min_element(tried.begin(), tried.end(), measured_less);
    d.measured = true;
    // The one of before stays, unless another is clearly better: two that are even do not take turns.
    for (const size_t i : tried)
      if (offers[i].name == before && i != best && *d.rows[i].measured <= (1 + policy.hysteresis) * *d.rows[best].measured)
        best = i, d.remembered = true;
    d.why = offers[best].name + ": measured " + in_ms(*d.rows[best].measured);
    for (const size_t i : tried)
      if (i != best)
        d.why += ", " + offers[i].name + " " + in_ms(*d.rows[i].measured), d.rows[i].why = "measured to take longer";
    if (d.remembered) d.why += "; as before, since no other is clearly better";
  }
  d.device = offers[best].name;
  d.rows[best].why = "chosen";
  return d;
}

std::string to_json(const DeviceDecision& decision) {
  nlohmann::json rows = nlohmann::json::array();
  for (const DeviceRow& row : decision.rows) {
    rows.push_back({{"device", row.name}, {"why", row.why}});
    if (row.predicted > 0) rows.back().update({{"predicted_ms", row.predicted * 1e3}, {"transfers_ms", row.transfers * 1e3}});
    if (row.measured) rows.back()["measured_ms"] = *row.measured * 1e3;
  }
  return nlohmann::json{{"device", decision.device}, {"why", decision.why}, {"rows", rows}}.dump(
      2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_table(const DeviceDecision& decision) {
  char line[256];
  std::snprintf(line, sizeof line, "%-12s %12s %12s %12s  %s\n", "device", "predicted ms", "transfers ms", "measured ms", "");
  std::string text = line;
  for (const DeviceRow& row : decision.rows) {
    const auto figure = [](double seconds, bool there) {
      char number[32];
      std::snprintf(number, sizeof number, "%.4f", seconds * 1e3);
      return there ? std::string(number) : std::string("-");
    };
    std::snprintf(line, sizeof line, "%-12s %12s %12s %12s  ", row.name.c_str(),
                  figure(row.predicted, row.predicted > 0).c_str(), figure(row.transfers, row.predicted > 0).c_str(),
                  figure(row.measured.value_or(0), row.measured.has_value()).c_str());
    text += line + row.why + "\n";
  }
  return text + decision.why + "\n";
}

}  // namespace sparkle
