# Libraries, headers (their folders kept, so that includes read alike in the tree and after install), data,
# and a CMake package: find_package(simsync) gives simsync::base, simsync::models, ... up to simsync::validate.
include(CMakePackageConfigHelpers)

set(SIMSYNC_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/simsync")

get_property(libraries GLOBAL PROPERTY SIMSYNC_LIBRARIES)
install(TARGETS ${libraries} EXPORT simsync-targets ARCHIVE)
foreach(library IN LISTS libraries)
  get_target_property(folder ${library} SOURCE_DIR)
  file(RELATIVE_PATH room "${PROJECT_SOURCE_DIR}" "${folder}")
  install(DIRECTORY "${folder}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/simsync/${room}" FILES_MATCHING PATTERN "*.hpp")
endforeach()

foreach(data IN ITEMS models/zoo models/profiles platforms/presets strategies/presets strategies/search/data validate/studies validate/reference
                      validate/models validate/clusters validate/calibrations validate/strategies)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${data}/" DESTINATION "${SIMSYNC_DATA_DIR}/${data}"
          FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv")
endforeach()
install(FILES models/trace/export_torch.py DESTINATION "${SIMSYNC_DATA_DIR}/models/trace")
install(FILES platforms/devices.yaml platforms/network_errors.yaml DESTINATION "${SIMSYNC_DATA_DIR}/platforms")
install(FILES models/time_errors.yaml DESTINATION "${SIMSYNC_DATA_DIR}/models")
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT simsync-targets NAMESPACE simsync:: DESTINATION "${SIMSYNC_CMAKE_DIR}")
# Of the parts that this build has; a program that uses none of them does without.
set(SIMSYNC_OPTIONAL_PACKAGES "")
if(DNNL_FOUND)
  list(APPEND SIMSYNC_OPTIONAL_PACKAGES DNNL)
endif()
if(XGBoost_FOUND AND SIMSYNC_SIMULATOR)
  list(APPEND SIMSYNC_OPTIONAL_PACKAGES XGBoost)
endif()
if(SIMSYNC_CUDA)
  list(APPEND SIMSYNC_OPTIONAL_PACKAGES CUDAToolkit NCCL)
endif()
configure_package_config_file(cmake/simsync-config.cmake.in simsync-config.cmake INSTALL_DESTINATION "${SIMSYNC_CMAKE_DIR}"
                              PATH_VARS SIMSYNC_DATA_DIR)
write_basic_package_version_file(simsync-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/simsync-config.cmake" "${PROJECT_BINARY_DIR}/simsync-config-version.cmake"
              cmake/FindDNNL.cmake cmake/FindNCCL.cmake cmake/FindSimGrid.cmake cmake/FindXGBoost.cmake
        DESTINATION "${SIMSYNC_CMAKE_DIR}")

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
include(CPack)
