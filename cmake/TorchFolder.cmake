# What one build of the libraries and another, for one more torch (cmake/OtherTorch.cmake), have in common.

# A file beside the libraries that see torch: it names the torch that they are built for. The Python package reads it.
function(temposcope_name_torch)
  file(CONFIGURE OUTPUT "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/torch_version" CONTENT "${TEMPOSCOPE_TORCH_VERSION}\n")
endfunction()

# The libraries without torch, as targets for a build for one more torch.
function(temposcope_export_torch_free)
  set(targets "")
  foreach(target temposcope_kernels temposcope_kernels_cuda temposcope_layouts temposcope_model_config temposcope_protocol temposcope_trace)
    if(TARGET ${target})  # not where only some folders are configured
      list(APPEND targets ${target})
    endif()
  endforeach()
  export(TARGETS ${targets} FILE "${PROJECT_BINARY_DIR}/torch_free.cmake")
endfunction()
