// SPDX-License-Identifier: Apache-2.0
#include "common/redact.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tidemark {
namespace {

using Argv = std::vector<std::string>;

// Shaped like keys of services, and put together here so that no scanner takes this file for a
// leak.
const std::string kRandom = "aB3dE6gH9jK2mN5pQ8sT1vW4";
const std::string kHuggingFace = "hf_" + kRandom;
const std::string kGitHub = "ghp_" + kRandom;
const std::string kHex = "3f786850e387550fdab836ed7e6dc881de23001b";

struct Case {
  Argv argv;
  std::string expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    EXPECT_EQ(redact_argv(one.argv), one.expected);
  }
}

TEST(Redact, MasksTheValueOfATellingFlag) {
  expect_all({
      {{"t.py", "--token", "abc"}, "t.py --token ***"},
      {{"t.py", "--token=abc"}, "t.py --token=***"},
      {{"t.py", "--TOKEN=abc"}, "t.py --TOKEN=***"},
      {{"t.py", "--hf_token", "abc", "--lr", "1"}, "t.py --hf_token *** --lr 1"},
      {{"t.py", "--hf-token=abc"}, "t.py --hf-token=***"},
      {{"t.py", "--api-key", "abc"}, "t.py --api-key ***"},
      {{"t.py", "--apiKey=abc"}, "t.py --apiKey=***"},
      {{"t.py", "-api_key", "abc"}, "t.py -api_key ***"},
      {{"t.py", "--authkey", "abc"}, "t.py --authkey ***"},
      {{"t.py", "--creds=user"}, "t.py --creds=***"},
      {{"t.py", "--jwt", "abc", "--otp", "123456"}, "t.py --jwt *** --otp ***"},
      {{"t.py", "--pin", "4711"}, "t.py --pin ***"},
      {{"t.py", "--dsn", "user:pw@tcp(db:3306)/runs"}, "t.py --dsn ***"},
      {{"java", "-DapiKey=abc", "-Dname=x"}, "java -DapiKey=*** -Dname=x"},
      {{"t.py", "--password", "two words"}, "t.py --password ***"},
      {{"t.py", "--password=two words; and more"}, "t.py --password=***"},
      {{"t.py", "--db-pass", "abc"}, "t.py --db-pass ***"},
      {{"t.py", "--client-secret", "abc"}, "t.py --client-secret ***"},
      {{"t.py", "+wandb.api_key=abc"}, "t.py +wandb.api_key=***"},
      {{"t.py", "--authorization", "Bearer abc"}, "t.py --authorization ***"},
      {{"t.py", "--pass", "zz"}, "t.py --pass ***"},
      {{"t.py", "--pw", "zz"}, "t.py --pw ***"},
      {{"t.py", "--passcode", "zz"}, "t.py --passcode ***"},
      {{"t.py", "--pat", "zz"}, "t.py --pat ***"},
      {{"t.py", "--github-pat=zz"}, "t.py --github-pat=***"},
      {{"t.py", "--credentials", "foo"}, "t.py --credentials ***"},
      {{"t.py", "--hf-tokens", "a,b", "--lr", "1"}, "t.py --hf-tokens *** --lr 1"},
      {{"t.py", "--api-keys=a,b"}, "t.py --api-keys=***"},
      {{"t.py", "--auth", "user:pw"}, "t.py --auth user:***"},
      {{"t.py", "--auth=user:p/w"}, "t.py --auth=user:***"},
      {{"t.py", "--auth", kRandom}, "t.py --auth ***"},
      {{"t.py", "--wandb-key", "zz"}, "t.py --wandb-key ***"},
      {{"huggingface-cli", "login", "--token", "zz"}, "huggingface-cli login --token ***"},
  });
}

TEST(Redact, MasksASecretThatBeginsWithADash) {
  expect_all({
      {{"t.py", "--token", "-abc123secret"}, "t.py --token ***"},
      {{"t.py", "--password", "-x9!", "--lr", "1"}, "t.py --password *** --lr 1"},
      {{"sh", "-c", "t.py --token -abc123secret --lr 1"}, "sh -c t.py --token *** --lr 1"},
      // The first flag may have no value, and the second one is a flag.
      {{"t.py", "--use-auth-token", "-api_key", "abc"}, "t.py --use-auth-token *** ***"},
      {{"sh", "-c", "t.py --use-auth-token -api_key abc x"},
       "sh -c t.py --use-auth-token *** *** x"},
      {{"t.py", "--token", "-u", "me:abc"}, "t.py --token -u me:***"},
  });
}

TEST(Redact, MasksEnvironmentLikeArguments) {
  expect_all({
      {{"env", "HF_TOKEN=abc", "python3", "t.py"}, "env HF_TOKEN=*** python3 t.py"},
      {{"env", "HFTOKEN=abc", "t.py"}, "env HFTOKEN=*** t.py"},
      {{"env", "AWS_SECRET_ACCESS_KEY=a/b+c", "t.py"}, "env AWS_SECRET_ACCESS_KEY=*** t.py"},
      {{"env", "WANDB_API_KEY=a b", "t.py"}, "env WANDB_API_KEY=*** t.py"},
      {{"docker", "run", "-e", "DB_PWD=abc", "img"}, "docker run -e DB_PWD=*** img"},
      {{"env", "SSHPASS=zz", "sshpass", "-e", "ssh", "h"}, "env SSHPASS=*** sshpass -e ssh h"},
      {{"env", "MYPASS=zz", "t.py"}, "env MYPASS=*** t.py"},
      {{"env", "WANDB_KEY=zz", "HF_KEY=zz", "t.py"}, "env WANDB_KEY=*** HF_KEY=*** t.py"},
      {{"env", "COMET_KEY=zz", "NEPTUNE_KEY=z", "t.py"}, "env COMET_KEY=*** NEPTUNE_KEY=*** t.py"},
  });
}

TEST(Redact, MasksInsideShellCodeAndKeepsTheRest) {
  expect_all({
      {{"bash", "-c", "HF_TOKEN=abc python t.py"}, "bash -c HF_TOKEN=*** python t.py"},
      {{"bash", "-lc", "export HF_TOKEN='a b'; python t.py"},
       "bash -lc export HF_TOKEN='***'; python t.py"},
      {{"sh", "-c", "python t.py --token abc --lr 1"}, "sh -c python t.py --token *** --lr 1"},
      {{"sh", "-c", "python t.py --token \"a b\" --lr 1"},
       "sh -c python t.py --token \"***\" --lr 1"},
      {{"sh", "-c", "curl -H 'Authorization: Bearer abc' https://x/y"},
       "sh -c curl -H 'Authorization: ***' https://x/y"},
      {{"sh", "-c", "WANDB_API_KEY=a&&python t.py"}, "sh -c WANDB_API_KEY=***&&python t.py"},
      {{"python3", "-c", "import os; os.environ['HF_TOKEN'] = 'abc'; run()"},
       "python3 -c import os; os.environ['HF_TOKEN'] = '***'; run()"},
      {{"python3", "-c", "login(token=\"abc\")"}, "python3 -c login(token=\"***\")"},
      {{"sh", "-c", "HF_TOKENS=a,b t.py --hf-tokens c,d --lr 1"},
       "sh -c HF_TOKENS=*** t.py --hf-tokens *** --lr 1"},
      {{"python3", "-c", "f({token: abc, lr: 1})"}, "python3 -c f({token: ***, lr: 1})"},
      {{"sh", "-c", "sig=" + kRandom + ",x t.py"}, "sh -c sig=*** t.py"},
  });
}

TEST(Redact, MasksWhatAKnownCommandTakesForASecret) {
  expect_all({
      {{"sshpass", "-p", "zz", "ssh", "-p", "22", "h"}, "sshpass -p *** ssh -p 22 h"},
      {{"sshpass", "-pzz", "ssh", "-p22", "h"}, "sshpass -p*** ssh -p22 h"},
      {{"/usr/bin/sshpass", "-v", "-P", "word", "-p", "-zz!", "ssh"},
       "/usr/bin/sshpass -v -P word -p *** ssh"},
      {{"sh", "-c", "sshpass -p 'z z' ssh -p 22 h"}, "sh -c sshpass -p '***' ssh -p 22 h"},
      {{"sh", "-c", "sshpass -pz@z ssh -p 22 h"}, "sh -c sshpass -p*** ssh -p 22 h"},
      {{"mysql", "-u", "root", "-ppassw0rd", "db"}, "mysql -u root -p*** db"},
      {{"mysql", "-e", "select 1;", "-p@!x"}, "mysql -e select 1; -p***"},
      {{"sh", "-c", "mysql -p'a b' db"}, "sh -c mysql -p'***' db"},
      {{"/usr/bin/mysqldump", "-uroot", "-pzz", "db"}, "/usr/bin/mysqldump -uroot -p*** db"},
      {{"mariadb", "-pzz"}, "mariadb -p***"},
      {{"mariadb-dump", "-pzz", "db"}, "mariadb-dump -p*** db"},
      {{"sh", "-c", "mysqladmin -pzz status | tee x"}, "sh -c mysqladmin -p*** status | tee x"},
      {{"docker", "login", "-u", "me", "-p", "zz", "ghcr.io"}, "docker login -u me -p *** ghcr.io"},
      {{"docker", "login", "-u", "me", "-pzz"}, "docker login -u me -p***"},
      {{"docker", "login", "-p=zz", "ghcr.io"}, "docker login -p*** ghcr.io"},
      {{"sh", "-c", "podman login -u me -p 'z z' h && podman run -p 80:80 i"},
       "sh -c podman login -u me -p '***' h && podman run -p 80:80 i"},
      {{"wandb", "login", kHex}, "wandb login ***"},
      {{"wandb", "login", "--relogin", "local-" + kHex}, "wandb login --relogin ***"},
      {{"sh", "-c", "wandb login '" + kHex + "' && t.py --commit " + kHex},
       "sh -c wandb login '***' && t.py --commit " + kHex},
  });
}

TEST(Redact, MasksHeadersJsonAndUserPasswords) {
  expect_all({
      {{"curl", "-H", "Authorization: Bearer abc"}, "curl -H Authorization: ***"},
      {{"curl", "-H", "X-Api-Key: abc"}, "curl -H X-Api-Key: ***"},
      {{"curl", "-H", "Cookie: session=1; id=2"}, "curl -H Cookie: ***"},
      {{"t.py", "--config", "{\"api_key\": \"abc\", \"lr\": 1}"},
       "t.py --config {\"api_key\": \"***\", \"lr\": 1}"},
      {{"curl", "-u", "me:abc", "x"}, "curl -u me:*** x"},
      {{"curl", "--user=me:abc", "x"}, "curl --user=me:*** x"},
      {{"sh", "-c", "curl -u me:abc x"}, "sh -c curl -u me:*** x"},
      {{"echo", "Bearer " + kRandom}, "echo Bearer ***"},
  });
}

TEST(Redact, MasksThePathOfAWebhook) {
  expect_all({
      {{"t.py", "https://hooks.slack.com/services/T0/B0/abc"},
       "t.py https://hooks.slack.com/services/***"},
      {{"t.py", "--url=https://discord.com/api/webhooks/12/a-b_c?wait=true", "x"},
       "t.py --url=https://discord.com/api/webhooks/*** x"},
      {{"sh", "-c", "curl https://api.telegram.org/bot12:AAbc/sendMessage; python t.py"},
       "sh -c curl https://api.telegram.org/bot***; python t.py"},
  });
}

TEST(Redact, MasksThePasswordOfAUrl) {
  expect_all({
      {{"git", "clone", "https://me:abc@host/x.git"}, "git clone https://me:***@host/x.git"},
      {{"git", "clone", "https://me:a:b@c@host/x"}, "git clone https://me:***@host/x"},
      {{"git", "clone", "https://" + kGitHub + "@host/x"}, "git clone https://***@host/x"},
      {{"git", "clone", "https://" + kRandom + "@host/x"}, "git clone https://***@host/x"},
      {{"t.py", "--db=postgresql://me:abc@host:5432/db"},
       "t.py --db=postgresql://me:***@host:5432/db"},
      {{"t.py", "postgres://u:p/w@h/db"}, "t.py postgres://u:***@h/db"},
      {{"t.py", "postgres://u:p/w?x#y@z@h/db"}, "t.py postgres://u:***@h/db"},
      {{"t.py", "redis://:/pw@h:6379/0"}, "t.py redis://:***@h:6379/0"},
      {{"sh", "-c", "psql 'postgres://u:p/w@h/db' a@b"}, "sh -c psql 'postgres://u:***@h/db' a@b"},
      {{"t.py", "https://me:abc@host/pkg@v1"}, "t.py https://me:***@host/pkg@v1"},
      {{"t.py", "https://host/x?token=abc&page=2"}, "t.py https://host/x?token=***&page=2"},
      {{"t.py", "s3://b/x?X-Amz-Signature=" + kRandom}, "t.py s3://b/x?X-Amz-Signature=***"},
  });
}

TEST(Redact, MasksKeysOfKnownServicesWhereverTheyStand) {
  for (const std::string& key :
       {kHuggingFace, kGitHub, "sk-" + kRandom, "sk-proj-" + kRandom, "github_pat_" + kRandom,
        "glpat-" + kRandom, std::string("AKIA") + "ABCDEFGH12345678", "xoxb-1234567890-" + kRandom,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + kRandom, "AIza" + kRandom, "nvapi-" + kRandom}) {
    EXPECT_EQ(redact_argv(Argv{"t.py", key}), "t.py ***");
    EXPECT_EQ(redact_argv(Argv{"t.py", "--x=" + key + ",y"}), "t.py --x=***,y");
    EXPECT_EQ(redact_text("login " + key + "\n"), "login ***\n");
  }
}

TEST(Redact, MasksGeneratedValuesOfOtherKeys) {
  expect_all({
      {{"t.py", "--key", kRandom}, "t.py --key ***"},
      {{"t.py", "--license-key-b64=" + kRandom}, "t.py --license-key-b64=***"},
      {{"t.py", "AZURE_STORAGE_KEY=" + kRandom + "=="}, "t.py AZURE_STORAGE_KEY=***"},
  });
}

TEST(Redact, KeepsWhatOnlySoundsLikeASecret) {
  const std::vector<Argv> harmless = {
      {"t.py", "--tokenizer", "gpt2"},
      {"t.py", "--cpu-pin", "0-3"},
      {"t.py", "--pin-memory", "yes-please"},
      {"cmake", "-DCMAKE_BUILD_TYPE=Release"},
      {"t.py", "--tokenizer=meta-llama/Llama-3.1-8B-Instruct"},
      {"t.py", "--max-tokens", "128"},
      {"t.py", "--num_tokens=5"},
      {"t.py", "--token-budget", "4096"},
      {"t.py", "--tokens-per-step=100"},
      {"t.py", "--eos-token", "</s>"},
      {"t.py", "--pad_token=<pad>"},
      {"t.py", "--placeholder_token", "<cat-toy>"},
      {"t.py", "--use-auth-token", "True"},
      {"t.py", "--token-file", "/run/secrets/token"},
      {"t.py", "--password-stdin"},
      {"t.py", "--token", "--verbose"},
      {"t.py", "--token", "$HF_TOKEN"},
      {"bash", "-c", "HF_TOKEN=$HF_TOKEN python t.py"},
      {"env", "HF_TOKEN=", "python3", "t.py"},
      {"env", "PWD=/home/me", "t.py"},
      {"t.py", "--key", "images"},
      {"t.py", "--sort-key=step"},
      {"t.py", "--key-path=/checkpoints/run12/model_final_step1000"},
      {"t.py", "--two-pass", "5"},
      {"t.py", "--path", "x", "--pattern", "x", "--patience", "5", "--compat", "x"},
      {"t.py", "--bypass", "x", "--compass", "x", "--num-passes", "3", "--pass-through", "x"},
      {"t.py", "--auth-type", "basic", "--auth", "basic", "--auth", "https://host/x"},
      {"t.py", "--key-frames", "12", "--new-tokens", "12", "--sort-keys", "a,b"},
      {"t.py", "--token", "-v", "--token", "-j16", "--token", "-"},
      {"python3", "-u", "-Wignore::DeprecationWarning", "t.py"},
      {"ssh", "-p", "22", "-pfoo", "h"},
      {"mysql", "-p", "db", "-P", "3306"},
      {"sshpass", "-f", "file", "ssh", "-p", "22", "h"},
      {"t.py", "--user", "/data:/mnt"},
      {"docker", "login", "-u", "me", "ghcr.io"},
      {"docker", "run", "-p", "8080:80", "-p9090:90", "img"},
      {"sh", "-c", "wandb login; docker run -p 8080:80 img"},
      {"gh", "auth", "login", "-p", "https"},
      {"mysqldump", "-p", "db"},
      {"mysqld", "-pfoo"},
      {"t.py", "-p", "8080"},
      {"t.py", "--output", "runs/2024-05-01/sk-learn-baseline-v2"},
      {"t.py", "--model", "hf_internal_testing_tiny_random"},
      {"docker", "run", "-u", "1000:1000", "--user", "0:0", "img"},
      {"python3", "-u", "train.py"},
      {"git", "clone", "ssh://git@host/x.git"},
      {"git", "clone", "https://me@host/x.git"},
      {"t.py", "--url", "http://localhost:8080/a:b@c"},
      {"t.py", "https://discord.com/channels/1/2", "https://api.telegram.org/"},
      {"t.py", "https://host/path@v1", "https://host:8080/x@v1", "http://[::1]:80/x@v1"},
      {"t.py", "kafka://h1:9092,h2:9092/a@b", "k8s://https://host:443/a@b", "s3://b/a:b@c"},
      {"t.py", "--commit", kHex},
      {"git", "checkout", kHex, "login"},
      {"sh", "-c", "if [ $token == x ]; then echo key; fi"},
      {"/usr/bin/python3",
       "/usr/lib/python3/dist-packages/torch/_inductor/compile_worker/__main__.py",
       "--pickler=torch._inductor.compile_worker.subproc_pool.SubprocPickler", "--kind=fork",
       "--workers=20", "--parent=4610", "--read-fd=5", "--write-fd=8",
       "--torch-key=pLw3Q2zJ0v1kXnS8dYb5TgHc6RfUa9eMmB7iKq4oWxE="},
      {"", "t.py", "", "--"},
  };
  for (const Argv& argv : harmless) {
    std::string joined;
    for (const std::string& word : argv) {
      joined += (&word == argv.data() ? "" : " ") + word;
    }
    EXPECT_EQ(redact_argv(argv), joined);
  }
}

TEST(Redact, KeepsRawBytes) {
  EXPECT_EQ(redact_argv(Argv{"t\xFF.py", "\x1b[31m", "--token=\x80"}),
            "t\xFF.py \x1b[31m --token=***");
}

TEST(Redact, SurvivesTextThatEndsAnywhere) {
  const std::string text = "curl -H 'Authorization: Bearer a' --token \"b\" https://u:p@h/ x = '";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    EXPECT_LE(redact_text(text.substr(0, length)).size(), length + 16);
  }
}

TEST(Redact, TakesLinearTimeOnHostileInput) {
  // Looking at the rest of the text from each of its names would take minutes.
  for (const std::string unit : {"--token ", "token=", "://", "a:", "'", "-", "eyJ.", "\"key\":",
                                 "cookie=$ ", "key=", "://a:/", "://a:b/@", "--token -token ",
                                 "sshpass -p$ ", "docker login -p$ ", "login ", "-p"}) {
    std::string text;
    while (text.size() < 64 * 1024) {
      text += unit;
    }

    EXPECT_FALSE(redact_argv(Argv{"sh", "-c", text}).empty());
  }
}

}  // namespace
}  // namespace tidemark
