// SPDX-License-Identifier: Apache-2.0
// Programs that nobody here wrote: under the tracer they say and return what they do without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/io.h"
#include "tests/support/subprocess.h"
#include "tests/support/temp_tree.h"
#include "tests/support/traced_run.h"

namespace tidemark::tests {
namespace {

using wire::Mode;

constexpr char kJemalloc[] = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
constexpr char kMimalloc[] = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2";
constexpr char kTcmalloc[] = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4";

bool exists(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

struct Outcome {
  int status = -1;
  std::string output;
  std::string errors;
};

// A script for bash, which begins in an empty folder of its own.
std::vector<std::string> in_folder(const TempTree& folder, const std::string& script) {
  return {"/bin/bash", "-c", "cd \"$0\" || exit 99\n" + script, folder.path()};
}

Outcome run_plain(const std::string& script, const std::vector<std::string>& variables = {}) {
  const TempTree folder;
  std::vector<std::string> command = {"/usr/bin/env"};
  command.insert(command.end(), variables.begin(), variables.end());
  const auto rest = in_folder(folder, script);
  command.insert(command.end(), rest.begin(), rest.end());
  Subprocess program(command);
  program.close_input();
  const int status = program.wait();
  return {status, program.output(), program.errors()};
}

// A process that is killed while its tracer sets up leaves a file that tells nothing.
enum class Killing { kNobody, kNewborns };

// Runs the script under the tracer and expects what a plain run gave.
void expect_same(const std::string& script, const Outcome& plain, const TraceAsk& ask,
                 Killing killing = Killing::kNobody) {
  const TempTree folder;
  TraceAsk here = ask;
  here.names = false;
  const TracedRun traced = run_traced(in_folder(folder, script), here);

  EXPECT_EQ(traced.status, plain.status);
  EXPECT_EQ(traced.output, plain.output);
  EXPECT_EQ(traced.errors, plain.errors);
  if (killing == Killing::kNobody) {
    EXPECT_EQ(traced.unreadable, 0U);
  }
  EXPECT_FALSE(traced.files.empty());
  for (const TracedFile& file : traced.files) {
    const auto& losses = file.snapshot.losses;
    EXPECT_EQ(losses.live_full + losses.sites_full + losses.extend_failures, 0U);
    EXPECT_EQ(file.snapshot.read_losses.damaged_items, 0U);
  }
}

void expect_same_in_both_modes(const std::string& script) {
  const Outcome plain = run_plain(script);
  ASSERT_EQ(plain.status, 0) << plain.output << plain.errors;
  for (const Mode mode : {Mode::kExact, Mode::kSampled}) {
    SCOPED_TRACE(mode == Mode::kExact ? "exact" : "sampled");
    TraceAsk ask;
    ask.mode = mode;
    expect_same(script, plain, ask);
  }
}

void expect_same_beside(const std::string& script, const std::string& allocator) {
  if (!exists(allocator)) {
    GTEST_SKIP() << allocator << " is not installed";
  }
  const Outcome plain = run_plain(script, {"LD_PRELOAD=" + allocator});
  ASSERT_EQ(plain.status, 0) << plain.output << plain.errors;
  TraceAsk ask;
  ask.also_preload = {operators_path(), allocator};
  expect_same(script, plain, ask);
}

#define SKIP_WITHOUT(program)                         \
  if (!exists(program)) {                             \
    GTEST_SKIP() << (program) << " is not installed"; \
  }

// A program under the tracer in both modes, and beside three other allocators.
#define STRANGER(name, program, script)             \
  TEST(Stranger, name##SaysTheSame) {               \
    SKIP_WITHOUT(program);                          \
    expect_same_in_both_modes(script);              \
  }                                                 \
  TEST(Stranger, name##SaysTheSameBesideJemalloc) { \
    SKIP_WITHOUT(program);                          \
    expect_same_beside(script, kJemalloc);          \
  }                                                 \
  TEST(Stranger, name##SaysTheSameBesideTcmalloc) { \
    SKIP_WITHOUT(program);                          \
    expect_same_beside(script, kTcmalloc);          \
  }                                                 \
  TEST(Stranger, name##SaysTheSameBesideMimalloc) { \
    SKIP_WITHOUT(program);                          \
    expect_same_beside(script, kMimalloc);          \
  }                                                 \
  static_assert(true)

constexpr char kCompile[] = R"sh(
cat > big.cpp <<'END'
#include <iostream>
#include <map>
#include <regex>
#include <string>
int main(int argc, char** argv) {
  std::map<std::string, std::smatch> found;
  for (int i = 0; i < argc; ++i) {
    std::string text = argv[i];
    std::regex_search(text, found[text], std::regex("(a|b)*c[0-9]+"));
  }
  for (const auto& [text, match] : found) std::cout << text << ' ' << match.size() << '\n';
}
END
g++ -std=c++20 -O1 -c big.cpp -o big.o && sha256sum big.o && g++ big.o -o big && ./big abc12 bbc
)sh";

STRANGER(Gcc, "/usr/bin/g++", kCompile);

constexpr char kGit[] = R"sh(
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_PAGER=cat
git config --global user.email a@example.org; git config --global user.name A
git config --global init.defaultBranch main
git init -q one && cd one
for i in $(seq 12); do seq $i $((i * 300)) > file$((i % 4)); git add -A; git commit -qm "change $i"; done
cd .. && git clone -q one two && cd two
git log --stat && git gc -q && git fsck && git rev-parse HEAD && git diff HEAD~3 | sha256sum
)sh";

STRANGER(Git, "/usr/bin/git", kGit);

constexpr char kPython[] = R"sh(
/usr/bin/python3 - <<'END'
import collections, ctypes, gc, hashlib, json, mmap, re, subprocess, sys, threading
data = [{'n': i, 'text': 'x' * (i % 50)} for i in range(20000)]
print(hashlib.sha256(json.dumps(data).encode()).hexdigest())
totals = collections.Counter()
def work(n):
    for i in range(3000): totals[n] += len(re.sub('[0-9]', 'y', str(i)))
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(totals.items()))
area = mmap.mmap(-1, 1 << 20); area.write(b'z' * 5000); area.resize(1 << 21); print(area[4999], len(area))
print(subprocess.run(['/bin/echo', 'child'], env={}, capture_output=True).stdout)
print(ctypes.CDLL(None).strlen(b'four'))
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
print(deep(900))
try: bytearray(1 << 62)
except MemoryError: print('MemoryError')
del data; gc.collect()
END
)sh";

STRANGER(Python, "/usr/bin/python3", kPython);

// Its own test suite; the times that it prints differ, so that only the result counts.
void expect_suite_passes(const std::string& tests, Mode mode, Killing killing = Killing::kNobody) {
  SKIP_WITHOUT("/usr/bin/python3");
  if (run_plain("/usr/bin/python3 -c 'import test.test_dict'").status != 0) {
    GTEST_SKIP() << "libpython3-testsuite is not installed";
  }
  const std::string script = "/usr/bin/python3 -m test -q " + tests + " > out 2>&1; code=$?\n" +
                             "[ $code -eq 0 ] || cat out; exit $code";
  ASSERT_EQ(run_plain(script).status, 0);
  TraceAsk ask;
  ask.mode = mode;
  expect_same(script, {0, "", ""}, ask, killing);
}

TEST(Stranger, PythonPassesItsOwnTestsExactly) {
  expect_suite_passes("test_json test_dict test_mmap test_ctypes", Mode::kExact);
}
// Frames that move, are traced, are kept, or are freed with what they hold.
TEST(Stranger, PythonPassesItsOwnTestsOfFrames) {
  expect_suite_passes("test_coroutines test_generators test_frame test_gc test_sys_settrace",
                      Mode::kExact);
}
// Children by fork, vfork and posix_spawn, with environments and descriptors of their own. Left out
// is what waits for seconds; the rest takes a few.
TEST(Stranger, PythonPassesItsOwnTestsOfSubprocesses) {
  expect_suite_passes(
      "test_subprocess -m 'test_[c-e]*' -i '*timeout*' -i '*communicate_*' -i '*close_fds*'",
      Mode::kSampled, Killing::kNewborns);
}
TEST(Stranger, PythonPassesItsOwnTestsOfProcessesSampled) {
  expect_suite_passes("test_threading test_posix -m 'test_[a-j]*'", Mode::kSampled);
}

// Of descriptors that it did not open itself.
TEST(Stranger, PythonFindsItsDescriptorsClosedUnderALowLimit) {
  expect_suite_passes("test_subprocess -m '*close_fds_when_max_fd_is_lowered'", Mode::kSampled);
}

// Another C library, under which the tracer stays off. What such a program starts is traced again.
constexpr char kMusl[] = R"sh(
cat > small.c <<'END'
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *sum) {
  for (int i = 1; i < 5000; ++i) {
    char *block = realloc(calloc(i, 3), i * 7);
    block[i * 7 - 1] = 1;
    *(long *)sum += block[i * 7 - 1] + block[0];
    free(block);
  }
  return 0;
}
extern char **environ;
int main(void) {
  long sums[4] = {0};
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, work, &sums[i]);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
  char *area = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(area, 1, 1 << 20);
  void *aligned = 0;
  printf("%ld %d %d\n", sums[0] + sums[3], area[77], posix_memalign(&aligned, 64, 1000));
  munmap(area, 1 << 20);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    free(malloc(100));
    execl("/bin/echo", "echo", "by exec", (char *)0);
    _exit(9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  char *arguments[] = {"/bin/echo", "by spawn", 0};
  posix_spawn(&pid, arguments[0], 0, 0, arguments, environ);
  waitpid(pid, &status, 0);
  return system("echo by system") + status;
}
END
musl-gcc small.c -o small && ./small
)sh";

TEST(Stranger, ProgramsOfMuslSayTheSame) {
  SKIP_WITHOUT("/usr/bin/musl-gcc");
  expect_same_in_both_modes(kMusl);
}

constexpr char kSqlite[] = R"sh(
sqlite3 base.db "create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x+1 from c where x < 30000)
insert into t select x, hex(x * 7919) from c;
create index i on t(b); select count(*), max(b), sum(length(b)) from t where b > '33';
pragma mmap_size = 10000000; select a, b from t order by b desc limit 5; vacuum; pragma integrity_check;"
)sh";

STRANGER(Sqlite, "/usr/bin/sqlite3", kSqlite);

constexpr char kOpenssl[] = R"sh(
seq 200000 > numbers
for kind in md5 sha256 sha3-512 blake2b512; do openssl dgst -$kind numbers || exit 1; done
openssl enc -aes-256-cbc -pbkdf2 -nosalt -pass pass:x -in numbers | openssl dgst -sha256
)sh";

STRANGER(Openssl, "/usr/bin/openssl", kOpenssl);

constexpr char kNode[] = R"sh(
node -e "
const m = new Map(); for (let i = 0; i < 100000; ++i) m.set('k' + i, {i, s: String(i).repeat(3)});
let sum = 0; for (const v of m.values()) sum += v.s.length;
const b = Buffer.alloc(10000000, 7); console.log(sum, m.size, b[123456],
  require('crypto').createHash('sha256').update(JSON.stringify([...m])).digest('hex'));
new (require('worker_threads').Worker)('console.log(1 + 1)', {eval: true});"
)sh";

STRANGER(Node, "/usr/bin/node", kNode);

constexpr char kJava[] = R"sh(
cat > Sum.java <<'END'
import java.util.*;
public class Sum {
  public static void main(String[] a) throws Exception {
    Map<Integer, String> m = new HashMap<>();
    for (int i = 0; i < 200000; ++i) m.put(i, "v" + i);
    Thread[] t = new Thread[4];
    for (int i = 0; i < 4; ++i) { t[i] = new Thread(() -> m.values().stream().mapToInt(String::length).sum()); t[i].start(); }
    for (Thread x : t) x.join();
    try { Object o = null; o.hashCode(); } catch (NullPointerException e) { System.out.println("caught"); }
    System.out.println(m.values().stream().mapToInt(String::length).sum());
  }
}
END
javac Sum.java && java -XX:+UseSerialGC -Xmx256m Sum
)sh";

STRANGER(Java, "/usr/bin/javac", kJava);

// The server and this tool are one program, told apart by its name; the package of the server would
// start one.
constexpr char kRedis[] = R"sh(
(exec -a redis-server redis-check-rdb --port 0 --unixsocket $PWD/s --save '' --appendonly no) > log 2>&1 &
for i in $(seq 200); do [ "$(redis-cli -s s ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
for i in $(seq 500); do echo "set key$i value$((i * 31))"; echo "lpush list item$i"; done > commands
echo "get key77
lrange list 0 5
eval 'local n = 0; for i = 1, 10000 do n = n + i end; return n' 0
dbsize
flushall" >> commands
redis-cli -s s < commands; redis-cli -s s shutdown nosave; wait; echo ended with $?
)sh";

STRANGER(Redis, "/usr/bin/redis-check-rdb", kRedis);

constexpr char kBash[] = R"sh(
declare -A seen; for i in {1..2000}; do seen[$((i % 97))]+=x; done; echo ${#seen[@]} ${#seen[5]}
for i in 1 2 3; do (exec -a odd sh -c 'echo $0'); done
seq 1000 | while read n; do [ $((n % 250)) = 0 ] && echo $n; done | sort -r | tr '\n' ' '
env -i /bin/sh -c 'echo alone; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^LD_PRELOAD= -e ^TIDEMARK_TRACE='
ls /nonexistent; trap 'echo bye' EXIT; trap 'echo term' TERM; false || { kill -TERM $$ & } ; wait; echo last
)sh";

STRANGER(Bash, "/bin/bash", kBash);

}  // namespace
}  // namespace tidemark::tests
