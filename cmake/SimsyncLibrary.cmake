# simsync_library(NAME LAYER n SOURCES ... [DEPENDS rooms...] [EXTERNAL targets...] [PRIVATE_EXTERNAL targets...])
#
# A room may use only rooms of a lower layer, so a cycle cannot be written.
function(simsync_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LAYER" "SOURCES;DEPENDS;EXTERNAL;PRIVATE_EXTERNAL")
  foreach(dep IN LISTS arg_DEPENDS)
    get_target_property(below simsync_${dep} SIMSYNC_LAYER)
    if(NOT below LESS arg_LAYER)
      message(FATAL_ERROR "${name} (layer ${arg_LAYER}) must not use ${dep} (layer ${below})")
    endif()
  endforeach()
  add_library(simsync_${name} STATIC ${arg_SOURCES})
  add_library(simsync::${name} ALIAS simsync_${name})
  set_target_properties(simsync_${name} PROPERTIES SIMSYNC_LAYER ${arg_LAYER} EXPORT_NAME ${name})
  target_include_directories(simsync_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                    $<INSTALL_INTERFACE:include/simsync>)
  target_compile_features(simsync_${name} PUBLIC cxx_std_20)
  set(room_names ${arg_DEPENDS})
  list(TRANSFORM arg_DEPENDS PREPEND simsync::)
  target_link_libraries(simsync_${name} PUBLIC ${arg_DEPENDS} ${arg_EXTERNAL}
                                        PRIVATE ${arg_PRIVATE_EXTERNAL} $<BUILD_INTERFACE:simsync_options>)
  # Every room from models on reads the graph headers: compiled once, they halve the time of most files.
  if(models IN_LIST room_names)
    target_precompile_headers(simsync_${name} REUSE_FROM simsync_models)
  endif()
  set_property(GLOBAL APPEND PROPERTY SIMSYNC_LIBRARIES simsync_${name})
  # `folder=folder of each room that it may use`, for tests/docs/check_includes.cmake.
  set(line "")
  foreach(room IN LISTS name room_names)
    get_target_property(folder simsync_${room} SOURCE_DIR)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${folder}")
    list(APPEND line "${folder}")
  endforeach()
  list(JOIN line "=" line)
  set_property(GLOBAL APPEND PROPERTY SIMSYNC_ROOMS "${line}")
endfunction()

# simsync_module(NAME LOADER file SOURCES ... LIBRARIES targets...)
#
# NAME.so, which LOADER, a source of this folder, opens when it is first needed (base/module.hpp): a program that links
# none of LIBRARIES starts at once, and everywhere.
function(simsync_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LOADER" "SOURCES;LIBRARIES")
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} simsync_options)
  # Nothing of the module's own may be missing when it is loaded; the libraries behind it look up functions when they
  # are first called. The sanitizers' own symbols come with the program.
  target_link_options(${name} PRIVATE LINKER:-z,now)
  if(NOT SIMSYNC_SANITIZE AND NOT SIMSYNC_FUZZ)
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
  set_target_properties(${name} PROPERTIES PREFIX "" INSTALL_RPATH_USE_LINK_PATH ON)
  set(folder "${CMAKE_INSTALL_LIBDIR}/simsync")
  install(TARGETS ${name} LIBRARY DESTINATION "${folder}")
  file(RELATIVE_PATH from_bin "/${CMAKE_INSTALL_BINDIR}" "/${folder}/${name}.so")
  set_source_files_properties(${arg_LOADER} PROPERTIES COMPILE_DEFINITIONS
    "SIMSYNC_MODULE_FROM_BIN=\"${from_bin}\";SIMSYNC_MODULE_BUILT=\"$<TARGET_FILE:${name}>\"")
endfunction()

# simsync_late(ROOM LOADER file SOURCES ... LIBRARIES targets...)
#
# For programs that call what is in SOURCES, part of simsync_ROOM, only now and then: the object library
# simsync_ROOM_late has LOADER, which defines the same functions and finds them in the module simsync_ROOM_module.so.
# A program that links it takes these definitions, because objects come before libraries, and needs LIBRARIES no more.
# It has to depend on the module (add_dependencies).
function(simsync_late room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LOADER" "SOURCES;LIBRARIES")
  simsync_module(simsync_${room}_module LOADER ${arg_LOADER} SOURCES ${arg_SOURCES}
                 LIBRARIES simsync::base ${arg_LIBRARIES})
  target_include_directories(simsync_${room}_module PRIVATE "${PROJECT_SOURCE_DIR}")
  add_library(simsync_${room}_late OBJECT ${arg_LOADER})
  target_link_libraries(simsync_${room}_late PUBLIC simsync::${room} PRIVATE simsync_options)
endfunction()
