// SPDX-License-Identifier: Apache-2.0
// Loads an interpreter, runs a script in it, ends and unloads it, and allocates on, with the next
// interpreter where there is one: python_embedder SCRIPT LIBPYTHON...
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

template <typename Function>
Function look_up(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  return reinterpret_cast<Function>(found);
}

void allocate() {
  for (std::size_t i = 1; i <= 10000; ++i) {
    void* const block = std::malloc(i);
    asm volatile("" ::"r"(block) : "memory");
    std::free(block);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    void* const library = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    look_up<void (*)(int)>(library, "Py_InitializeEx")(0);
    const int result = look_up<int (*)(const char*)>(library, "PyRun_SimpleString")(argv[1]);
    const int ended = look_up<int (*)()>(library, "Py_FinalizeEx")();
    allocate();
    dlclose(library);
    const bool is_loaded = dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD) != nullptr;
    allocate();
    std::printf("ran %d ended %d loaded %d\n", result, ended, is_loaded ? 1 : 0);
  }
  return 0;
}
