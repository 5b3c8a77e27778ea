// SPDX-License-Identifier: Apache-2.0
#include "monitor/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "monitor/secret_names.h"

namespace tidemark::monitor {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kQuotes = "\"'";
constexpr std::string_view kValueEnds = " \t\r\n;|&,\"'`()<>{}[]";
constexpr std::string_view kAuthorityEnds = "/?# \t\r\n\"'`<>\\";

constexpr std::size_t kGlance = 256;  // enough of a value to tell whether it is a secret

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// What a person wrote to say that the secret is elsewhere, or that there is none.
bool is_no_secret(std::string_view value) {
  constexpr std::array<std::string_view, 9> kPlain = {"true", "false", "none", "null", "yes",
                                                      "no",   "auto",  "0",    "1"};
  std::string lower(value.substr(0, 8));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return value.empty() || value[0] == '$' ||
         std::find(kPlain.begin(), kPlain.end(), lower) != kPlain.end();
}

// Where in the value of such a name the secret begins; npos when there is none.
std::size_t secret_in(std::string_view value, Secrecy secrecy) {
  constexpr std::size_t kNoSecret = std::string_view::npos;
  switch (secrecy) {
    case Secrecy::kNone:
      return kNoSecret;
    case Secrecy::kAlways:
    case Secrecy::kHeader:
      return is_no_secret(value) ? kNoSecret : 0;
    case Secrecy::kIfRandom:
      return looks_random(value) ? 0 : kNoSecret;
    case Secrecy::kUserPassword: {
      const std::size_t colon = value.find(':');
      const bool ids = value.find_first_not_of("0123456789:") == std::string_view::npos;
      const bool path = value.find('/') != std::string_view::npos;
      return colon == std::string_view::npos || colon == 0 || ids || path ? kNoSecret : colon + 1;
    }
  }
  return kNoSecret;
}

bool is_bearer(std::string_view name) { return name == "Bearer" || name == "bearer"; }

// Copies one text to `out`, masking as it goes. Every character is looked at a fixed number of
// times.
class Scanner {
 public:
  // `whole_value`: a value that follows a '=' at the start of the text takes all of its rest, as
  // in an argv word; else it ends like a word of the shell.
  Scanner(std::string_view text, bool whole_value, std::string& out)
      : text_(text), whole_value_(whole_value), out_(out) {}

  // Returns what the text says about the argv word after it: the text may be a flag.
  Secrecy run() {
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("://")) {
        copy_url_authority();
      } else if (is_name_character(text_[at_])) {
        copy_name();
      } else {
        out_ += text_[at_++];
      }
    }
    return next_;
  }

 private:
  char peek(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }

  void copy_up_to(std::size_t end) {
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }
  void mask_up_to(std::size_t end) {
    out_ += kMask;
    at_ = end;
  }

  void copy_name() {
    const std::size_t begin = at_;
    std::size_t end = begin;
    while (end < text_.size() && is_name_character(text_[end])) {
      ++end;
    }
    const std::string_view name = text_.substr(begin, end - begin);
    if (is_service_key(name)) {
      mask_up_to(end);
      return;
    }
    copy_up_to(end);
    if (at_ == text_.size()) {
      next_ = begin == 0 && name[0] == '-' ? secrecy_of(name) : Secrecy::kNone;
      return;
    }
    const std::size_t value = value_of(name);
    const Secrecy secrecy = value < text_.size() ? secrecy_of(name) : Secrecy::kNone;
    if (secrecy == Secrecy::kNone) {
      return;
    }
    copy_up_to(value);
    // The beginning decides: what is not masked is looked at again, so this must be bounded.
    const std::size_t glance = end_of_value(secrecy, begin, at_ + kGlance);
    const std::size_t secret = secret_in(text_.substr(at_, glance - at_), secrecy);
    if (secret != std::string_view::npos) {
      const std::size_t value_end = end_of_value(secrecy, begin, text_.size());
      copy_up_to(at_ + secret);
      mask_up_to(value_end);
    }
  }

  // Where the value of the name that ends at at_ begins, behind its opening quote; npos when what
  // follows does not belong to the name.
  std::size_t value_of(std::string_view name) const {
    std::size_t sign = at_;
    if (is_one_of(peek(sign), kQuotes)) {
      ++sign;  // "api_key": "...", environ["API_KEY"] = "..."
      sign += peek(sign) == ']' ? 1U : 0U;
    }
    const std::size_t next = past_blanks(sign);
    if (peek(next) == '=' && peek(next + 1) != '=') {
      return past_quote(next == at_ ? next + 1 : past_blanks(next + 1));
    }
    if (peek(sign) == ':' && peek(sign + 1) != ':' && !text_.substr(sign).starts_with("://")) {
      return past_quote(past_blanks(sign + 1));
    }
    const bool takes_next_word = name[0] == '-' || is_bearer(name);
    return takes_next_word && next > at_ && sign == at_ && peek(next) != '-'
               ? past_quote(next)
               : std::string_view::npos;
  }

  std::size_t past_blanks(std::size_t at) const {
    while (is_one_of(peek(at), kBlanks)) {
      ++at;
    }
    return at;
  }
  std::size_t past_quote(std::size_t at) const {
    return is_one_of(peek(at), kQuotes) ? at + 1 : at;
  }

  // The end of the value that begins at at_, of the name that began at `name_begin`. Does not look
  // beyond `limit`.
  std::size_t end_of_value(Secrecy secrecy, std::size_t name_begin, std::size_t limit) const {
    const std::string_view text = text_.substr(0, limit);
    std::size_t end = std::string_view::npos;
    const char before = text[at_ - 1];
    if (is_one_of(before, kQuotes)) {
      end = text.find(before, at_);
    } else if (secrecy == Secrecy::kHeader) {
      end = text.find_first_of("\"'\r\n", at_);
    } else if (!whole_value_ || name_begin != 0) {
      end = text.find_first_of(kValueEnds, at_);
    }
    return std::min(end, text.size());
  }

  void copy_url_authority() {
    copy_up_to(at_ + 3);
    const std::size_t end = std::min(text_.find_first_of(kAuthorityEnds, at_), text_.size());
    const std::string_view authority = text_.substr(at_, end - at_);
    const std::size_t sign = authority.rfind('@');
    if (sign == std::string_view::npos) {
      return;
    }
    const std::string_view user = authority.substr(0, std::min(authority.find(':'), sign));
    const std::size_t host = at_ + sign;
    if (is_service_key(user) || looks_random(user)) {
      mask_up_to(host);
    } else if (user.size() < sign) {
      copy_up_to(at_ + user.size() + 1);
      mask_up_to(host);
    } else {
      copy_up_to(host);
    }
  }

  std::string_view text_;
  bool whole_value_;
  std::string& out_;
  std::size_t at_ = 0;
  Secrecy next_ = Secrecy::kNone;
};

// `-c`, `-lc`: the next word is code for a shell.
bool introduces_code(std::string_view word) {
  return word.size() >= 2 && word.size() <= 5 && word[0] == '-' && word[1] != '-' &&
         word.ends_with('c');
}

}  // namespace

std::string redact_argv(std::span<const std::string> argv) {
  std::string out;
  Secrecy claimed = Secrecy::kNone;  // what the flag before says about this word
  bool code = false;
  for (const std::string& word : argv) {
    out += &word == argv.data() ? "" : " ";
    const std::size_t secret = word.starts_with('-') ? std::string::npos : secret_in(word, claimed);
    if (secret != std::string::npos) {
      out += word.substr(0, secret);
      out += kMask;
      claimed = Secrecy::kNone;
    } else {
      claimed = Scanner(word, /*whole_value=*/!code, out).run();
    }
    code = introduces_code(word);
  }
  return out;
}

std::string redact_text(std::string_view text) {
  std::string out;
  Scanner(text, /*whole_value=*/false, out).run();
  return out;
}

}  // namespace tidemark::monitor
