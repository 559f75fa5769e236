# One test in script mode: BUILD (build tree), WORK (scratch), CONSUMER (its sources), BINDIR, DATADIR, GENERATOR, COMPILER, SANITIZE.
set(question --model alexnet --cluster two-nodes --strategy ddp --workers 2)

function(run out)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${WORK}" OUTPUT_VARIABLE text ERROR_VARIABLE messages RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "'${command}' ended with ${code}\n${text}${messages}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(expect_equal what expected got)
  if(NOT expected STREQUAL got)
    message(FATAL_ERROR "${what}: expected\n${expected}\ngot\n${got}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
run(ignored "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
set(program "${WORK}/prefix/${BINDIR}/simsync")

# The same answer as in the build tree.
run(expected "${BUILD}/cli/simsync" predict ${question} --csv -)
run(got "${program}" predict ${question} --csv -)
expect_equal("installed program" "${expected}" "${got}")

# It reads the installed data: a model that only they have is known.
file(COPY_FILE "${WORK}/prefix/${DATADIR}/models/zoo/alexnet.yaml" "${WORK}/prefix/${DATADIR}/models/zoo/only-here.yaml")
run(models "${program}" list models)
if(NOT models MATCHES "only-here")
  message(FATAL_ERROR "the installed program does not read ${WORK}/prefix/${DATADIR}")
endif()

# Another project builds against it and gets the same answer.
run(ignored "${CMAKE_COMMAND}" -S "${CONSUMER}" -B "${WORK}/consumer" -G "${GENERATOR}"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DSANITIZE=${SANITIZE}")
run(ignored "${CMAKE_COMMAND}" --build "${WORK}/consumer")
run(got "${WORK}/consumer/consumer" alexnet two-nodes ddp 2)
expect_equal("consumer" "${expected}" "${got}")
