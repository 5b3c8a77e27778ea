// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tidemark {

// A command line for recordings and reports: the words joined by blanks, secrets replaced by
// "***". Secret is what follows a telling name (`--token X`, `HF_TOKEN=X`, `Authorization: X`, also
// inside `bash -c` strings), what a known command takes for one (`sshpass -p X`, `mysqldump -pX`,
// `docker login -p X`, `wandb login X`), the password of a URL, the path of a webhook, and what
// looks like a key of a known service wherever it stands. Everything else stays as it is, raw bytes
// included. Linear in the input.
std::string redact_argv(std::span<const std::string> argv);

// The same for a text that is not split into words: a shell command, a log line, "NAME=value".
std::string redact_text(std::string_view text);

}  // namespace tidemark
