# simsync_require(NAME...): finds the packages; those that are missing are reported together, each with the Debian
# package that brings it. Call simsync_report_missing() once at the end.
set_property(GLOBAL PROPERTY SIMSYNC_MISSING "")

function(simsync_debian_package name out)
  file(STRINGS "${PROJECT_SOURCE_DIR}/cmake/packages.txt" lines REGEX "^[a-z]")
  foreach(line IN LISTS lines)
    if(line MATCHES "^([^ ]+) +([^ ]+) " AND CMAKE_MATCH_2 STREQUAL name)
      set(${out} "${CMAKE_MATCH_1}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "cmake/packages.txt has no line for ${name}")
endfunction()

# A macro, because the variables of find_package() belong to the caller.
macro(simsync_require)
  foreach(simsync_name IN ITEMS ${ARGN})
    find_package(${simsync_name} QUIET)
    if(NOT ${simsync_name}_FOUND)
      simsync_debian_package(${simsync_name} simsync_package)
      set_property(GLOBAL APPEND PROPERTY SIMSYNC_MISSING "${simsync_name} (Debian package ${simsync_package})")
    endif()
  endforeach()
endmacro()

function(simsync_report_missing)
  get_property(missing GLOBAL PROPERTY SIMSYNC_MISSING)
  if(missing)
    list(JOIN missing "\n  " text)
    message(FATAL_ERROR "Required packages were not found:\n  ${text}")
  endif()
endfunction()

# simsync_find(NAME WHAT): an optional package. When it is missing, says which part is left out and what brings it.
macro(simsync_find simsync_name simsync_what)
  find_package(${simsync_name} QUIET)
  if(NOT ${simsync_name}_FOUND)
    simsync_debian_package(${simsync_name} simsync_package)
    message(STATUS "Left out: ${simsync_what} (${simsync_name} not found, Debian package ${simsync_package})")
  endif()
endmacro()
