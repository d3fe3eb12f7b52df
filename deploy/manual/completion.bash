# Completion of perceptrond and perceptronctl in bash: what --help lists of subcommands, flags and the words that a value can be.
# shellcheck shell=bash

_perceptrond() {
  local program=$1 current=$2 before=$3 help subcommands subcommand='' words='' word
  help=$("$program" --help 2>/dev/null) || return
  subcommands=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' <<<"$help")
  for word in "${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do
    if grep -Fqx -- "$word" <<<"$subcommands"; then subcommand=$word && break; fi
  done
  if [[ -n $subcommand ]]; then help+=$'\n'$("$program" "$subcommand" --help 2>/dev/null); fi
  # readline splits --flag=value.
  if [[ $before == '=' ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  if [[ $current == '=' ]]; then current=''; fi
  if [[ $current == -* ]]; then
    words=$(sed -n 's/^  \(-[^ {]*\).*/\1/p' <<<"$help")
  elif [[ $before =~ ^--?[a-z-]+$ ]]; then
    # "-o,--output TEXT:{text,json}=text", or "--durability sync|interval (Env:...)".
    words=$(sed -E -n "s/^  (-.,)?$before(,\S+)? ([A-Z]+:\{)?([^ }]*[,|][^ }]*).*/\4/p" <<<"$help" | grep -o '\b[a-z][a-z0-9-]*\b')
  fi
  if [[ -z $words && -z $subcommand && $current != -* ]]; then words=$subcommands; fi
  mapfile -t COMPREPLY < <(compgen -W "${words//,/ }" -- "$current")
}

complete -o default -F _perceptrond perceptrond perceptronctl
