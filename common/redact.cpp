// SPDX-License-Identifier: Apache-2.0
#include "common/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "common/secret_names.h"
#include "common/text.h"

namespace tidemark {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kQuotes = "\"'";
constexpr std::string_view kValueEnds = " \t\r\n;|&\"'`()<>{}[]";
constexpr std::string_view kCommandEnds = ";|&\n";
constexpr std::string_view kUrlEnds = " \t\r\n\"'`<>\\";
constexpr std::string_view kAuthorityEnds = "/?# \t\r\n\"'`<>\\";
constexpr std::string_view kDigits = "0123456789";

constexpr std::size_t kDecidingBytes = 256;  // of a value: they tell whether it is a secret

bool is_one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// What a person wrote to say that the secret is elsewhere, or that there is none.
bool is_no_secret(std::string_view value) {
  constexpr std::array<std::string_view, 9> kPlain = {"true", "false", "none", "null", "yes",
                                                      "no",   "auto",  "0",    "1"};
  const std::string lower = to_lower(value.substr(0, 8));
  return value.empty() || value[0] == '$' ||
         std::find(kPlain.begin(), kPlain.end(), lower) != kPlain.end();
}

// Where in "user:password" the password begins; npos when the value is a path, a URL or
// a pair of ids.
std::size_t password_in(std::string_view value) {
  const std::size_t colon = value.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return std::string_view::npos;
  }
  const bool ids = value.find_first_not_of("0123456789:") == std::string_view::npos;
  const bool path = value.substr(0, colon + 2).find('/') != std::string_view::npos;
  return ids || path ? std::string_view::npos : colon + 1;
}

// The first of the items that a comma separates decides.
bool is_random_list(std::string_view value) {
  return looks_random(value.substr(0, value.find(',')));
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
      return is_random_list(value) ? 0 : kNoSecret;
    case Secrecy::kUserPassword:
      return password_in(value);
    case Secrecy::kAuth:
      return is_random_list(value) ? 0 : password_in(value);
  }
  return kNoSecret;
}

bool is_bearer(std::string_view name) { return name == "Bearer" || name == "bearer"; }

// "--lr", "-v", "-j16", "-": a flag, where "-aB3dE6" may be a value that begins with a dash.
bool is_plain_flag(std::string_view word) {
  constexpr std::size_t kLongest = 4;
  return word.starts_with("--") || word.size() <= 2 ||
         (word.size() <= kLongest && std::isalpha(static_cast<unsigned char>(word[1])) != 0 &&
          word.find_first_not_of(kDigits, 2) == std::string_view::npos);
}

// "8080", "9092,host2:9092": what follows the colon of a host rather than of a user.
bool begins_with_port(std::string_view text) {
  constexpr std::size_t kLongestPort = 5;
  const std::size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
  return digits >= 1 && digits <= kLongestPort && (digits == text.size() || text[digits] == ',');
}

// Copies the words of one command line to `out`, masking as it goes. Every character is looked at a
// fixed number of times.
class Scanner {
 public:
  explicit Scanner(std::string& out) : out_(out) {}

  // Copies the next text of the command line. `whole_value`: a value that follows a '=' at the
  // start of the text takes all of its rest, as in an argv word; else it ends like a word of the
  // shell. Returns what the text says about the argv word after it: the text may be a flag.
  Secrecy copy(std::string_view text, bool whole_value) {
    text_ = text;
    whole_value_ = whole_value;
    at_ = 0;
    url_end_ = 0;
    next_ = Secrecy::kNone;
    while (at_ < text_.size()) {
      if (text_.substr(at_).starts_with("://")) {
        copy_url_authority();
      } else if (is_name_character(text_[at_])) {
        copy_name();
      } else {
        if (is_one_of(text_[at_], kCommandEnds)) {
          login_ = registry_ = false;
        }
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

  bool at_blank_or_end(std::size_t at) const {
    return at >= text_.size() || is_one_of(text_[at], kBlanks);
  }
  bool starts_word(std::size_t at) const {
    return at == 0 || is_one_of(text_[at - 1], kBlanks) || is_one_of(text_[at - 1], kQuotes);
  }

  void copy_name() {
    const std::size_t begin = at_;
    const bool password_flag = is_password_flag();
    std::size_t end = begin + (password_flag ? 2 : 0);
    while (!password_flag && end < text_.size() && is_name_character(text_[end])) {
      ++end;
    }
    const std::string_view name = text_.substr(begin, end - begin);
    if (is_service_key(name) || (login_ && starts_word(begin) && is_hex_key(name))) {
      mask_up_to(end);
      return;
    }
    copy_up_to(end);
    note_command(name);
    const Secrecy secrecy = password_flag ? Secrecy::kAlways : secrecy_of(name);
    if (at_ == text_.size()) {
      next_ = begin == 0 && name[0] == '-' ? secrecy : Secrecy::kNone;
    } else if (password_flag && !at_blank_or_end(at_)) {
      copy_value(past_quote(at_), begin, secrecy);
    } else {
      copy_value_of(name, begin, secrecy);
    }
  }

  // -p of the commands that take a password with it: mysql only in the same word.
  bool is_password_flag() const {
    return text_.substr(at_).starts_with("-p") && starts_word(at_) &&
           (sshpass_ || (registry_ && login_) || (mysql_ && !at_blank_or_end(at_ + 2)));
  }

  // Remembers, for the words to come, the commands whose arguments are secrets.
  void note_command(std::string_view name) {
    if (at_blank_or_end(at_)) {
      sshpass_ = sshpass_ || name == "sshpass";
      mysql_ = mysql_ || is_mysql_client(name);
      registry_ = registry_ || is_registry_client(name);
      login_ = login_ || name == "login";
    }
    // Each of these says where the password is; a later -p is one of the command that sshpass runs.
    if (name.size() >= 2 && name[0] == '-' && is_one_of(name[1], "pfde")) {
      sshpass_ = false;
    }
  }

  // What follows the name that began at `begin` and ends at at_.
  void copy_value_of(std::string_view name, std::size_t begin, Secrecy secrecy) {
    while (secrecy != Secrecy::kNone) {
      const std::string_view masked = copy_value(value_of(name, secrecy), begin, secrecy);
      if (!masked.starts_with('-')) {
        return;
      }
      // Perhaps no value but a flag with a value of its own: `--use-auth-token -api_key X`.
      name = masked;
      secrecy = secrecy_of(name);
    }
  }

  // Masks the value that begins at `value` if it is a secret, and returns what was masked.
  std::string_view copy_value(std::size_t value, std::size_t name_begin, Secrecy secrecy) {
    if (value >= text_.size()) {
      return {};
    }
    copy_up_to(value);
    // The beginning decides: what is not masked is looked at again, so this must be bounded.
    const std::size_t deciding_end = end_of_value(secrecy, name_begin, at_ + kDecidingBytes);
    const std::size_t secret = secret_in(text_.substr(at_, deciding_end - at_), secrecy);
    if (secret == std::string_view::npos) {
      return {};
    }
    const std::size_t end = end_of_value(secrecy, name_begin, text_.size());
    copy_up_to(at_ + secret);
    const std::string_view masked = text_.substr(at_, end - at_);
    mask_up_to(end);
    return masked;
  }

  // Where the value of the name that ends at at_ begins, behind its opening quote; npos when what
  // follows does not belong to the name.
  std::size_t value_of(std::string_view name, Secrecy secrecy) const {
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
    const bool flag =
        peek(next) == '-' && (secrecy != Secrecy::kAlways || is_plain_flag(word_at(next)));
    return takes_next_word && next > at_ && sign == at_ && !flag ? past_quote(next)
                                                                 : std::string_view::npos;
  }

  // The beginning of the word at `at`, as much as is_plain_flag() needs.
  std::string_view word_at(std::size_t at) const {
    const std::string_view word = text_.substr(at, 8);
    return word.substr(0, word.find_first_of(kValueEnds));
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
      // A comma may be part of a password or between two; one at the end is neither.
      end = std::min(text.find_first_of(kValueEnds, at_), text.size());
      end -= end > at_ + 1 && text[end - 1] == ',' ? 1U : 0U;
    }
    return std::min(end, text.size());
  }

  void copy_url_authority() {
    copy_up_to(at_ + 3);
    if (const std::size_t secret = secret_in_url(text_.substr(at_)); secret != text_.npos) {
      copy_up_to(at_ + secret);
      mask_up_to(std::min(text_.find_first_of(kValueEnds, at_), text_.size()));
      return;
    }
    const std::size_t end = std::min(text_.find_first_of(kAuthorityEnds, at_), text_.size());
    std::string_view authority = text_.substr(at_, end - at_);
    std::size_t sign = authority.rfind('@');
    if (sign == std::string_view::npos) {
      sign = sign_behind(authority);
      authority = text_.substr(at_, sign);
    }
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

  // The '@' of a URL whose password has one of "/?#" in it, so that `authority` ends within the
  // password; npos if `authority` is a host, and the '@' belongs to a path like pkg@v1. A password
  // that begins like a port, as in u:80/x@h, cannot be told from one.
  std::size_t sign_behind(std::string_view authority) {
    const std::size_t colon = authority.find(':');
    if (colon == std::string_view::npos || authority[0] == '[' ||
        begins_with_port(authority.substr(colon + 1)) ||
        text_.substr(at_ + colon).starts_with("://")) {
      return std::string_view::npos;
    }
    if (at_ >= url_end_) {  // else known from an earlier "://" of the same word
      url_end_ = std::min(text_.find_first_of(kUrlEnds, at_), text_.size());
      const std::size_t sign = text_.substr(at_, url_end_ - at_).rfind('@');
      last_sign_ = sign == std::string_view::npos ? 0 : at_ + sign;
    }
    return last_sign_ > at_ ? last_sign_ - at_ : std::string_view::npos;
  }

  std::string& out_;
  std::string_view text_;
  bool whole_value_ = false;
  std::size_t at_ = 0;
  Secrecy next_ = Secrecy::kNone;
  std::size_t url_end_ = 0;    // as far as the text was searched for last_sign_
  std::size_t last_sign_ = 0;  // the last '@' before url_end_; 0 if there is none
  bool sshpass_ = false;       // the command was seen, and its -p was not
  bool mysql_ = false;
  bool registry_ = false;
  bool login_ = false;
};

// `-c`, `-lc`: the next word is code for a shell.
bool introduces_code(std::string_view word) {
  return word.size() >= 2 && word.size() <= 5 && word[0] == '-' && word[1] != '-' &&
         word.ends_with('c');
}

}  // namespace

std::string redact_argv(std::span<const std::string> argv) {
  std::string out;
  Scanner scanner(out);
  Secrecy claimed = Secrecy::kNone;  // what the flag before says about this word
  bool code = false;
  for (const std::string& word : argv) {
    out += &word == argv.data() ? "" : " ";
    const bool dash = word.starts_with('-');
    const bool flag = dash && (claimed != Secrecy::kAlways || is_plain_flag(word));
    const std::size_t secret = flag ? std::string::npos : secret_in(word, claimed);
    if (secret != std::string::npos) {
      out += word.substr(0, secret);
      out += kMask;
      claimed = dash ? secrecy_of(word) : Secrecy::kNone;  // perhaps a flag after all
    } else {
      claimed = scanner.copy(word, /*whole_value=*/!code);
    }
    code = introduces_code(word);
  }
  return out;
}

std::string redact_text(std::string_view text) {
  std::string out;
  Scanner(out).copy(text, /*whole_value=*/false);
  return out;
}

}  // namespace tidemark
