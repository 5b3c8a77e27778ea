# What `cmake --install` puts where: the program, the libraries that it looks for beside itself, what
# training code includes, and the CMake package.
include(CMakePackageConfigHelpers)

set(package_dir lib/cmake/Tidemark)
install(TARGETS tidemark RUNTIME DESTINATION bin)
foreach(library IN ITEMS tidemark_tracer tidemark_operators tidemark_probe)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION lib/tidemark)
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/api/tidemark.h DESTINATION include)
install(FILES ${PROJECT_SOURCE_DIR}/api/tidemark.py ${PROJECT_SOURCE_DIR}/api/tidemark_jobs.py
              ${PROJECT_SOURCE_DIR}/api/tidemark_memory.py DESTINATION share/tidemark)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/TidemarkConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/package/TidemarkConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/TidemarkConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/TidemarkConfig.cmake
              ${PROJECT_BINARY_DIR}/package/TidemarkConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/TidemarkLeakTest.cmake
        DESTINATION ${package_dir})
