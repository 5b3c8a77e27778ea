# Warnings and sanitizers as INTERFACE targets: they apply to our own code only.

add_library(tidemark_warnings INTERFACE)
target_compile_options(tidemark_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-align -Wformat=2 -Wundef
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>)
if(TIDEMARK_WERROR)
  target_compile_options(tidemark_warnings INTERFACE -Werror)
endif()

add_library(tidemark_sanitizers INTERFACE)
if(TIDEMARK_SANITIZE)
  list(JOIN TIDEMARK_SANITIZE "," sanitizers)
  target_compile_options(tidemark_sanitizers INTERFACE
    -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tidemark_sanitizers INTERFACE -fsanitize=${sanitizers})
  # GCC warns of the tracer's fences, because the thread sanitizer does not follow them: should it
  # report a race between their two sides, that need not be one.
  if("thread" IN_LIST TIDEMARK_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(tidemark_sanitizers INTERFACE -Wno-tsan)
  endif()
endif()

# Coverage feedback in everything that a fuzzer links; only the fuzzers themselves get its main().
if(TIDEMARK_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "The fuzzers need clang: use the preset 'fuzz'.")
  endif()
  target_compile_options(tidemark_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(tidemark_sanitizers INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(TIDEMARK_CCACHE ccache)
if(TIDEMARK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache keeps nothing that uses precompiled headers unless it is told that it may.
  set(CMAKE_C_COMPILER_LAUNCHER ${TIDEMARK_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros ${TIDEMARK_CCACHE})
endif()
