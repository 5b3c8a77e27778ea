# Targets with ranks. A library may depend on lower ranks only; a wrong dependency stops the
# configuration. docs/architecture.md has the table.

define_property(TARGET PROPERTY TIDEMARK_RANK
                BRIEF_DOCS "layer of a target" FULL_DOCS "0 base, 1 to 5 modules, 6 programs")

function(tidemark_check_ranks name rank)
  foreach(dep IN LISTS ARGN)
    if(NOT TARGET ${dep})
      continue()  # a plain library name such as dl
    endif()
    get_target_property(dep_rank ${dep} TIDEMARK_RANK)
    if(dep_rank MATCHES "^[0-9]+$" AND NOT dep_rank LESS rank)
      message(FATAL_ERROR "${name} (rank ${rank}) may not depend on ${dep} (rank ${dep_rank}): "
                          "dependencies point to lower ranks only")
    endif()
  endforeach()
endfunction()

function(tidemark_setup_target name rank)
  set_property(TARGET ${name} PROPERTY TIDEMARK_RANK ${rank})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE tidemark_warnings tidemark_sanitizers)
endfunction()

# What nearly every file includes, compiled once: it is most of the time that a file takes. Files
# include what they use all the same; the preset `dev` builds without, and would tell.
if(TIDEMARK_PRECOMPILED_HEADERS)
  set(TIDEMARK_COMMON_HEADERS
    <algorithm> <array> <cstdint> <functional> <memory> <optional> <string> <string_view>
    <unordered_map> <utility> <vector> <fmt/format.h>)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
  add_library(tidemark_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(tidemark_precompiled PRIVATE fmt::fmt tidemark_warnings
                                                     tidemark_sanitizers)
  target_precompile_headers(tidemark_precompiled PRIVATE ${TIDEMARK_COMMON_HEADERS})
endif()

function(tidemark_use_precompiled name from)
  if(TIDEMARK_PRECOMPILED_HEADERS)
    target_precompile_headers(${name} REUSE_FROM ${from})
  endif()
endfunction()

# Several files of a library as one: what they include is then read once for all of them. Names in
# their anonymous namespaces have to differ within a folder.
function(tidemark_compile_together name)
  if(TIDEMARK_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# tidemark_add_library(NAME RANK n SOURCES ... [DEPS public...] [PRIVATE_DEPS private...]
#                      [TOGETHER] [PLAIN])
# TOGETHER: see above. PLAIN: without the precompiled headers, for what has flags of its own.
function(tidemark_add_library name)
  cmake_parse_arguments(ARG "PLAIN;TOGETHER" "RANK" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  tidemark_check_ranks(${name} ${ARG_RANK} ${ARG_DEPS} ${ARG_PRIVATE_DEPS})
  add_library(${name} STATIC ${ARG_SOURCES})
  tidemark_setup_target(${name} ${ARG_RANK})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  if(NOT ARG_PLAIN)
    tidemark_use_precompiled(${name} tidemark_precompiled)
  endif()
  if(ARG_TOGETHER)
    tidemark_compile_together(${name})
  endif()
endfunction()

# What people run, and nothing that only tests need: `./dev build` and `./dev demo` build it.
add_custom_target(tidemark_product)

# tidemark_add_program(NAME RANK n SOURCES ... DEPS ... [PLAIN])
function(tidemark_add_program name)
  cmake_parse_arguments(ARG "PLAIN" "RANK" "SOURCES;DEPS" ${ARGN})
  tidemark_check_ranks(${name} ${ARG_RANK} ${ARG_DEPS})
  add_executable(${name} ${ARG_SOURCES})
  tidemark_setup_target(${name} ${ARG_RANK})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  add_dependencies(tidemark_product ${name})
  if(NOT ARG_PLAIN)
    tidemark_use_precompiled(${name} tidemark_precompiled)
  endif()
endfunction()

if(TIDEMARK_PRECOMPILED_HEADERS AND BUILD_TESTING)
  add_library(tidemark_precompiled_tests OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(tidemark_precompiled_tests PRIVATE fmt::fmt GTest::gmock
                                                           tidemark_warnings
                                                           tidemark_sanitizers)
  target_compile_options(tidemark_precompiled_tests PRIVATE
                         $<$<CONFIG:RelWithDebInfo>:-O0 -g1>)
  target_precompile_headers(tidemark_precompiled_tests PRIVATE ${TIDEMARK_COMMON_HEADERS}
                            <gmock/gmock.h> <gtest/gtest.h>)
endif()

add_custom_target(tidemark_unit_tests)  # what the sanitizer presets build
add_custom_target(tidemark_fuzzers)     # what the fuzz preset builds

# tidemark_add_test(NAME LABEL unit|integration|stress|... SOURCES ... DEPS ... [TIMEOUT s]
#                   [NEEDS targets that the tests run] [SERIAL] [OWN_MACHINE])
# One GoogleTest program; each of its tests becomes a ctest test with the label and a timeout.
# OWN_MACHINE: they look at the whole machine and must see no other jobs; own_machine_main.cpp says
# how. Where that is not allowed, SERIAL at least keeps other tests away.
function(tidemark_add_test name)
  cmake_parse_arguments(ARG "SERIAL;OWN_MACHINE" "LABEL;TIMEOUT" "SOURCES;DEPS;NEEDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 30)
  endif()
  set(main GTest::gmock_main)
  if(ARG_OWN_MACHINE)
    list(APPEND ARG_SOURCES ${PROJECT_SOURCE_DIR}/tests/support/own_machine_main.cpp)
    set(main GTest::gmock)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} fmt::fmt ${main} tidemark_warnings
                                        tidemark_sanitizers)
  # The code under test keeps its optimisation; the tests themselves are compiled twice as fast.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0 -g1>)
  if(NOT ARG_SOURCES MATCHES "\\.c(;|$)")  # they are C++
    tidemark_use_precompiled(${name} tidemark_precompiled_tests)
  endif()
  target_compile_definitions(${name} PRIVATE
    TIDEMARK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TIDEMARK_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(ARG_NEEDS)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(tidemark_unit_tests ${name})
  endif()
  set(properties LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_SERIAL)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  # Parameters are named by their number: their bytes would be different in every build.
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()

# tidemark_add_victim(NAME SOURCE ...): a small program that tests watch or run.
function(tidemark_add_victim name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           ${PROJECT_BINARY_DIR}/tests/programs)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE tidemark_warnings Threads::Threads)
endfunction()

# tidemark_add_fuzzer(NAME SOURCES ... DEPS ... [CORPUS directory of seeds] [DICT file]
#                     [MAX_LEN bytes])
# A libFuzzer program and its short run under ctest (label fuzz-smoke). What it finds is kept under
# the build directory, never in the seeds. Does nothing unless TIDEMARK_BUILD_FUZZERS is on.
function(tidemark_add_fuzzer name)
  if(NOT TIDEMARK_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS;DICT;MAX_LEN" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} tidemark_warnings tidemark_sanitizers)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(found ${PROJECT_BINARY_DIR}/fuzz/found/${name})
  file(MAKE_DIRECTORY ${found})
  set(arguments -max_total_time=4 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
                -artifact_prefix=${PROJECT_BINARY_DIR}/fuzz/${name}-)
  if(ARG_MAX_LEN)
    list(APPEND arguments -max_len=${ARG_MAX_LEN})
  endif()
  if(ARG_DICT)
    list(APPEND arguments -dict=${CMAKE_CURRENT_SOURCE_DIR}/${ARG_DICT})
  endif()
  list(APPEND arguments ${found})
  if(ARG_CORPUS)
    list(APPEND arguments ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  endif()
  add_test(NAME fuzz.${name} COMMAND ${name} ${arguments})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz-smoke TIMEOUT 60)
  add_dependencies(tidemark_fuzzers ${name})
endfunction()
