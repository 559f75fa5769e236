# Flags of our own code; never exported to users of the installed package.
add_library(simsync_options INTERFACE)
target_compile_features(simsync_options INTERFACE cxx_std_20)
target_compile_options(simsync_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                                                 -Wnon-virtual-dtor -Wold-style-cast -Werror
                                                 # designated initializers leave fields at their defaults on purpose
                                                 -Wno-missing-field-initializers
                                                 # false alarms of GCC 12 in its own std::string when optimizing (PR 105329, 105562)
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(SIMSYNC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SIMSYNC_FUZZ needs clang (Debian package: clang); use the preset 'fuzz'")
  endif()
  target_compile_options(simsync_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(simsync_options INTERFACE -fsanitize=address,undefined)
endif()
if(SIMSYNC_SANITIZE)
  target_compile_options(simsync_options INTERFACE -fsanitize=${SIMSYNC_SANITIZE} -fno-sanitize-recover=all
                                                   -fno-omit-frame-pointer)
  target_link_options(simsync_options INTERFACE -fsanitize=${SIMSYNC_SANITIZE})
endif()

# The sloppiness and -fpch-preprocess let ccache reuse files that were compiled with a precompiled header, the base
# directory those of another clone.
find_program(SIMSYNC_CCACHE ccache)
if(SIMSYNC_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${SIMSYNC_CCACHE}")
  target_compile_options(simsync_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
