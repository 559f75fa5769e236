# Debian's gRPC ships pkg-config files and no CMake package. Defines gRPC::grpc++.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_GRPC QUIET IMPORTED_TARGET grpc++)
endif()
set(gRPC_VERSION "${PC_GRPC_VERSION}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(gRPC REQUIRED_VARS PC_GRPC_FOUND VERSION_VAR gRPC_VERSION
  REASON_FAILURE_MESSAGE "Debian package: libgrpc++-dev")
if(gRPC_FOUND AND NOT TARGET gRPC::grpc++)
  add_library(gRPC::grpc++ ALIAS PkgConfig::PC_GRPC)
endif()
