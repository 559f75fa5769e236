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
endfunction()
