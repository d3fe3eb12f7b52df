# Completion of @PROGRAM@ in bash. Generated from the program's options.
# shellcheck shell=bash

@TABLES@# The words of the command line; readline also splits at = and :. Into `words`.
_@PROGRAM@_words() {
  local rest=$COMP_LINE word before i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    before=${rest%%"$word"*}
    if [[ -z $word ]]; then
      words+=('')
    elif [[ -z $before && $i -gt 0 ]]; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
    rest=${rest#"$before$word"}
  done
}

# Processes a word before the cursor.
_@PROGRAM@_pass() {
  if ((left > 0)); then
    left=$((left - 1))
    if [[ $flag == --server || $flag == --tls* ]]; then connection+=("$1"); fi
    return
  fi
  flag=${1%%=*}
  if [[ $1 == -* ]]; then
    if [[ $flag == --server || $flag == --tls* ]]; then connection+=("$1"); fi
    _@PROGRAM@_value "$subcommand:$flag"
    if [[ $1 != *=* ]]; then left=$count; fi
  elif [[ -z $subcommand && ${#_@PROGRAM@_subcommands[@]} -gt 0 ]]; then
    subcommand=$1
  else
    place=$((place + 1))
  fi
}

# The words that start with the prefix, without expansion.
_@PROGRAM@_offer() {
  local begun=$1 word
  shift
  for word in "$@"; do
    if [[ $word == "$begun"* ]]; then COMPREPLY+=("$before$word"); fi
  done
}

# Completes a value by the kind in `reply`, given its prefix.
_@PROGRAM@_complete() {
  case ${reply[0]} in
    choice) _@PROGRAM@_offer "$1" "${reply[@]:1}" ;;
    file) compopt -o default 2>/dev/null ;;
    directory) compopt -o dirnames 2>/dev/null ;;
# @MODELS@
    model) _perceptronctl_models "$1" ;;
    models)
      if [[ $1 == *,* ]]; then before+=${1%,*},; fi
      _perceptronctl_models "${1##*,}"
      ;;
# @END@
  esac
}

_@PROGRAM@() {
  local words=() reply=() connection=() subcommand='' flag='' before='' kept count=0 left=0 place=0 i
  COMPREPLY=()
  _@PROGRAM@_words
  local current=${words[-1]}
  for ((i = 1; i < ${#words[@]} - 1; i++)); do _@PROGRAM@_pass "${words[i]}"; done
  if ((left > 0)); then
    _@PROGRAM@_value "$subcommand:$flag"
    _@PROGRAM@_complete "$current"
  elif [[ $current == --*=* ]]; then
    before=${current%%=*}=
    _@PROGRAM@_value "$subcommand:${before%=}"
    _@PROGRAM@_complete "${current#*=}"
  elif [[ $current == -* ]]; then
    _@PROGRAM@_flags "$subcommand"
    _@PROGRAM@_offer "$current" "${reply[@]}"
  elif [[ -z $subcommand && ${#_@PROGRAM@_subcommands[@]} -gt 0 ]]; then
    _@PROGRAM@_offer "$current" "${_@PROGRAM@_subcommands[@]}"
  else
    _@PROGRAM@_argument "$subcommand:$place"
    _@PROGRAM@_complete "$current"
  fi
  # readline keeps the text before its last split.
  kept=$current
  while [[ -n $kept && $COMP_WORDBREAKS != *"${kept: -1}"* ]]; do kept=${kept%?}; done
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}

complete -F _@PROGRAM@ @PROGRAM@
# @MODELS@

# The models of the server on the command line; none if it does not answer at once.
_perceptronctl_models() {
  local begun=$1 name rest
  while read -r name rest; do
    # Omits words that a shell would split.
    if [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]]; then _perceptronctl_offer "$begun" "$name"; fi
  done < <(perceptronctl "${connection[@]}" --timeout 0.5 list 2>/dev/null | tail -n +2)
}
# @END@
