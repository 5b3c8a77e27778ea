// SPDX-License-Identifier: Apache-2.0
// Loads extensions that need the CUDA runtime, and through them their runtimes, as python does:
// nobody else sees their symbols. usage: traced_cuda_user NAME...
#include <dlfcn.h>

#include <string>

int main(int argc, char** argv) {
  const std::string program = argv[0];
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  for (int i = 1; i < argc; ++i) {
    const std::string path = folder + "cuda/libtraced_cuda_extension_" + argv[i] + ".so";
    void* const extension = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (extension == nullptr) {
      return 9;
    }
    if (const int status = reinterpret_cast<int (*)()>(::dlsym(extension, "use_cuda"))();
        status != 0) {
      return status;
    }
  }
  return 0;
}
