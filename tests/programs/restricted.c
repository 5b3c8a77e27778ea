// SPDX-License-Identifier: Apache-2.0
// Programs with a filter for system calls.
//   restricted strict               may only read, write and exit, until standard input ends
//   restricted docker COMMAND ...   runs a command without the system calls that containers forbid
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_only(void) {
  char byte = 0;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
    return 77;
  }
  (void)!write(STDOUT_FILENO, "ready\n", 6);
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  syscall(SYS_exit, 0);
  return 0;
}

#define REFUSE(number, error)                          \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static int run_restricted(char** command) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      REFUSE(SYS_clone3, ENOSYS),
      REFUSE(SYS_pidfd_getfd, EPERM),
      REFUSE(SYS_ptrace, EPERM),
      REFUSE(SYS_process_vm_readv, EPERM),
      REFUSE(SYS_process_vm_writev, EPERM),
      REFUSE(SYS_setns, EPERM),
      REFUSE(SYS_unshare, EPERM),
      REFUSE(SYS_mount, EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog all = {sizeof(program) / sizeof(program[0]), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) {
    return 77;
  }
  execvp(command[0], command);
  return 1;
}

int main(int count, char** arguments) {
  if (count == 2 && strcmp(arguments[1], "strict") == 0) {
    return read_only();
  }
  if (count > 2 && strcmp(arguments[1], "docker") == 0) {
    return run_restricted(arguments + 2);
  }
  return 2;
}
