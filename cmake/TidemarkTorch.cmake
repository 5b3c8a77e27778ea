# Finds libtorch for the trainer harness: the distribution's, or the one inside an installed torch
# wheel. Makes the target tidemark_torch, or says what is missing; nothing else needs it.
#
# Not through TorchConfig.cmake: that of a CUDA wheel stops the configuration where the CUDA toolkit
# is not installed, and we compile no CUDA code.

set(TIDEMARK_TORCH_DIR "" CACHE PATH
    "Folder with include/ and lib/ of libtorch (default: the distribution's, then python's)")

# The folder of the torch package and the ABI of its std::string, from the first python that has it.
# Another python may come first on the path than the one that has torch.
function(tidemark_ask_python_for_torch)
  foreach(python IN ITEMS python3 /usr/bin/python3)
    execute_process(
      COMMAND ${python} -c
              "import os, torch; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()), sep=';')"
      OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0 AND answer MATCHES "^(/[^;]*);([01])$")
      if(CMAKE_MATCH_2 EQUAL 1)
        set(torch_prefix ${CMAKE_MATCH_1} PARENT_SCOPE)
        return()
      endif()
      set(torch_problem "the torch of ${python} has the C++ ABI of before GCC 5" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Headers and libraries below `prefix`, or of the distribution when it is empty.
macro(tidemark_look_for_torch prefix)
  set(options "")
  if(NOT "${prefix}" STREQUAL "")
    set(options PATHS ${prefix} NO_DEFAULT_PATH)
  endif()
  find_path(TIDEMARK_TORCH_INCLUDE ATen/ATen.h ${options} PATH_SUFFIXES include)
  find_path(TIDEMARK_TORCH_API_INCLUDE torch/torch.h ${options}
            PATH_SUFFIXES include/torch/csrc/api/include torch/csrc/api/include)
  foreach(library IN ITEMS torch torch_cpu c10)
    find_library(TIDEMARK_LIB_${library} ${library} ${options} PATH_SUFFIXES lib)
  endforeach()
  # Only in builds with CUDA. Nothing of ours calls them; linked, they register the device.
  foreach(library IN ITEMS torch_cuda c10_cuda)
    find_library(TIDEMARK_LIB_${library} ${library} ${options} PATH_SUFFIXES lib)
  endforeach()
endmacro()

# What was found in another folder, or in none, is no answer for this one.
if(NOT "${TIDEMARK_TORCH_DIR}" STREQUAL "${TIDEMARK_TORCH_LAST_DIR}")
  foreach(found IN ITEMS TORCH_INCLUDE TORCH_API_INCLUDE LIB_torch LIB_torch_cpu LIB_c10
                         LIB_torch_cuda LIB_c10_cuda)
    unset(TIDEMARK_${found} CACHE)
  endforeach()
endif()
set(TIDEMARK_TORCH_LAST_DIR "${TIDEMARK_TORCH_DIR}" CACHE INTERNAL "")

if("${TIDEMARK_TORCH_DIR}" STREQUAL "")
  set(torch_problem "install libtorch-dev, or a torch wheel, or set TIDEMARK_TORCH_DIR")
else()
  set(torch_problem "TIDEMARK_TORCH_DIR is ${TIDEMARK_TORCH_DIR}, without its include/ and lib/")
endif()
tidemark_look_for_torch("${TIDEMARK_TORCH_DIR}")
if(NOT TIDEMARK_LIB_torch_cpu AND "${TIDEMARK_TORCH_DIR}" STREQUAL "")
  set(torch_prefix "")
  tidemark_ask_python_for_torch()
  if(torch_prefix)
    tidemark_look_for_torch("${torch_prefix}")
  endif()
endif()

if(TIDEMARK_TORCH_INCLUDE AND TIDEMARK_TORCH_API_INCLUDE AND TIDEMARK_LIB_torch
   AND TIDEMARK_LIB_torch_cpu AND TIDEMARK_LIB_c10)
  message(STATUS "libtorch for tidemark-harness: ${TIDEMARK_LIB_torch_cpu}")
  set(torch_libraries ${TIDEMARK_LIB_torch} ${TIDEMARK_LIB_torch_cpu} ${TIDEMARK_LIB_c10})
  foreach(library IN ITEMS torch_cuda c10_cuda)
    if(TIDEMARK_LIB_${library})
      list(APPEND torch_libraries ${TIDEMARK_LIB_${library}})
    endif()
  endforeach()
  add_library(tidemark_torch INTERFACE)
  target_include_directories(tidemark_torch SYSTEM INTERFACE ${TIDEMARK_TORCH_INCLUDE}
                                                             ${TIDEMARK_TORCH_API_INCLUDE})
  target_link_libraries(tidemark_torch INTERFACE -Wl,--push-state,--no-as-needed ${torch_libraries}
                                                 -Wl,--pop-state)
else()
  message(STATUS "tidemark-harness is not built: no libtorch (${torch_problem})")
endif()
