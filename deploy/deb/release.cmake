# When this version was released, by the changelog's first entry: the times in the manual and in the packages.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/changelog)
file(READ ${CMAKE_CURRENT_LIST_DIR}/changelog changelog)
if(NOT changelog MATCHES "^perceptrond \\(([^)]*)\\)" OR NOT CMAKE_MATCH_1 STREQUAL PROJECT_VERSION)
  message(FATAL_ERROR "deploy/deb/changelog begins with version ${CMAKE_MATCH_1}, and the project has ${PROJECT_VERSION}: add an entry")
endif()
string(REGEX MATCH "\n -- [^\n]*  ([^\n]*)\n" line "${changelog}")
set(released "${CMAKE_MATCH_1}")
execute_process(COMMAND date -u -d ${released} +%s OUTPUT_VARIABLE PERCEPTROND_RELEASE_SECONDS OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
