#compdef @PROGRAM@
# Generated from the program's options.
# @MODELS@

# The models of the server on the command line; none if it does not answer at once.
_perceptronctl_models() {
  local -a connection models
  local i
  for ((i = 2; i < ${#all}; i++)); do
    case $all[i] in
      (--server=*|--tls|--tls-*=*) connection+=("${(Q)all[i]}") ;;
      (--server|--tls-*) connection+=("$all[i]" "${(Q)all[i+1]}") ;;
    esac
  done
  models=(${(f)"$(_call_program models perceptronctl ${(q)connection} --timeout 0.5 list 2>/dev/null)"})
  # Skips the headings.
  models=(${${models[2,-1]}%% *})
  models=(${(M)models:#[A-Za-z0-9][A-Za-z0-9._-]#})
  _wanted models expl model compadd -a models
}
# @END@

_@PROGRAM@() {
  local context state state_descr line
  local -A opt_args
  local -a all
  all=("${words[@]}")
@TABLES@}

_@PROGRAM@ "$@"
