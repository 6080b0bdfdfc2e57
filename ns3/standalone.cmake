# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the module against an installed ns-3. Debian's CMake package and pkg-config files of ns-3
# name paths of the machine that built them, so the libraries are looked for one by one.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CXX_FLAGS)
  # Quick to compile, and most of ns-3's time is spent in ns-3.
  set(CMAKE_CXX_FLAGS "-O1")
endif()
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)

find_path(NS3_INCLUDE ns3/core-module.h PATH_SUFFIXES ns3.37)
if(NOT NS3_INCLUDE)
  message(FATAL_ERROR "ns-3 is not installed: on Debian, apt-get install libns3-dev")
endif()
set(ns3_libraries)
foreach(module ${olaf_needs} stats bridge mpi traffic-control)
  find_library(NS3_${module} NAMES ns3-${module} ns3.37-${module})
  if(NS3_${module})
    list(APPEND ns3_libraries ${NS3_${module}})
  elseif(module IN_LIST olaf_needs)
    message(FATAL_ERROR "ns-3's library ${module} is not there: apt-get install libns3-dev")
  endif()
endforeach()

# ns-3 includes a module's headers as ns3/name.h.
set(olaf_include ${CMAKE_CURRENT_BINARY_DIR}/include)
foreach(header ${olaf_headers})
  get_filename_component(name ${header} NAME)
  configure_file(${header} ${olaf_include}/ns3/${name} COPYONLY)
endforeach()

add_library(ns3-olaf SHARED ${olaf_sources})
target_include_directories(ns3-olaf PUBLIC ${olaf_include} ${NS3_INCLUDE} ${OLAF_INCLUDE})
target_link_libraries(ns3-olaf PUBLIC ${ns3_libraries} ${OLAF_LIBRARY})
target_compile_options(ns3-olaf PRIVATE -Wall -Wextra -Werror)

add_executable(olaf-multihop examples/olaf-multihop.cc)
target_link_libraries(olaf-multihop ns3-olaf)

add_executable(olaf-test-runner test/olaf-test-runner.cc ${olaf_tests})
target_link_libraries(olaf-test-runner ns3-olaf)
enable_testing()
add_test(NAME olaf COMMAND olaf-test-runner --verbose
         WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
