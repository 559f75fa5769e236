# The CUDA parts: SIMSYNC_CUDA says whether everything they need is there. NVIDIA's packages are not Debian's, so they are
# named here and not in packages.txt.
set(SIMSYNC_CUDA OFF)

include(CheckLanguage)
find_program(SIMSYNC_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin DOC "CUDA compiler")
if(SIMSYNC_NVCC AND NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER "${SIMSYNC_NVCC}")
endif()
# From Turing on, which CUDA 13 starts with; a GPU that is newer than all of them compiles for itself.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
endif()
if(SIMSYNC_NVCC)
  check_language(CUDA)
endif()

set(simsync_missing "")
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
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
