# The CUDA parts: SIMSYNC_CUDA says whether everything they need is there. NVIDIA's packages are not Debian's, so they are
# named here and not in packages.txt.
set(SIMSYNC_CUDA OFF)

include(CheckLanguage)
find_program(SIMSYNC_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin DOC "CUDA compiler")
if(SIMSYNC_NVCC AND NOT DEFINED ENV{CUDACXX})
  set(ENV{CUDACXX} "${SIMSYNC_NVCC}")
endif()
if(SIMSYNC_NVCC)
  check_language(CUDA)
endif()

set(simsync_missing "")
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  # CUDA 13 starts with Turing; a GPU that is newer than all of them compiles for itself.
  set(simsync_architectures 75-real 80-real 90)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
    list(PREPEND simsync_architectures 70-real)
  endif()
  set(SIMSYNC_CUDA_ARCHITECTURES "${simsync_architectures}" CACHE STRING "GPUs to compile for")
  find_package(CUDAToolkit QUIET)
  find_package(NCCL QUIET)
  find_package(cuDNN QUIET)
  foreach(part IN ITEMS CUDAToolkit NCCL cuDNN)
    if(NOT ${part}_FOUND)
      list(APPEND simsync_missing ${part})
    endif()
  endforeach()
else()
  list(APPEND simsync_missing "the CUDA toolkit")
endif()

if(simsync_missing)
  list(JOIN simsync_missing ", " simsync_missing)
  message(STATUS "Left out: collectives and layer profiles on GPUs (not found: ${simsync_missing}; from NVIDIA, looked for in "
                 "PATH, CUDA_PATH and /usr/local/cuda)")
else()
  set(SIMSYNC_CUDA ON)
endif()

# simsync_cuda_module(ROOM LOADER SOURCES ... [EXTERNAL targets...])
#
# simsync_ROOM_cuda.so, which LOADER (a source of simsync_ROOM) opens.
function(simsync_cuda_module room loader)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "SOURCES;EXTERNAL")
  set(module simsync_${room}_cuda)
  simsync_module(${module} LOADER ${loader} SOURCES ${arg_SOURCES} LIBRARIES simsync::cuda ${arg_EXTERNAL})
  set_target_properties(${module} PROPERTIES CUDA_RUNTIME_LIBRARY Shared)
  add_dependencies(simsync_${room} ${module})
endfunction()
