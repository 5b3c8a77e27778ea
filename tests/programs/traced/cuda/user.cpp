// SPDX-License-Identifier: Apache-2.0
// Loads extensions that need the CUDA runtime, and through them their runtimes, as python does:
// nobody else sees their symbols. usage: traced_cuda_user NAME|close...
// Says how often somebody asked whether a library is loaded: that is how the tracer looks for the
// real functions.
#include <dlfcn.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

using Open = void* (*)(const char*, int);
int g_questions = 0;

}  // namespace

// Before that of libc.
extern "C" void* dlopen(const char* path, int flags) noexcept {
  static const auto real = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "dlopen"));
  g_questions += (flags & RTLD_NOLOAD) != 0 ? 1 : 0;
  return real(path, flags);
}

int main(int argc, char** argv) {
  const std::string program = argv[0];
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  std::vector<void*> extensions;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "close") {
      for (void* const extension : extensions) {
        ::dlclose(extension);
      }
      extensions.clear();
      continue;
    }
    const std::string path = folder + "cuda/libtraced_cuda_extension_" + argv[i] + ".so";
    void* const extension = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (extension == nullptr) {
      return 9;
    }
    extensions.push_back(extension);
    if (const int status = reinterpret_cast<int (*)()>(::dlsym(extension, "use_cuda"))();
        status != 0) {
      return status;
    }
  }
  std::fprintf(stderr, "%d questions\n", g_questions);
  return 0;
}
