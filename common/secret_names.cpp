// SPDX-License-Identifier: Apache-2.0
#include "common/secret_names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace tidemark {
namespace {

template <std::size_t N>
using Words = std::array<std::string_view, N>;

// A name that ends so is followed by a secret. HFTOKEN, SSHPASS and dbpassword are one word.
constexpr Words<13> kSecretEndings = {"token",  "password",   "passwd",     "passphrase", "secret",
                                      "apikey", "accesskey",  "passcode",   "pass",       "pw",
                                      "pat",    "credential", "credentials"};
// So is this word, whole.
constexpr Words<6> kSecretWords = {"authkey", "creds", "cred", "jwt", "otp", "dsn"};
// These end so and are not.
constexpr Words<13> kPlainEndings = {"bypass",    "compass", "encompass", "surpass",  "overpass",
                                     "underpass", "lowpass", "highpass",  "bandpass", "allpass",
                                     "multipass", "compat",  "expat"};
// "pass" is a run over something after one of these.
constexpr Words<18> kPasses = {"one",  "two",  "three",   "single",   "multi", "first",
                               "last", "next", "second",  "final",    "low",   "high",
                               "band", "all",  "forward", "backward", "by",    "per"};
// "key" is a secret after one of these; so are "keys" and "tokens", where --max-tokens is a count.
constexpr Words<17> kKeyOwners = {"api",     "access",     "secret",  "private",     "auth",
                                  "signing", "encryption", "account", "master",      "wandb",
                                  "hf",      "comet",      "neptune", "huggingface", "github",
                                  "gitlab",  "gh"};
// "token" is a word of the model's vocabulary after one of these.
constexpr Words<29> kVocabulary = {
    "eos",   "bos",         "pad",         "unk",      "mask",  "image", "special", "stop",
    "sep",   "cls",         "end",         "start",    "audio", "video", "vision",  "next",
    "per",   "placeholder", "initializer", "instance", "class", "first", "last",    "new",
    "think", "decoder",     "concept",     "prompt",   "ignore"};
// Somewhere in a name: its value is secret if it looks generated.
constexpr Words<9> kTellingWords = {"key",         "secret",    "token", "auth",  "credential",
                                    "credentials", "signature", "sig",   "bearer"};
// The key that torch gives to its compile workers is a hash of its sources.
constexpr Words<1> kHarmless = {"torch key"};
constexpr Words<4> kHeaders = {"authorization", "proxy authorization", "cookie", "set cookie"};

// Each of these is `mysqlX` and `mariadb-X`.
constexpr Words<6> kMysqlTools = {"dump", "admin", "import", "check", "show", "slap"};
constexpr Words<9> kRegistryClients = {"docker", "podman", "nerdctl", "buildah", "skopeo",
                                       "helm",   "crane",  "oc",      "az"};

template <std::size_t N>
bool contains(const Words<N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_upper(c) || is_lower(c) || is_digit(c); }

// "--hf_authToken" -> "hf auth token".
std::string words_of(std::string_view name) {
  std::string words;
  char before = '\0';
  for (const char c : name) {
    if (is_alnum(c)) {
      const bool begins = !is_alnum(before) || (is_upper(c) && is_lower(before));
      words += begins && !words.empty() ? " " : "";
      words += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
    }
    before = c;
  }
  return words;
}

// "" when there is none left.
std::string_view take_last_word(std::string_view& words) {
  const std::size_t blank = words.rfind(' ');
  const std::string_view last = words.substr(blank + 1);  // of all words when there is no blank
  words = words.substr(0, blank == std::string_view::npos ? 0 : blank);
  return last;
}

bool names_secret(std::string_view words) {
  const std::string_view last = take_last_word(words);
  const std::string_view before = take_last_word(words);
  if (last == "key" || last == "keys" || last == "tokens") {
    return contains(kKeyOwners, before);
  }
  if (last == "token" && contains(kVocabulary, before)) {
    return false;
  }
  if (last == "pwd") {
    return !before.empty();  // PWD alone is the working directory
  }
  if (last == "pin") {
    return before.empty();  // --cpu-pin is a list of processors
  }
  if (contains(kSecretWords, last)) {
    return true;
  }
  if (contains(kPlainEndings, last) || (last == "pass" && contains(kPasses, before))) {
    return false;
  }
  return std::any_of(kSecretEndings.begin(), kSecretEndings.end(),
                     [&](std::string_view ending) { return last.ends_with(ending); });
}

// Prefixes of keys that services hand out, and how many letters and digits in a row follow.
struct KeyShape {
  std::string_view prefix;
  std::size_t run;
};
constexpr KeyShape kKeyShapes[] = {
    {"hf_", 16},  {"sk-", 12},   {"ghp_", 20},      {"gho_", 20},        {"ghu_", 20},
    {"ghs_", 20}, {"ghr_", 20},  {"glpat-", 12},    {"github_pat_", 16}, {"AKIA", 16},
    {"ASIA", 16}, {"AIza", 16},  {"ya29.", 16},     {"xoxa-", 8},        {"xoxb-", 8},
    {"xoxe-", 8}, {"xoxo-", 8},  {"xoxp-", 8},      {"xoxr-", 8},        {"xoxs-", 8},
    {"npm_", 30}, {"pypi-", 40}, {"dckr_pat_", 16}, {"nvapi-", 16},      {"wandb_v1_", 16},
};

// URLs whose rest is all that is needed to write in somebody's name.
constexpr std::string_view kSecretUrls[] = {
    "hooks.slack.com/services/", "hooks.slack.com/workflows/",   "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", "api.telegram.org/bot",
    "api.telegram.org/file/bot",
};

std::size_t longest_run(std::string_view text) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = is_alnum(c) ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// header.payload.signature, each base64url; the header begins with {".
bool is_json_web_token(std::string_view word) {
  constexpr std::size_t kShortestPart = 4;
  if (!word.starts_with("eyJ") || std::count(word.begin(), word.end(), '.') != 2) {
    return false;
  }
  const std::size_t first = word.find('.');
  const std::size_t second = word.rfind('.');
  return first >= kShortestPart && second - first > kShortestPart &&
         word.size() - second > kShortestPart;
}

int character_class(char c) { return is_digit(c) ? 0 : is_lower(c) ? 1 : is_upper(c) ? 2 : 3; }

}  // namespace

Secrecy secrecy_of(std::string_view name) {
  constexpr std::size_t kLongestName = 128;
  if (name.size() > kLongestName) {
    return Secrecy::kNone;
  }
  if (name == "-u" || name == "--user" || name == "--proxy-user") {
    return Secrecy::kUserPassword;
  }
  // -DapiKey=...: a property of Java or a definition of CMake.
  const std::string words = words_of(name.starts_with("-D") ? name.substr(2) : name);
  if (contains(kHeaders, words)) {
    return Secrecy::kHeader;
  }
  if (words.empty() || contains(kHarmless, words)) {
    return Secrecy::kNone;
  }
  if (names_secret(words)) {
    return Secrecy::kAlways;
  }
  std::string_view rest = words;
  if (take_last_word(rest) == "auth") {
    return Secrecy::kAuth;
  }
  for (rest = words; !rest.empty();) {
    if (contains(kTellingWords, take_last_word(rest))) {
      return Secrecy::kIfRandom;
    }
  }
  return Secrecy::kNone;
}

bool is_service_key(std::string_view word) {
  for (const KeyShape& shape : kKeyShapes) {
    if (word.starts_with(shape.prefix) &&
        longest_run(word.substr(shape.prefix.size())) >= shape.run) {
      return true;
    }
  }
  return is_json_web_token(word);
}

std::size_t secret_in_url(std::string_view url) {
  for (const std::string_view shape : kSecretUrls) {
    if (url.starts_with(shape)) {
      return shape.size();
    }
  }
  return std::string_view::npos;
}

bool is_hex_key(std::string_view word) {
  constexpr std::string_view kOwnServer = "local-";  // begins the keys of a private wandb server
  constexpr std::size_t kShortest = 32;
  word.remove_prefix(word.starts_with(kOwnServer) ? kOwnServer.size() : 0);
  return word.size() >= kShortest &&
         word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_mysql_client(std::string_view command) {
  for (const std::string_view family : {"mysql", "mariadb-"}) {
    if (command.starts_with(family) && contains(kMysqlTools, command.substr(family.size()))) {
      return true;
    }
  }
  return command == "mysql" || command == "mariadb";
}

bool is_registry_client(std::string_view command) { return contains(kRegistryClients, command); }

bool looks_random(std::string_view value) {
  constexpr std::size_t kLong = 20;
  constexpr std::string_view kBase64Signs = "+/=_-.~%";
  if (value.size() < kLong || value.find_first_of("/.~") == 0) {
    return false;
  }
  std::size_t changes = 0;
  bool digit = false;
  bool letter = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!is_alnum(value[i]) && kBase64Signs.find(value[i]) == std::string_view::npos) {
      return false;
    }
    digit = digit || is_digit(value[i]);
    letter = letter || is_upper(value[i]) || is_lower(value[i]);
    changes += i > 0 && character_class(value[i]) != character_class(value[i - 1]) ? 1U : 0U;
  }
  // Words and paths change between kinds of characters rarely, random text at every other one.
  return digit && letter && changes * 4 >= value.size();
}

}  // namespace tidemark
