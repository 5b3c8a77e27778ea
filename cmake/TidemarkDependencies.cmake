# Every library of the distribution that we use, found in one place. `./dev deps` installs them.

find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libproc2 REQUIRED IMPORTED_TARGET libproc2)
pkg_check_modules(libdw REQUIRED IMPORTED_TARGET libdw)
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
