# Every library of the distribution that we use, found in one place. `./dev deps` installs them.

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libproc2 REQUIRED IMPORTED_TARGET libproc2)
pkg_check_modules(libdw REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(libpcre2 REQUIRED IMPORTED_TARGET libpcre2-8)

# The dashboard's library: the distribution's, or what cmake/build_ftxui.sh has built.
if(TIDEMARK_BUILD_TUI)
  if(DEFINED ENV{XDG_CACHE_HOME})
    set(tidemark_cache $ENV{XDG_CACHE_HOME}/tidemark)
  else()
    set(tidemark_cache $ENV{HOME}/.cache/tidemark)
  endif()
  file(GLOB tidemark_ftxui LIST_DIRECTORIES true ${tidemark_cache}/ftxui-*)
  find_package(ftxui 5 QUIET HINTS ${tidemark_ftxui})
endif()
if(TIDEMARK_BUILD_TUI AND ftxui_FOUND)
  message(STATUS "dashboard: FTXUI ${ftxui_VERSION} in ${ftxui_DIR}")
  set(TIDEMARK_HAS_TUI TRUE)
else()
  message(STATUS "dashboard: not built, monitor prints lines (no FTXUI 5; `./dev build` gets it)")
  set(TIDEMARK_HAS_TUI FALSE)
endif()

if(BUILD_TESTING)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# procps-ng 4.0.3 dropped the last argument of PIDS_VAL; 4.0.2 (Debian 12) still has it.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::libproc2)
check_cxx_source_compiles("
#include <libproc2/pids.h>
int main() {
  pids_stack* stack = nullptr;
  return stack ? PIDS_VAL(0, s_int, stack) : 0;
}" TIDEMARK_PIDS_VAL_HAS_THREE_ARGUMENTS)
unset(CMAKE_REQUIRED_LIBRARIES)
