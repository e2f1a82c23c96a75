# What `pip install .` puts beside the Python sources of app/python (pyproject.toml): the product and the shared libraries of
# Debian that it needs, in temposcope/bin. torch and CUDA are those of the environment. All of it is of the component `package`.

set(_temposcope_wheel_bin temposcope/bin)

# The command, in the folder for scripts of the environment.
if(SKBUILD)
  install(PROGRAMS "${CMAKE_CURRENT_LIST_DIR}/../app/python/command.py" DESTINATION "${SKBUILD_SCRIPTS_DIR}" RENAME temposcope
    COMPONENT package)
endif()

# Every target of `product`, and the name of their torch. Their places in the package's bin are those in the build's folder `bin`.
function(temposcope_install_product bin)
  get_target_property(targets product MANUALLY_ADDED_DEPENDENCIES)
  set(files "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "UTILITY")
      continue()
    endif()
    get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${bin}" OUTPUT_VARIABLE place)
    set(top "$ORIGIN")
    if(NOT place STREQUAL ".")
      set(top "$ORIGIN;$ORIGIN/..")
    endif()
    list(GET top -1 packages)  # of the environment: two folders above bin
    string(APPEND packages "/../..")
    # RPATH, not RUNPATH, so that the libraries of Debian find each other by it, too.
    target_link_options(${target} PRIVATE "LINKER:--disable-new-dtags")
    set_target_properties(${target} PROPERTIES
      INSTALL_RPATH "${top};${packages}/torch/lib;${packages}/nvidia/cu13/lib"
      INSTALL_REMOVE_ENVIRONMENT_RPATH ON)
    set(destination "${_temposcope_wheel_bin}/${place}")
    cmake_path(NORMAL_PATH destination)
    install(TARGETS ${target} COMPONENT package
      RUNTIME DESTINATION "${destination}" LIBRARY DESTINATION "${destination}")
    list(APPEND files "$<TARGET_FILE:${target}>")
  endforeach()
  cmake_path(RELATIVE_PATH CMAKE_LIBRARY_OUTPUT_DIRECTORY BASE_DIRECTORY "${bin}" OUTPUT_VARIABLE place)
  install(FILES "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/torch_version" DESTINATION "${_temposcope_wheel_bin}/${place}" COMPONENT package)
  set(_temposcope_installed "${files}" PARENT_SCOPE)
endfunction()

# The libraries that the product needs, and licences.
function(temposcope_install_carried)
  foreach(licence imgui/imgui/LICENSE.txt implot/implot/LICENSE glfw/glfw/LICENSE.md)
    cmake_path(GET licence PARENT_PATH name)
    cmake_path(GET name FILENAME name)
    install(FILES "${TEMPOSCOPE_IMGUI_BUNDLE_DIR}/external/${licence}" DESTINATION temposcope/licences RENAME ${name}.txt COMPONENT package)
  endforeach()
  install(CODE "set(files \"${_temposcope_installed}\")
    set(carried \"${TEMPOSCOPE_CARRIED}\")
    set(destination \"\${CMAKE_INSTALL_PREFIX}/${_temposcope_wheel_bin}\")
    set(licences \"\${CMAKE_INSTALL_PREFIX}/temposcope/licences\")" COMPONENT package)
  install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/copy_libraries.cmake" COMPONENT package)
endfunction()

# For a clone that scripts/build has built, for one torch or more: pip install . -C cmake.define.TEMPOSCOPE_BUILT=$PWD/build
function(temposcope_install_built)
  add_custom_target(product)
  set(builds "${TEMPOSCOPE_BUILT}")
  file(GLOB others "${TEMPOSCOPE_BUILT}/bin/torch-*/torch_version")  # a complete build has this file
  foreach(file IN LISTS others)
    cmake_path(GET file PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    list(APPEND builds "${TEMPOSCOPE_BUILT}/${name}")
  endforeach()
  foreach(build IN LISTS builds)
    install(CODE "execute_process(COMMAND_ERROR_IS_FATAL ANY
      COMMAND \"${CMAKE_COMMAND}\" --install \"${build}\" --prefix \"\${CMAKE_INSTALL_PREFIX}\" --component package --strip)" COMPONENT package)
  endforeach()
endfunction()
