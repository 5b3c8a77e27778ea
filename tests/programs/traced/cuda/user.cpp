// SPDX-License-Identifier: Apache-2.0
// Loads an extension that needs the CUDA runtime, and through it the runtime, as python does:
// nobody else sees its symbols.
#include <dlfcn.h>

#include <string>

int main(int, char** argv) {
  const std::string program = argv[0];
  const std::string folder = program.substr(0, program.rfind('/') + 1);
  void* const extension =
      ::dlopen((folder + "cuda/libtraced_cuda_extension.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (extension == nullptr) {
    return 9;
  }
  return reinterpret_cast<int (*)()>(::dlsym(extension, "use_cuda"))();
}
