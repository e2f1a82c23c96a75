# What one build of the libraries and another, for one more torch (cmake/OtherTorch.cmake), have in common.

# A file beside the libraries of the whole build: it names the torch that they are built for. The Python package reads it.
function(temposcope_name_torch)
  file(CONFIGURE OUTPUT "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/torch_version" CONTENT "${TEMPOSCOPE_TORCH_VERSION}\n")
endfunction()

# Writes the libraries without torch as targets for a build for one more torch. CMake's own export() refuses targets that need
# others which both builds make for themselves, such as temposcope_options.
function(temposcope_export_torch_free)
  set(text "# Written by temposcope_export_torch_free.\n")
  foreach(target temposcope_kernels tempo_kernels_cuda temposcope_layouts temposcope_model_config temposcope_protocol temposcope_trace)
    if(NOT TARGET ${target})  # only some folders are configured
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    if(type STREQUAL "STATIC_LIBRARY")
      get_target_property(folder ${target} BINARY_DIR)
      set(kind STATIC)
      set(file "${folder}/lib${target}.a")
    else()
      get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
      set(kind SHARED)
      set(file "${folder}/lib${target}.so")
    endif()
    string(APPEND text "add_library(${target} ${kind} IMPORTED)\n"
      "set_target_properties(${target} PROPERTIES IMPORTED_LOCATION [[${file}]]\n"
      "  INTERFACE_INCLUDE_DIRECTORIES [[${PROJECT_SOURCE_DIR}]] INTERFACE_LINK_LIBRARIES [[${libraries}]])\n")
  endforeach()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/torch_free.cmake" CONTENT "${text}" @ONLY)
endfunction()
