# SPDX-License-Identifier: Apache-2.0
# Memory gates as tests: a part of the installed package, and used in this tree itself.

include_guard(GLOBAL)

# The words of these lists, each as one argument in CMake code. Expanded, a list would lose empty words,
# and others would be split at their semicolons.
function(_tidemark_quote_words code)
  set(quoted)
  foreach(word IN LISTS ${ARGN})
    string(APPEND quoted " [======[${word}]======]")
  endforeach()
  set(${code} "${quoted}" PARENT_SCOPE)
endfunction()

# tidemark_add_leak_test(NAME name COMMAND command [argument...]
#                        [MAX_GROWTH rate] [MAX_PEAK size] [MAX_PLATEAU size] [MAX_PROCESSES n]
#                        [MAX_RETAINED size] [MAX_JOB_GROWTH size]
#                        [WARMUP time|steps] [REPEAT n] [JOBS n] [TIMEOUT time] [DURATION time]
#                        [INTERVAL time] [PSS mode] [STEP_REGEX regex]
#                        [BASELINE file] [TOLERANCE percent] [HISTORY file]
#                        [PROFILE] [SKIP_UNDETERMINED] [OPTIONS option...] [LABELS label...])
#
# Adds a test that runs the command under `tidemark check` and passes when it keeps to its budgets.
# The values are those of the options of the same name (docs/check.md); OPTIONS takes any others.
# The first word of COMMAND may be a target of this project. With SKIP_UNDETERMINED a run that was
# too short to tell is skipped instead of failed. The label is `leak` unless LABELS says otherwise.
function(tidemark_add_leak_test)
  set(settings MAX_GROWTH MAX_PEAK MAX_PLATEAU MAX_PROCESSES MAX_RETAINED MAX_JOB_GROWTH WARMUP REPEAT
               JOBS TIMEOUT DURATION INTERVAL PSS STEP_REGEX BASELINE TOLERANCE HISTORY)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "PROFILE;SKIP_UNDETERMINED" "NAME;${settings}"
                        "COMMAND;OPTIONS;LABELS")
  if(NOT ARG_NAME OR NOT ARG_COMMAND)
    message(FATAL_ERROR "tidemark_add_leak_test needs a NAME and a COMMAND")
  endif()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tidemark_add_leak_test(${ARG_NAME}) does not know ${ARG_UNPARSED_ARGUMENTS}; "
                        "put options of tidemark check behind OPTIONS")
  endif()
  set(options)
  foreach(setting IN LISTS settings)
    if(DEFINED ARG_${setting})
      string(TOLOWER ${setting} option)
      string(REPLACE _ - option ${option})
      string(REPLACE ";" "\\;" value "${ARG_${setting}}")
      list(APPEND options --${option} "${value}")
    endif()
  endforeach()
  if(ARG_PROFILE)
    list(APPEND options --profile)
  endif()
  _tidemark_quote_words(words ARG_COMMAND)
  list(GET ARG_COMMAND 0 program)
  if(TARGET ${program})
    _tidemark_quote_words(first program)
    string(LENGTH "${first}" length)
    string(SUBSTRING "${words}" ${length} -1 words)
    string(PREPEND words "$<TARGET_FILE:${program}>")
  endif()
  _tidemark_quote_words(options options ARG_OPTIONS)
  cmake_language(EVAL CODE "add_test(NAME [======[${ARG_NAME}]======]
    COMMAND $<TARGET_FILE:Tidemark::tidemark> check [======[${ARG_NAME}]======] ${options} -- ${words})")
  if(NOT ARG_LABELS)
    set(ARG_LABELS leak)
  endif()
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}")
  if(ARG_SKIP_UNDETERMINED)
    set_tests_properties(${ARG_NAME} PROPERTIES SKIP_RETURN_CODE 4)
  endif()
endfunction()
