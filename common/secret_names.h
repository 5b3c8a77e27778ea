// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace tidemark {

// What a name says about the value that follows it.
enum class Secrecy {
  kNone,
  kAlways,        // a password, an API key
  kIfRandom,      // some key or signature: secret only if its value looks like one
  kHeader,        // the rest of an HTTP header
  kUserPassword,  // user:password
  kAuth,          // user:password, or a key that looks generated
};

// `name` as written, with its leading dashes: "--hf-token", "HF_TOKEN", "apiKey". Not
// case-sensitive. Names of flags that merely contain a telling word (--tokenizer, --max-tokens,
// --eos-token, --torch-key, --bypass, --two-pass) are kNone.
Secrecy secrecy_of(std::string_view name);

// A key of a known service by its shape: hf_..., sk-..., ghp_..., AKIA..., a JWT.
bool is_service_key(std::string_view word);

// Where in a URL without its scheme the secret begins that webhooks (Slack, Discord) and bots
// (Telegram) have in their paths; npos in others.
std::size_t secret_in_url(std::string_view url);

// What a person types after `wandb login`: hex digits only, so nothing but its place tells that it
// is no hash.
bool is_hex_key(std::string_view word);

// mysql and its relatives: -pX is a password, -p X is none.
bool is_mysql_client(std::string_view command);

// docker and its like: their `login` takes a password with -p.
bool is_registry_client(std::string_view command);

// Long, of mixed letters and digits, and no path: generated rather than written by a person.
bool looks_random(std::string_view value);

}  // namespace tidemark
